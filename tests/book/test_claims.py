"""What pages say in words about their experiments holds for the very numbers that they show.

A page trains its models when it is built, so nothing is trained here. `mha_lib/experiments` has tests of its own.
"""

import json
import re

import pytest


@pytest.fixture
def shown(book):
    """The numbers that a page puts into its text: a page's name -> their names -> all numbers in a value."""

    def of_page(name):
        file = book.parent / "jupyter_execute" / "book" / f"{name}.glue.json"
        values = json.loads(file.read_text("utf-8"))
        texts = {
            key: value["data"]["text/plain"] for key, value in values.items() if "text/plain" in value["data"]
        }
        return {
            key: [float(x) for x in re.findall(r"\d+\.?\d*(?:e-\d+)?", text)] for key, text in texts.items()
        }

    return of_page


@pytest.fixture
def one(shown):
    """The same for values of a single number."""
    return lambda name: {key: found[0] for key, found in shown(name).items() if len(found) == 1}


def test_one_head_carries_a_quarter_of_four_contents_and_one_of_two_tokens(one):
    page = one("limit_of_one_head")
    for heads, bound in ((1, 0.25), (2, 0.5), (4, 1), (8, 1)):
        assert page[f"blind-{heads}"] == pytest.approx(bound, abs=0.002)
        assert -0.002 < page[f"seeing-{heads}"] - page[f"blind-{heads}"] < 0.05
    assert page["one-best"] > 99
    assert page["one-both"] == pytest.approx(page["chance"], abs=2)
    assert page["two-both"] > 99
    assert page["hidden-both"] > 99


def test_heads_in_the_middle_are_faultless_and_the_ends_are_not(one, shown):
    page = one("how_many_heads")
    assert page["recall-1"] == pytest.approx(100 / 8, abs=5)
    assert page["recall-1"] < page["one-by-hand"]
    assert page["recall-4"] > 99
    assert page["recall-64"] < 90
    assert page["sweep-middle"] > 99
    assert page["thinner"] < page["recall-64"] < page["wider"]
    assert page["three-1"] < page["three-2"] < page["three-4"]
    # what is stored is what the page finds again
    for heads in (1, 64):
        low, *_, high = shown("how_many_heads")[f"sweep-{heads}-400"]
        assert low - 2 < page[f"recall-{heads}"] < high + 2


def test_heads_that_start_alike_stay_alike_and_others_part(one):
    page = one("why_heads_differ")
    for width in ("narrow", "wide"):
        assert page[f"{width}-equal-after"] == page[f"{width}-equal-before"] == 0
        assert page[f"{width}-equal-right"] < 30
        assert page[f"{width}-apart-after"] > 5 * page[f"{width}-apart-before"]
        assert page[f"{width}-apart-right"] > 99
    assert page["parted-more"] < page["parted-independent"] < page["parted-small"] < page["parted-tiny"]


def test_order_is_learned_from_positions_and_hardly_from_the_mask(one):
    page = one("position_and_heads")
    assert page["position-chance"] < page["none-far"] < page["none-near"] < 50
    assert page["rotary-near"] > 99
    assert page["rotary-far"] > 99
    assert page["rotary-shifted"] > 99
    assert page["learned-shifted"] < 70
    assert page["sinusoidal-shifted"] < 70
    assert page["alibi-far"] < 50 < page["alibi-near"] < page["alibi-near-more"]
    assert page["alibi-longer"] > max(
        page["rotary-longer"], page["learned-longer"], page["sinusoidal-longer"]
    )


def test_two_blocks_follow_the_pointer_that_one_block_only_reads(one, shown):
    page = one("transformer_block")
    for stack in ("2 blocks, 1 head each", "1 block, 1 head"):
        assert page[f"{stack}: pointer"] > 99
    assert page["2 blocks, 1 head each: content"] > 0.95
    assert page["1 block, 1 head: content"] < 1 / 8 + 0.02
    assert page["1 block, 8 heads: content"] < 1 / 2
    assert page["three-hops"] > 99
    assert (
        max(shown("transformer_block")["pointers-400"])
        < 40
        < 90
        < min(shown("transformer_block")["pointers-3000"])
    )


def test_the_last_gradients_of_a_pre_norm_stack_shrink_with_the_root_of_its_depth(shown):
    mean = {name: found[0] for name, found in shown("transformer_block").items()}
    assert mean["pre-norm-24"] / mean["pre-norm-6"] == pytest.approx(1 / 2, abs=0.15)
    assert mean["post-norm-24"] > 0.8 * mean["post-norm-6"]


def test_induction_needs_two_layers_and_lives_on_the_previous_token(one):
    page = one("induction_heads")
    assert page["2 layers, 2 heads"] > 99
    assert max(page["1 layer, 2 heads"], page["1 layer, 4 heads"]) < 50
    assert page["jump-before"] < 20 < 90 < page["jump-after"]
    assert page["feeder-score"] > page["bystander-score"]
    assert page["induction-low"] > 0.8 > 4 * page["base-induction"]
    assert page["no-first-right"] < page["no-feeder-right"] < 50 < 99 < page["no-bystander-right"]
    assert page["no-feeder-score"] < page["all-score"] / 2
    assert page["exact-right"] > page["all-right"] - 5
    assert page["no-finders-right"] < 20


def test_one_layer_is_enough_for_easier_tasks_and_its_solution_does_not_carry_over(one):
    page = one("induction_heads")
    assert page["fixed-there"] > 99 > 50 > page["fixed-here"]
    assert page["unseen"] > 95
    assert page["rule-there"] > 99


def test_no_seed_of_induction_was_lucky(one):
    page = one("induction_heads")
    assert page["deep-lowest"] > 0.7 > 0.3 > page["shallow-highest"]
    assert page["both-highest"] < 20 < 80 < page["single-lowest"]


def test_pooled_heads_look_worthless_and_are_a_good_start(shown):
    page = shown("pruning_pooling")
    assert min(page["toy-before"]) > 95
    assert max(page["toy-pooled-2"]) < 20
    assert max(page["toy-pooled-1"]) < 10
    assert min(page["toy-uptrained-2"]) > 50 > max(page["toy-uptrained-1"])
    assert page["toy-scratch"][0] < 5


def test_a_sink_grows_where_there_is_room_for_one_and_linear_attention_forgets(one):
    page = one("heads_since_2023")
    assert page["sink-weight"] > 90
    assert page["off-sum"] < 0.1
    assert page["linear-plain"] < 80
    assert page["linear-plain"] == pytest.approx(page["linear-steps"], abs=5)
