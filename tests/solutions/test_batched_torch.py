"""The assignment `batched_torch`: what each mistake costs, what junk does, and the notebook in the sandbox."""

import nbformat
import pytest
import torch
from torch import nn

from mha_grader import assignment as assignments
from mha_grader.grading import Settings, grade_submission
from mha_grader.kill_table import judge
from mha_lib import pitfalls, torch_attention

LAYERS = ("MultiHeadAttention", "CausalSelfAttention")
FUNCTIONS = ("attention", "from_builtin", "sdpa_attention")


@pytest.fixture(scope="session")
def batched_torch(course):
    return assignments.load(course, "batched_torch")


def grade(batched_torch, item, tested):
    """The row of one function or class."""
    return judge(batched_torch, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

EMPTY = {"nothing to attend to", "gradient with nothing to attend to"}
HEADS = {"several heads", "scores", "gradient"}
COSTS = [
    ("attention", "no-max-subtraction", {"large scores", "scores far below zero"}),
    ("attention", "no-scale", {"scale", "scale in a batch"}),
    ("attention", "scale-by-axis-one", {"scale in a batch"}),
    ("attention", "only-output-returned", {"weights", "masked weights", "no weights"}),
    ("attention", "mask-fill-not-negative-enough", {"scores far below zero"}),
    ("attention", "mask-fill-overflows-half", {"float16"}),
    ("attention", "empty-row-nan", EMPTY | {"no weights"}),
    ("attention", "empty-row-uniform", EMPTY | {"no weights"}),
    ("attention", "nan-gradient-on-empty-row", {"gradient with nothing to attend to"}),
    ("attention", "in-place-breaks-autograd", {"gradient with nothing to attend to"}),
    ("attention", "gradient-cut-off", {"gradient", "gradient with nothing to attend to"}),
    ("attention", "result-in-float32", {"float16", "bfloat16", "float64"}),
    ("MultiHeadAttention", "no-scale", {"scores", "gradient"}),
    (
        "MultiHeadAttention",
        "split-without-transpose",
        HEADS | {"mask for each sequence", "dropout of weights"},
    ),
    ("MultiHeadAttention", "mask-repeated-in-wrong-order", {"mask for each sequence"}),
    ("MultiHeadAttention", "mask-batch-on-head-axis", {"mask for each sequence"}),
    ("MultiHeadAttention", "weights-returned-too", {"output alone"}),
    ("MultiHeadAttention", "empty-row-uniform", EMPTY),
    ("MultiHeadAttention", "projection-without-bias", {"biases", "everything dropped"}),
    ("MultiHeadAttention", "heads-in-a-list", {"moves to another dtype", "state dict"}),
    ("MultiHeadAttention", "dropout-in-eval", {"no dropout in eval mode"}),
    ("MultiHeadAttention", "dropout-before-softmax", {"everything dropped", "dropout of weights"}),
    ("MultiHeadAttention", "dropout-on-heads", {"dropout of weights"}),
    ("MultiHeadAttention", "dropout-not-rescaled", {"dropout of weights"}),
    ("MultiHeadAttention", "dropout-by-default", {"no dropout by default"}),
    ("CausalSelfAttention", "no-scale", {"scores", "gradient"}),
    ("CausalSelfAttention", "merge-without-transpose", HEADS),
    ("CausalSelfAttention", "mask-not-a-buffer", {"moves to another device"}),
    ("CausalSelfAttention", "mask-not-sliced", {"shorter sequences"}),
    ("CausalSelfAttention", "mask-of-first-call", {"shorter sequences"}),
    ("CausalSelfAttention", "dtype-fixed", {"moves to another dtype"}),
    ("from_builtin", "batch-first-forgotten", {"built in layer with the sequence first"}),
    ("from_builtin", "bias-assumed", {"built in layer without biases"}),
    ("from_builtin", "biases-left-as-they-start", {"built in layer without biases"}),
    ("from_builtin", "weights-shared", {"weights are copies"}),
    ("from_builtin", "mode-lost", {"mode"}),
    ("from_builtin", "dtype-lost", {"dtype"}),
    ("from_builtin", "parameters-frozen", {"can be trained"}),
    ("from_builtin", "source-changed", {"built in layer unchanged"}),
    ("sdpa_attention", "no-scale", {"scale"}),
    ("sdpa_attention", "empty-row-uniform", {"nothing to attend to", "gradient"}),
    ("sdpa_attention", "result-in-float32", {"other dtypes"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(batched_torch, item, slug, parts):
    wrong = pitfalls.variants("batched_torch", item)[slug]
    assert lost_by(grade(batched_torch, item, wrong)) == parts


def test_most_of_from_builtin_can_be_had_with_a_layer_that_computes_nothing(batched_torch):
    class Unfinished(torch_attention.MultiHeadAttention):
        def forward(self, x, mask=None):
            raise NotImplementedError

    def from_builtin(builtin):
        layer = torch_attention.from_builtin(builtin)
        layer.__class__ = Unfinished
        return layer

    row = grade(batched_torch, "from_builtin", from_builtin)
    assert row.score >= row.max_score / 2


def test_a_missing_parameter_is_named(batched_torch):
    class Renamed(torch_attention.MultiHeadAttention):
        def __init__(self, d_model, num_heads, dropout=0.0):
            super().__init__(d_model, num_heads, dropout)
            self.W_Q, self.q_proj = self.q_proj, None

    row = grade(batched_torch, "MultiHeadAttention", Renamed)
    assert "no parameter q_proj.weight of shape (6, 6)" in row.reasons["values"]
    assert row.slugs == {}


def test_code_that_looks_at_numbers_may_fail_on_a_device_without_any(batched_torch):
    class Looks(torch_attention.CausalSelfAttention):
        def forward(self, x):
            output = super().forward(x)
            return output if output.abs().max() < 1e30 else output.nan_to_num()

    assert lost_by(grade(batched_torch, "CausalSelfAttention", Looks)) == set()


def test_the_recognised_mistake_does_not_depend_on_the_name_of_the_class(batched_torch):
    wrong = pitfalls.variants("batched_torch", "CausalSelfAttention")["mask-not-a-buffer"]
    renamed = type("CausalSelfAttention", (wrong,), {})
    row = grade(batched_torch, "CausalSelfAttention", renamed)
    assert row.slugs == {"moves to another device": "mask-not-a-buffer"}


# Junk is a verdict on the student, never a crash of the grader

JUNK = [
    None,
    "text",
    3.5,
    (),
    {},
    torch.tensor(1.0),
    torch.ones(2, 3) > 0,
    torch.full((2, 5, 6), float("nan")),
    torch.ones(2, 3, 4, 5, 6),
    torch.ones(0, 4),
    (torch.ones(2), None),
    (None, torch.ones(2)),
    torch.ones(2, 5, 6).numpy(),
    object(),
]


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(batched_torch, item):
    for junk in JUNK:
        row = grade(batched_torch, item, lambda *arguments, **options: junk)  # noqa: B023 - called at once
        assert row.score == 0, junk


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_of_junk_earns_almost_nothing(batched_torch, item):
    for junk in JUNK:

        class Junk(getattr(torch_attention, item)):
            def forward(self, x, mask=None, junk=junk):
                return junk

        row = grade(batched_torch, item, Junk)
        assert row.score == 0, junk
        assert row.slugs == {}


class NoModule:
    def __init__(self, *sizes, **options):
        pass


class Bare(nn.Module):
    def __init__(self, *sizes, **options):
        super().__init__()


@pytest.mark.parametrize("item", LAYERS)
@pytest.mark.parametrize("junk", [NoModule, Bare, lambda *sizes, **options: 3, nn.Linear])
def test_a_class_that_is_no_such_layer_earns_nothing(batched_torch, item, junk):
    assert grade(batched_torch, item, junk).score == 0


@pytest.mark.parametrize("right_calls", [1, 2])
@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_that_turns_to_junk_is_a_verdict_too(batched_torch, item, right_calls):
    for junk in JUNK:

        class Turning(getattr(torch_attention, item)):
            calls = 0

            def forward(self, *arguments, junk=junk):
                Turning.calls += 1
                return super().forward(*arguments) if Turning.calls <= right_calls else junk

        row = grade(batched_torch, item, Turning)
        assert row.score < row.max_score / 2


# The notebook, in the sandbox


def hand_in(batched_torch, sources):
    notebook = nbformat.v4.new_notebook()
    for cell in batched_torch.cells:
        if cell.kind == "solution":
            source = sources.get(cell.id, cell.released)
            made = nbformat.v4.new_code_cell(source, id=cell.id)
            made.metadata["nbgrader"] = {"grade_id": cell.id, "solution": True}
            notebook.cells.append(made)
    return nbformat.writes(notebook).encode()


def test_the_solutions_get_everything_and_the_released_notebook_nothing(course, batched_torch):
    settings = Settings(secret=b"secret", course=course)
    solutions = {cell.id: cell.source for cell in batched_torch.cells if cell.kind == "solution"}
    record = grade_submission(batched_torch, settings, hand_in(batched_torch, solutions))
    failed = [
        (item.name, part.name, part.message)
        for item in record.items
        for part in item.parts
        if part.status != "pass"
    ]
    assert failed == []
    record = grade_submission(batched_torch, settings, hand_in(batched_torch, {}))
    assert {part.status for item in record.items for part in item.parts} <= {"error", "not-run"}
