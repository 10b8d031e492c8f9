"""The assignment `single_head`: what each mistake costs, what junk does, and the notebook from top to bottom."""

import numpy as np
import pytest

from mha_lib import pitfalls

FUNCTIONS = ("softmax", "attention", "causal_mask", "padding_mask", "decoder_mask")


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
def test_a_mistake_costs_only_the_parts_about_it(lost_to, item, slug, parts):
    assert lost_to(item, slug) == parts


def test_a_head_that_handles_no_mask_still_earns_nearly_half(grade):
    row = grade("attention", pitfalls.variants("single_head", "attention")["mask-no-effect"])
    assert 0.4 * row.max_score < row.score <= 0.5 * row.max_score


def test_padding_between_tokens_is_tested_by_itself(lost):
    def only_at_the_end(n, keep=None):
        causal = np.tri(n, dtype=bool)
        return causal if keep is None else causal & (np.arange(n) < keep.sum(-1)[:, None, None, None])

    assert lost("decoder_mask", only_at_the_end) == {"padding anywhere"}


# Junk is a verdict on the student, never a crash of the grader


@pytest.mark.parametrize("item", FUNCTIONS)
@pytest.mark.parametrize("right_calls", [0, 1, 2, 3])
def test_a_function_that_turns_to_junk_is_a_verdict_too(turns_to_junk, item, right_calls):
    turns_to_junk(item, right_calls)


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_the_demonstration_shows_the_limit(run_solved, text_of):
    shares = text_of(run_solved()["measure_one_head"]).splitlines()
    assert [float(line.split()[-1]) for line in shares] == [0.5, 0.5, 0.5, 1.0, 0.25, 0.5]


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(assignment, run, text_of):
    outputs, failed = run({})
    assert set(failed.values()) == {"NotImplementedError"}
    assert {f"test_{item}" for item in FUNCTIONS} <= set(failed)
    answers = text_of(outputs["test_answers"]).splitlines()
    assert len(answers) == len(assignment.reference.answers)
    assert all(line.endswith("no answer yet") for line in answers)
