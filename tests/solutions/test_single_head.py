"""The assignment `single_head`: what each mistake costs, what junk does, and the notebook from top to bottom."""

import shutil
from itertools import chain, repeat

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from mha_grader import assignment as assignments
from mha_grader.kill_table import judge
from mha_lib import pitfalls

FUNCTIONS = ("softmax", "attention", "causal_mask", "padding_mask", "decoder_mask")


@pytest.fixture(scope="session")
def single_head(course):
    return assignments.load(course, "single_head")


def grade(single_head, item, tested):
    """The row of one function, or of a dict of answers."""
    return judge(single_head, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

COSTS = [
    ("softmax", "no-max-subtraction", {"large logits", "rows far apart", "logits far apart in a row"}),
    ("softmax", "min-subtraction", {"logits far apart in a row"}),
    ("softmax", "global-max-subtraction", {"rows far apart"}),
    ("softmax", "softmax-fixed-axis", {"axis argument"}),
    ("softmax", "input-changed-in-place", {"input unchanged"}),
    ("attention", "no-max-subtraction", {"large scores", "scores far below zero"}),
    ("attention", "no-scale", {"scale", "scale in a batch"}),
    ("attention", "scale-by-dk", {"scale", "scale in a batch"}),
    ("attention", "scale-by-value-dim", {"scale", "scale in a batch"}),
    ("attention", "scale-by-axis-one", {"scale in a batch"}),
    ("attention", "weights-returned-before-softmax", {"weights", "masked weights"}),
    ("attention", "only-output-returned", {"weights", "masked weights"}),
    ("attention", "mask-fill-not-negative-enough", {"scores far below zero"}),
    ("attention", "first-mask-for-all-sequences", {"mask for each sequence"}),
    ("attention", "input-changed-in-place", {"inputs unchanged"}),
    ("causal_mask", "causal-top-left", {"more keys than queries"}),
    ("causal_mask", "square-mask-assumed", {"more keys than queries"}),
    ("causal_mask", "mask-with-extra-axes", {"shape"}),
    ("causal_mask", "mask-not-boolean", {"boolean"}),
    ("padding_mask", "max-len-ignored", {"room to spare"}),
    ("padding_mask", "padding-without-broadcast-axes", {"shape"}),
    ("padding_mask", "padding-on-query-axis", {"shape"}),
    ("padding_mask", "mask-not-boolean", {"boolean"}),
    ("decoder_mask", "none-not-handled", {"all tokens real"}),
    ("decoder_mask", "mask-not-boolean", {"boolean"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(single_head, item, slug, parts):
    wrong = pitfalls.variants("single_head", item)[slug]
    assert lost_by(grade(single_head, item, wrong)) == parts


def test_a_head_that_handles_no_mask_still_earns_nearly_half(single_head):
    wrong = pitfalls.variants("single_head", "attention")["mask-no-effect"]
    row = grade(single_head, "attention", wrong)
    assert 0.4 * row.max_score < row.score <= 0.5 * row.max_score


def test_padding_between_tokens_is_tested_by_itself(single_head):
    def only_at_the_end(n, keep=None):
        causal = np.tri(n, dtype=bool)
        return causal if keep is None else causal & (np.arange(n) < keep.sum(-1)[:, None, None, None])

    assert lost_by(grade(single_head, "decoder_mask", only_at_the_end)) == {"padding anywhere"}


# Junk is a verdict on the student, never a crash of the grader

JUNK = [
    None,
    "text",
    3.5,
    (),
    [],
    {},
    np.array(1.0),
    np.array("text"),
    np.array([1j, 2j]),
    np.full((2, 3), np.nan),
    np.ones((2, 3, 4, 5, 6)),
    np.ones((0, 4)),
    (np.ones(2), None),
    (None, np.ones(2)),
    (np.ones(2), np.ones(2), np.ones(2)),
    object(),
]


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(single_head, item):
    for junk in JUNK:
        row = grade(single_head, item, lambda *arguments, **options: junk)  # noqa: B023 - called at once
        assert row.score == 0, junk
        assert set(row.statuses.values()) <= {"fail", "not-run"}, junk


@pytest.mark.parametrize("item", FUNCTIONS)
@pytest.mark.parametrize("right_calls", [1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(single_head, item, right_calls):
    right = getattr(single_head.reference, item)
    for junk in JUNK:
        results = chain(repeat(right, right_calls), repeat(lambda *arguments: junk))  # noqa: B023
        row = grade(single_head, item, lambda *arguments: next(results)(*arguments))  # noqa: B023
        assert row.score < row.max_score, junk
        assert set(row.statuses.values()) <= {"pass", "fail", "not-run"}, junk


# The answers

WRONG_ANSWERS = {
    "variance": [10, 1, None, "100", True, [100], np.array([100.0]), float("nan"), 10**400, -(10**400)],
    "scaled_variance": [0.1, 100, 1j],
    "wrong_scale_deviation": [0.125, 8, 2.83],
    "wrong_scale_effect": ["a", "c", "", "ab", 1, b"b"],
    "one_head_share": [1, 0.25, float("inf")],
    "three_heads_share": [0.2, 3, 1],
    "wider_head": ["a", "b", {}],
    "half_and_half": ["a", "c"],
}


@pytest.mark.parametrize("question", WRONG_ANSWERS)
def test_a_wrong_answer_costs_its_own_point(single_head, question):
    right = single_head.reference.answers
    for wrong in WRONG_ANSWERS[question]:
        row = grade(single_head, "answers", right | {question: wrong})
        assert lost_by(row) == {question.replace("_", " ")}, wrong


def test_every_question_is_graded(single_head):
    right = single_head.reference.answers
    assert set(right) == set(WRONG_ANSWERS)
    assert grade(single_head, "answers", right).score == len(right)


def test_answers_may_be_rounded_and_written_large(single_head):
    answers = single_head.reference.answers | {
        "wrong_scale_deviation": 0.354,
        "one_head_share": np.float32(0.2),
        "variance": np.int64(100),
        "wider_head": " C ",
    }
    assert lost_by(grade(single_head, "answers", answers)) == set()


@pytest.mark.parametrize("junk", [None, [], "text", 3, {}, {1: 2}], ids=repr)
def test_answers_that_are_no_answers_earn_nothing(single_head, junk):
    row = grade(single_head, "answers", junk)
    assert row.score == 0
    assert set(row.statuses.values()) == {"fail"}


def test_a_verdict_on_an_answer_does_not_give_it_away(single_head):
    row = grade(single_head, "answers", dict.fromkeys(WRONG_ANSWERS, 7))
    text = " ".join(row.reasons.values())
    for question, answer in single_head.reference.answers.items():
        assert str(answer) not in text.replace(question, "").split()


# The notebook, from top to bottom


def run(course, tmp_path, sources):
    """Run the released notebook with these sources in place of its own; what failed, by cell."""
    folder = tmp_path / "single_head"
    shutil.copytree(course / "exercises" / "single_head", folder)
    notebook = nbformat.read(folder / "single_head.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    return outputs, {
        cell: output.ename
        for cell, found in outputs.items()
        for output in found
        if output.output_type == "error"
    }


def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(
    course, tmp_path, single_head
):
    solutions = {cell.id: cell.source for cell in single_head.cells if cell.kind == "solution"}
    outputs, failed = run(course, tmp_path, solutions)
    assert failed == {}
    for cell in single_head.cells:
        if cell.kind == "test":
            lines = "".join(output.text for output in outputs[cell.id]).splitlines()
            assert lines, cell.id
            assert all(line.startswith("ok ") for line in lines)
    shares = "".join(output.text for output in outputs["measure_one_head"]).splitlines()
    assert [float(line.split()[-1]) for line in shares] == [0.5, 0.5, 0.5, 1.0, 0.25, 0.5]


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(course, tmp_path):
    outputs, failed = run(course, tmp_path, {})
    assert set(failed.values()) == {"NotImplementedError"}
    assert {f"test_{item}" for item in FUNCTIONS} <= set(failed)
    answers = "".join(output.text for output in outputs["test_answers"]).splitlines()
    assert len(answers) == len(WRONG_ANSWERS)
    assert all(line.endswith("no answer yet") for line in answers)
