"""The assignment `modern_heads`: its notebook with the solutions in it, and what the answers rest on."""

import inspect

import pytest
import torch

from mha_lib.modern_heads import latent_attention_absorbed, qk_norm_attention
from mha_lib.positions import rotary, sliding_window_mask
from mha_lib.torch_attention import MultiHeadAttention, attention


def test_the_notebook_runs_with_the_solutions_and_every_check_says_ok(run_solved):
    outputs = run_solved()
    assert any(output.output_type == "display_data" for output in outputs["plot_rotary"])
    assert "576 numbers a token" in outputs["measure_latent"][0].text


@pytest.mark.parametrize(
    ("lowest", "told"),
    [
        ("-n", "this is the causal mask"),
        ("m - n - window", "one key too many"),
        ("1 - window", "it lacks m − n"),
    ],
)
def test_a_check_names_the_mistake_that_it_sees(run, lowest, told):
    mask = f"torch.ones(n, m, dtype=torch.bool).tril(m - n).triu({lowest})"
    outputs, failed = run(
        {"sliding_window_mask": f"def sliding_window_mask(n, m, window):\n    return {mask}"}
    )
    assert failed["test_sliding_window_mask"] == "CheckFailed"
    assert told in outputs["test_sliding_window_mask"][-1].evalue


def test_a_check_says_that_rotary_writes_into_its_argument(run):
    wrong = (
        inspect.getsource(rotary).replace("def rotary", "def turned")
        + "\n\ndef rotary(x, positions, base=10000.0):\n    return x.copy_(turned(x, positions, base))"
    )
    outputs, _ = run({"rotary": wrong})
    assert "argument 1 was changed in place" in outputs["test_rotary"][-1].evalue


def test_the_absorbed_form_in_place_of_the_plain_one_is_right_but_not_the_other_way_round(lost):
    assert lost("latent_attention", latent_attention_absorbed) == set()


# The answers


def test_the_answers_are_what_a_run_gives(assignment):
    right = assignment.reference.answers
    torch.manual_seed(0)
    layer, x, order = MultiHeadAttention(12, 3), torch.randn(2, 7, 12), torch.randperm(7)
    assert torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-6)  # "b"

    q, k, v = torch.randn(3, 1, 2, 5, 8).double().unbind()
    weights = [
        attention(rotary(q, positions), rotary(k, positions), v)[1]
        for positions in (torch.arange(5), torch.arange(100, 105))
    ]
    assert torch.allclose(*weights)  # "a"

    interleaved = (
        torch.arange(8).view(4, 2).T.flatten()
    )  # where each feature of the halves is among the pairs
    assert torch.allclose(  # "b"
        rotary(q[..., interleaved], torch.arange(5)) @ rotary(k[..., interleaved], torch.arange(5)).mT,
        scores_of_pairs(q, k, torch.arange(5)),
    )

    seen = sliding_window_mask(50, 50, 8).double()
    reach = torch.linalg.matrix_power(seen, 5)[-1]
    assert 49 - reach.nonzero().min() == right["window_reach"]

    far = qk_norm_attention(q, q, torch.eye(5).double().expand(1, 2, 5, 5), torch.full((2, 1, 1), 12.0))
    diagonal = far.diagonal(dim1=-2, dim2=-1)
    assert (far <= diagonal[..., None] + 1e-9).all()  # a query's own direction scores highest ...
    assert right["largest_score"] == 12  # ... with a cosine of 1


def scores_of_pairs(q, k, positions):
    """Scores under the interleaved convention, through complex numbers."""
    speeds = 10000.0 ** (-torch.arange(4).double() / 4)
    turn = torch.exp(1j * positions[:, None] * speeds)
    turned = [torch.view_as_complex(each.unflatten(-1, (4, 2)).contiguous()) * turn for each in (q, k)]
    return (turned[0] @ turned[1].conj().mT).real
