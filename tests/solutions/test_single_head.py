"""The assignment `single_head`: what partly right answers earn, and the notebook with its solutions."""

import numpy as np

from mha_lib import pitfalls


def test_a_head_that_handles_no_mask_still_earns_nearly_half(grade):
    row = grade("attention", pitfalls.variants("single_head", "attention")["mask-no-effect"])
    assert 0.4 * row.max_score < row.score <= 0.5 * row.max_score


def test_padding_between_tokens_is_tested_by_itself(lost):
    def only_at_the_end(n, keep=None):
        causal = np.tri(n, dtype=bool)
        return causal if keep is None else causal & (np.arange(n) < keep.sum(-1)[:, None, None, None])

    assert lost("decoder_mask", only_at_the_end) == {"padding anywhere"}


# The notebook, from top to bottom


def test_with_the_solutions_every_check_is_ok_and_the_demonstration_shows_the_limit(run_solved, text_of):
    shares = text_of(run_solved()["measure_one_head"]).splitlines()
    assert [float(line.split()[-1]) for line in shares] == [0.5, 0.5, 0.5, 1.0, 0.25, 0.5]
