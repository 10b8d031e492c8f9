"""The assignment `transformer_block`: what each mistake costs, what junk does, and the notebook in the sandbox."""

import nbformat
import numpy as np
import pytest
import torch
from torch import nn

from mha_grader import assignment as assignments
from mha_grader.grading import Settings, grade_submission
from mha_grader.kill_table import judge
from mha_lib import pitfalls, transformer

LAYERS = ("FeedForward", "TransformerBlock")


@pytest.fixture(scope="session")
def transformer_block(course):
    return assignments.load(course, "transformer_block")


def grade(transformer_block, item, tested):
    """The row of one class, or of a dict of answers."""
    return judge(transformer_block, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

POST_NORM = {"post norm attention", "post norm feed forward", "post norm", "mask", "registered"}
POST_NORM |= {"order of tokens does not matter"}
COSTS = [
    ("FeedForward", "relu-instead-of-gelu", {"curve", "exact gelu"}),
    ("FeedForward", "activation-missing", {"curve", "exact gelu"}),
    ("FeedForward", "gelu-approximated", {"exact gelu"}),
    ("FeedForward", "projection-without-bias", {"biases"}),
    ("FeedForward", "dropout-by-default", {"no dropout"}),
    ("FeedForward", "heads-in-a-list", {"registered"}),
    ("FeedForward", "gradient-cut-off", {"gradient"}),
    ("TransformerBlock", "norm-first-ignored", POST_NORM),
    ("TransformerBlock", "norm-on-the-branch", POST_NORM),
    ("TransformerBlock", "post-norm-by-default", {"pre norm by default"}),
    (
        "TransformerBlock",
        "halves-in-parallel",
        {"pre norm", "post norm", "two norms", "whole block", "gradient"},
    ),
    ("TransformerBlock", "one-norm-for-both", {"two norms", "gradient"}),
    ("TransformerBlock", "norms-exchanged", {"two norms", "gradient"}),
    ("TransformerBlock", "norm-epsilon", {"epsilon"}),
    ("TransformerBlock", "mask-not-passed-on", {"mask", "mask in pre norm"}),
    ("TransformerBlock", "mask-inverted", {"mask", "mask in pre norm"}),
    ("TransformerBlock", "dropout-by-default", {"no dropout"}),
    ("TransformerBlock", "heads-in-a-list", {"registered"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(transformer_block, item, slug, parts):
    wrong = pitfalls.variants("transformer_block", item)[slug]
    assert lost_by(grade(transformer_block, item, wrong)) == parts


def test_a_mistake_in_the_feed_forward_network_is_not_paid_for_twice(transformer_block):
    class Block(transformer.TransformerBlock):
        def __init__(self, d_model, num_heads, d_ff, norm_first=True):
            super().__init__(d_model, num_heads, d_ff, norm_first)
            wrong = pitfalls.variants("transformer_block", "FeedForward")["relu-instead-of-gelu"]
            self.feed_forward = wrong(d_model, d_ff)

    assert lost_by(grade(transformer_block, "TransformerBlock", Block)) == {"whole block"}


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
    torch.ones(0, 4),
    (torch.ones(2), None),
    torch.ones(2, 5, 6).numpy(),
    object(),
]


class Bare(nn.Module):
    def __init__(self, *sizes, **options):
        super().__init__()


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_of_junk_earns_nothing(transformer_block, item):
    for junk in JUNK:

        class Junk(getattr(transformer, item)):
            def forward(self, x, mask=None, junk=junk):
                return junk

        assert grade(transformer_block, item, Junk).score == 0, junk


@pytest.mark.parametrize("item", LAYERS)
@pytest.mark.parametrize("junk", [Bare, lambda *sizes, **options: 3, nn.Bilinear])
def test_a_class_that_is_no_such_layer_earns_nothing(transformer_block, item, junk):
    assert grade(transformer_block, item, junk).score == 0


@pytest.mark.parametrize("item", LAYERS)
def test_a_layer_that_turns_to_junk_is_a_verdict_too(transformer_block, item):
    for junk in JUNK:

        class Turning(getattr(transformer, item)):
            calls = 0

            def forward(self, *arguments, junk=junk):
                Turning.calls += 1
                return super().forward(*arguments) if Turning.calls <= 2 else junk

        row = grade(transformer_block, item, Turning)
        assert row.score < row.max_score


# The answers

WRONG_ANSWERS = {
    "pre_norm_of_nothing": ["b", "c", "", "ab", 1],
    "post_norm_of_nothing": ["a", "c", None],
    "norms_on_the_path": [0, 12, "24", True, float("nan"), 10**400],
    "size_with_depth": ["b", "c"],
    "mixing": ["b", "c"],
    "reach": [2, 6, 13, 18, [12], np.array([12.0])],
    "reach_with_heads": [12, 6, 3],
    "parameters": [3145728, 4 * 512**2, 3150336, 1j],  # without biases and norms; without the norms
}


@pytest.mark.parametrize("question", WRONG_ANSWERS)
def test_a_wrong_answer_costs_its_own_point(transformer_block, question):
    right = transformer_block.reference.answers
    for wrong in WRONG_ANSWERS[question]:
        row = grade(transformer_block, "answers", right | {question: wrong})
        assert lost_by(row) == {question.replace("_", " ")}, wrong


def test_every_question_is_graded(transformer_block):
    right = transformer_block.reference.answers
    assert set(right) == set(WRONG_ANSWERS)
    assert grade(transformer_block, "answers", right).score == len(right)


@pytest.mark.parametrize("junk", [None, [], "text", 3, {}, {1: 2}], ids=repr)
def test_answers_that_are_no_answers_earn_nothing(transformer_block, junk):
    row = grade(transformer_block, "answers", junk)
    assert row.score == 0
    assert set(row.statuses.values()) == {"fail"}


def test_the_answers_are_what_a_run_gives(transformer_block):
    right = transformer_block.reference.answers
    block = transformer.TransformerBlock(512, 8, 2048)
    assert sum(parameter.numel() for parameter in block.parameters()) == right["parameters"]
    for depth, num_heads, question in ((6, 1, "reach"), (1, 6, "reach_with_heads")):
        x = torch.randn(1, 16, 12, requires_grad=True)
        near = torch.ones(16, 16, dtype=torch.bool).tril().triu(-2)
        y = x
        for _ in range(depth):
            y = transformer.TransformerBlock(12, num_heads, 20)(y, near)
        (y[0, -1] * torch.randn(12)).sum().backward()
        seen = [15 - i for i in range(16) if x.grad[0, i].any()]
        assert max(seen) == right[question]


# The notebook, in the sandbox


def hand_in(transformer_block, sources):
    notebook = nbformat.v4.new_notebook()
    for cell in transformer_block.cells:
        if cell.kind == "solution":
            source = sources.get(cell.id, cell.released)
            made = nbformat.v4.new_code_cell(source, id=cell.id)
            made.metadata["nbgrader"] = {"grade_id": cell.id, "solution": True}
            notebook.cells.append(made)
    return nbformat.writes(notebook).encode()


def test_the_solutions_get_everything_and_the_released_notebook_nothing(course, transformer_block):
    settings = Settings(secret=b"secret", course=course)
    solutions = {cell.id: cell.source for cell in transformer_block.cells if cell.kind == "solution"}
    record = grade_submission(transformer_block, settings, hand_in(transformer_block, solutions))
    failed = [
        (item.name, part.name, part.message)
        for item in record.items
        for part in item.parts
        if part.status != "pass"
    ]
    assert failed == []
    record = grade_submission(transformer_block, settings, hand_in(transformer_block, {}))
    assert "pass" not in {part.status for item in record.items for part in item.parts}
