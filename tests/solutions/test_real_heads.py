"""The assignment `real_heads`: what partly right answers earn, the answers, and the notebook with its solutions."""

import numpy as np
import pytest

from mha_lib import pitfalls
from mha_lib.minilm.minilm import load_sample
from mha_lib.real_heads import bert_attention, head_importance, offset_score


def test_whoever_takes_the_stored_weights_as_they_are_loses_a_quarter(grade):
    wrong = pitfalls.variants("real_heads", "bert_attention")["stored-weights-not-transposed"]
    row = grade("bert_attention", wrong)
    assert row.score <= 0.75 * row.max_score


def test_two_numbers_of_which_the_first_is_larger_earn_one_point(grade):
    assert grade("offset_score", lambda *arguments: np.array([1.0, 0.0])).score == 1


# The answers


def test_the_right_answers_are_what_the_sample_shows(assignment):
    sample, answers = load_sample(), assignment.reference.answers
    for offset, name in [(-1, "previous"), (1, "next")]:
        scores = np.mean(
            [[offset_score(layer, offset) for layer in maps] for maps in sample.maps], axis=0
        )  # (6, 12)
        best = np.unravel_index(scores.argmax(), scores.shape)
        assert best == (answers[f"{name}_layer"], answers[f"{name}_head"])
    np.testing.assert_allclose(scores.max(), answers["next_score"], atol=1e-3)

    leaders = [sample.heads[head_importance(x[None], sample.weights, 4).argmax()] for x in sample.states]
    assert leaders[3] == answers["most_important"]
    assert answers["most_important"] not in leaders[:3] + leaders[4:]

    def weight(text, head, query, key):
        tokens = sample.tokens[text]
        return sample.maps[text][3, head, tokens.index(query), tokens.index(key)]

    looks = [head for head in sample.heads if weight(5, head, "are", "keys") > 0.5]
    assert looks == [answers["agreement_head"]]
    assert answers["too_wide"] == "b"
    assert weight(1, 1, "it", "animal") > 2 * weight(1, 1, "it", "street") > 0

    without = {**sample.weights, "key": {**sample.weights["key"], "bias": np.zeros(128)}}
    both = [bert_attention(sample.states[0][None], weights, 4) for weights in (sample.weights, without)]
    for got, expected in zip(*both, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)
    assert answers["key_bias"] == "c"


# The notebook, from top to bottom


@pytest.mark.parametrize("installed", [True, False], ids=["with the model", "without the model"])
def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(
    assignment, run_solved, text_of, installed
):
    sources = {}
    if not installed:
        (imports,) = (cell.released for cell in assignment.cells if cell.id == "imports_for_checks")
        hide = "import importlib.util\nimportlib.util.find_spec = lambda name: None"
        sources["imports_for_checks"] = f"{imports}\n{hide}"
    outputs = run_solved(**sources)
    assert ("pip install" in text_of(outputs["load_model"])) is not installed
    differences = [
        line.split()[-1] for line in text_of(outputs["plot_heads"]).splitlines() if "differ" in line
    ]
    assert len(differences) == 6
    assert max(map(float, differences)) < 0.002
    assert "offset -1: head 0-2 with 1.00" in text_of(outputs["print_offsets"])
    assert "0.68     0.22" in text_of(outputs["print_baseline"])
