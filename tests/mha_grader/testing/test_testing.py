"""The expectations accept what is right, refuse everything else, and never tell a hidden value."""

import numpy as np
import pytest
import torch

from mha_grader import testing
from mha_grader.sandbox.wire import Opaque
from mha_grader.testing import (
    Mismatch,
    decided_layer,
    decided_qkv,
    expect_answer,
    expect_boolean,
    expect_close,
    expect_equal,
    expect_number,
    expect_raises,
    expect_unchanged,
    expect_whole,
    heads_alone,
    high_qkv,
    low_qkv,
    mask_of,
    number_of,
    output_of,
    pair_of,
    part_for_each,
    random_layer,
    random_mask,
    scalar_qkv,
    stored_layer,
    stored_text,
    tensor,
    undecided_layer,
    undecided_qkv,
    wide_qkv,
)
from mha_grader.testing.proxies import Recorder, local
from mha_grader.testing.values import show
from mha_lib.attention import attention
from mha_lib.multi_head import multi_head_attention
from mha_lib.pruning import pruned_attention
from mha_lib.real_heads import bert_attention


def stand_in(function):
    return Recorder(local(f=function)).bind("f", function)


SECRET = np.array([[31.4159, 27.1828, 16.1803]])


def test_close_within_the_tolerance():
    expect_close(SECRET + 9e-6, SECRET)
    expect_close(SECRET.astype(np.float32), SECRET)
    expect_close(np.array([[1, 2]]), [[1, 2]])
    expect_close(SECRET + 9e-3, SECRET, 1e-2)
    expect_close(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (SECRET + 2e-5, "off by more than 1e-05"),
        (SECRET[0], r"should have shape \(1, 3\), but it has shape \(3,\)"),
        (SECRET.T, "should have shape"),
        (SECRET * np.nan, "NaN or infinite"),
        (SECRET * np.inf, "NaN or infinite"),
        (SECRET > 0, "dtype is bool"),
        (SECRET.tolist(), "a list of 1"),
        (None, "return missing"),
        (Opaque("generator"), "generator"),
        (31.4, "float"),
        ((SECRET, SECRET), "a tuple of 2"),
        (torch.tensor(SECRET), "a tensor"),
    ],
)
def test_what_is_not_close_is_refused_without_telling_the_values(got, words):
    with pytest.raises(Mismatch, match=words) as caught:
        expect_close(got, SECRET)
    for number in ("31.4", "27.18", "16.18"):
        assert number not in str(caught.value)


@pytest.mark.parametrize("value", [3, "text", True, np.array([[True, False]]), np.array([1, 2])])
def test_equal_is_equal(value):
    expect_equal(value, value)


def test_integers_of_numpy_count_as_integers():
    expect_equal(np.array(3), 3)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (4, 3),
        (3.0, 3),
        (True, 1),
        (1, True),
        ("a", "b"),
        (None, 3),
        (np.array([1.0, 0.0]), np.array([True, False])),
        (np.array([1, 0]), np.array([True, False])),
        (np.array([True, True]), np.array([True, False])),
        (np.array([[True, False]]), np.array([True, False])),
        ([True, False], np.array([True, False])),
    ],
)
def test_what_is_not_equal_is_refused(got, expected):
    with pytest.raises(Mismatch):
        expect_equal(got, expected)


def failing(error):
    def function():
        raise error

    return stand_in(function)


def test_an_error_is_expected_by_class_and_words():
    expect_raises(failing(ValueError("7 by 2")), error="ValueError", mentions=["7", "2"])
    expect_raises(failing(UnicodeError("x")), error="ValueError")
    for callee, words in [
        (stand_in(lambda: 1), "raised no error"),
        (failing(TypeError("7 by 2")), "raised TypeError"),
        (failing(ValueError("7")), "not mention all"),
    ]:
        with pytest.raises(Mismatch, match=words):
            expect_raises(callee, error="ValueError", mentions=["7", "2"])


def test_what_is_said_of_a_missing_error_holds_no_number():
    for callee, words in [
        (stand_in(lambda *args: args), "raised no error"),
        (failing(ValueError("7")), "not mention"),
    ]:
        with pytest.raises(Mismatch, match=words) as caught:
            expect_raises(callee, 701, -34, mentions=["701", "34"])
        assert not set("01347") & set(str(caught.value))


def test_a_timeout_is_no_expected_error():
    def callee():
        raise testing.CallError("timeout")

    with pytest.raises(testing.CallError):
        expect_raises(callee)


def test_changed_arguments_are_named():
    def scribble(x, *, y):
        y[0] = 1

    function = stand_in(scribble)
    function(np.zeros(2), y=np.zeros(2))
    with pytest.raises(Mismatch, match=r"changed its argument.* y in place"):
        expect_unchanged(function)


def test_a_tensor_is_expected_with_its_dtype():
    expected = torch.tensor(SECRET, dtype=torch.bfloat16)
    expect_close(expected + 0, expected, 3e-2)
    for got, words in [
        (expected.float(), "should have dtype torch.bfloat16"),
        (SECRET, "should be a tensor"),
        (expected[0], "should have shape"),
        (expected * float("nan"), "NaN"),
        (expected + 1, "off by more"),
    ]:
        with pytest.raises(Mismatch, match=words):
            expect_close(got, expected, 3e-2)


# --- results and answers


ANSWERS = {"number": 0.125, "choice": "b"}


@pytest.mark.parametrize(
    ("question", "answer"),
    [("number", 0.125), ("number", 0.1299), ("number", np.array(0.12)), ("choice", "b"), ("choice", " B ")],
)
def test_a_right_answer_is_right(question, answer):
    expect_answer({question: answer}, ANSWERS, question)


@pytest.mark.parametrize(
    ("answers", "question", "words"),
    [
        (None, "number", "should be a dict"),
        ({}, "number", r"answers\['number'\] is empty"),
        ({"number": 0.1301}, "number", "not the right number"),
        ({"number": float("nan")}, "number", "should be finite"),
        ({"number": "0.125"}, "number", "should be a number"),
        ({"number": True}, "number", "should be a number"),
        ({"number": np.array([0.125])}, "number", "should be a number"),
        ({"choice": "a"}, "choice", "not the right choice"),
        ({"choice": "bb"}, "choice", "should be one letter"),
        ({"choice": 2}, "choice", "should be one letter"),
    ],
)
def test_a_wrong_answer_is_refused_without_telling_the_right_one(answers, question, words):
    with pytest.raises(Mismatch, match=words) as caught:
        expect_answer(answers, ANSWERS, question)
    own = (
        show(answers.get(question)) if isinstance(answers, dict) else "-"
    )  # what the student answered may be told
    assert "0.125" not in str(caught.value).replace(own, "")


def test_the_tolerance_of_an_answer_can_be_larger():
    expect_answer({"number": 0.13}, ANSWERS, "number", tolerance=0.01)


def test_a_number_is_a_number_whole_or_not():
    for result in (3, 3.0, np.array(3), torch.tensor(3)):
        assert number_of(result, "the count") == 3
    assert number_of(10**400, "the count") == 10**400
    for result in (
        float("inf"),
        -np.inf,
        np.array(np.nan),
        np.array(np.inf, np.float16),
        torch.tensor(np.inf),
    ):
        with pytest.raises(Mismatch, match="the count should be finite"):
            number_of(result, "the count")
    for result in (True, "3", None, np.array([3]), 3j):
        with pytest.raises(Mismatch, match="the count should be a number"):
            number_of(result, "the count")


def test_the_right_number_may_be_whole_or_not_and_that_can_be_asked_for():
    for result in (3, 3.0, np.array(3)):
        expect_number(result, 3, "the count")
    for result, words in [(4, "the count is not right"), ("3", "the count should be a number")]:
        with pytest.raises(Mismatch, match=words):
            expect_number(result, 3, "the count")
    for result in (3, np.array(4)):
        expect_whole(result, "the count")
    for result, words in [(3.0, "should be an int, but it is a float"), (True, "should be a number")]:
        with pytest.raises(Mismatch, match=words):
            expect_whole(result, "the count")


def test_a_part_for_each_question_checks_that_question():
    proves = {"how_many": "What is counted.", "why": "What follows."}
    first, second = part_for_each(
        lambda question: expect_answer({"how_many": 3, "why": "a"}, {"how_many": 3, "why": "b"}, question),
        points=2,
        proves=proves,
    )
    assert [(part.name, part.proves) for part in (first, second)] == [
        ("how many", "What is counted."),
        ("why", "What follows."),
    ]
    assert (first.points, first.needs, first.example) == (2.0, (), None)
    first.run(np.random.default_rng(0))
    with pytest.raises(Mismatch, match=r"why.* is not the right choice"):
        second.run(np.random.default_rng(0))


def test_a_mask_is_an_array_of_booleans_or_numbers():
    for result in (np.array([True]), np.array([1]), np.array([1.0])):
        assert mask_of(result) is result
    for result in (None, [True], np.array(["yes"]), np.array([1j])):
        with pytest.raises(Mismatch, match="the mask should be a boolean array, but it is"):
            mask_of(result)


def test_a_mask_of_booleans_can_be_asked_for():
    expect_boolean(np.array([True, False]))
    for result, words in [(np.array([1, 0]), "its dtype is int64"), ([True], "should be a boolean array")]:
        with pytest.raises(Mismatch, match=words):
            expect_boolean(result)


def test_the_output_may_come_alone_or_in_a_pair():
    for result, output in [((1, 2), 1), ([1, 2], 1), (1, 1), ((1, 2, 3), (1, 2, 3))]:
        assert output_of(result) == output
    assert pair_of([1, 2]) == (1, 2)
    for result in (1, None, (1,), (1, 2, 3), {1: 2, 3: 4}):
        with pytest.raises(Mismatch, match="it should return two results"):
            pair_of(result)


def test_a_tensor_has_single_precision_if_it_has_floats():
    assert tensor(np.ones((2, 3)).T).dtype == torch.float32
    assert tensor(np.array([True])).dtype == torch.bool
    assert tensor(np.array([1])).dtype == torch.int64


# --- inputs


def test_a_random_mask_has_both_in_each_row_but_for_the_empty_ones():
    mask = random_mask(np.random.default_rng(0), 2, 1, 5, 7, empty_rows=2)
    assert (mask.shape, mask.dtype) == ((2, 1, 5, 7), bool)
    assert (~mask).any(axis=-1).all()
    assert mask.any(axis=-1).sum(axis=-1).tolist() == [[3], [3]]
    assert random_mask(np.random.default_rng(0), 5, 7).any(axis=-1).all()


def at_scale(Q, K, V, scale):
    """Attention whose scores are divided by something else than √d_k."""
    return attention(Q * np.sqrt(Q.shape[-1]) / scale, K, V)[0]


def test_on_decided_tokens_no_scale_makes_a_difference():
    Q, K, V = decided_qkv(np.random.default_rng(0), 2, 3)
    assert (Q.shape, K.shape, V.shape) == ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
    for scale in (1.0, 4.0, np.sqrt(12)):
        expect_close(at_scale(Q, K, V, scale), attention(Q, K, V)[0])
    assert np.ptp(attention(Q, K, V)[1], axis=-1).max() > 0.3  # but the queries do tell the keys apart


def test_on_tokens_of_width_1_the_root_of_the_width_does_nothing():
    Q, K, V = scalar_qkv(np.random.default_rng(0), 2, n=3, m=4)
    assert (Q.shape, K.shape, V.shape) == ((2, 3, 1), (2, 4, 1), (2, 4, 1))


def test_on_wide_tokens_only_the_right_scale_gives_the_right_output():
    Q, K, V = wide_qkv(np.random.default_rng(0), 2, 3)
    assert (Q.shape, K.shape, V.shape) == ((2, 3, 5, 24), (2, 3, 7, 24), (2, 3, 7, 6))
    expect_close(at_scale(Q, K, V, np.sqrt(24)), attention(Q, K, V)[0])
    for scale in (1.0, 24.0, np.sqrt(6)):
        with pytest.raises(Mismatch, match="off by more"):
            expect_close(at_scale(Q, K, V, scale), attention(Q, K, V)[0])


@pytest.mark.parametrize(("qkv", "least", "most"), [(low_qkv, -20050, 5050), (high_qkv, -3050, 3050)])
def test_scores_far_from_zero_lie_close_to_each_other_in_each_row(qkv, least, most):
    Q, K, V = qkv(np.random.default_rng(0))
    assert (Q.shape, K.shape, V.shape) == ((5, 1), (7, 1), (7, 1))
    scores = Q @ K.T
    assert least < scores.min() < 0.97 * least
    assert 0.97 * most < scores.max() < most
    assert 0.001 < np.ptp(scores, axis=-1).max() < 15


def test_undecided_tokens_get_equal_weights():
    Q, K, V = undecided_qkv(np.random.default_rng(0), 2)
    assert (Q.shape, K.shape, V.shape) == ((2, 5, 1), (2, 7, 1), (2, 7, 6))
    expect_close(attention(Q, K, V)[1], np.full((2, 5, 7), 1 / 7))
    X, W_Q, W_K, W_V, W_O, num_heads = undecided_layer(np.random.default_rng(0), 2, 5, 3, 4)
    assert (X.shape, num_heads) == ((2, 5, 12), 3)
    expect_close(
        multi_head_attention(X, W_Q, W_K, W_V, W_O, 3), np.broadcast_to(X.mean(1, keepdims=True), X.shape)
    )


def test_a_random_layer_depends_on_all_its_weights():
    *layer, num_heads = random_layer(np.random.default_rng(0), batch=2, n=5, num_heads=3, d_k=4)
    output = multi_head_attention(*layer, num_heads)
    assert output.shape == layer[0].shape == (2, 5, 12)
    for index in range(1, 5):
        changed = [*layer[:index], layer[index] + 0.5, *layer[index + 1 :]]
        assert np.abs(multi_head_attention(*changed, num_heads) - output).max() > 1e-3


@pytest.mark.parametrize(("num_kv_heads", "d_model"), [(None, None), (2, None), (None, 20)])
def test_in_a_decided_layer_every_query_finds_one_kind_of_key_and_other_scores_are_28_lower(
    num_kv_heads, d_model
):
    rng = np.random.default_rng(0)
    X, W_Q, W_K, W_V, W_O, num_heads = decided_layer(
        rng, batch=2, n=5, num_heads=6, d_k=3, num_kv_heads=num_kv_heads, d_model=d_model
    )
    width, kv_width, kv_heads = 18, 3 * (num_kv_heads or 6), num_kv_heads or 6
    assert (X.shape, num_heads) == ((2, 5, d_model or 18), 6)
    assert W_Q.shape[1] == W_O.shape[0] == width
    assert W_K.shape[1] == W_V.shape[1] == kv_width
    for i in range(6):
        j = i // (6 // kv_heads)
        Q, K = (X @ W_Q)[..., 3 * i : 3 * i + 3], (X @ W_K)[..., 3 * j : 3 * j + 3]
        scores = (Q @ np.swapaxes(K, 1, 2) / np.sqrt(3)).round(9)  # (batch, n, n)
        assert set(scores.ravel().tolist()) == {0.0, -28.0}
        assert (scores == 0.0).any(axis=-1).all()
        assert (scores != np.swapaxes(scores, 1, 2)).any()  # so that queries and keys cannot be exchanged


def test_a_stored_layer_is_a_layer_with_transposed_weights_and_the_biases_that_were_asked_for():
    x, weights, num_heads = stored_layer(np.random.default_rng(0), 2, 4, num_heads=5, d_k=3)
    plain = [weights[name]["weight"].T for name in ("query", "key", "value", "dense")]
    expect_close(bert_attention(x, weights, num_heads)[0], pruned_attention(x, *plain, num_heads))
    _, weights, _ = stored_layer(np.random.default_rng(0), 2, 4, 5, 3, biased=["value"])
    assert [name for name in weights if weights[name]["bias"].any()] == ["value"]


def test_a_layer_of_heads_alone_passes_them_on_whatever_w_o_was():
    layer = decided_layer(np.random.default_rng(0), batch=2, n=5, num_heads=2, d_k=3, d_model=10)
    X, W_Q, W_K, W_V, W_O, num_heads = heads_alone(layer)
    assert num_heads == 2
    for got, given in zip((X, W_Q, W_K, W_V), layer, strict=False):
        assert got is given
    expected = np.concatenate(  # head by head
        [attention(*(X @ W[:, own] for W in (W_Q, W_K, W_V)))[0] for own in (slice(0, 3), slice(3, 6))],
        axis=-1,
    )
    expect_close(pruned_attention(X, W_Q, W_K, W_V, W_O, 2)[..., :6], expected)


def test_the_text_of_a_stored_layer_is_that_of_four_linear_layers():
    for text, x, right in [
        (stored_text(2), [[[3.0, 4.0]]], [[[3.0, 4.0]]]),
        (stored_text(2, weight="2.0 * np.eye(2)"), [[[3.0, 4.0]]], [[[12.0, 16.0]]]),
        (stored_text(1, bias="np.ones(1)"), [[[3.0]]], [[[5.0]]]),
    ]:
        weights = eval(text, {"np": np})
        assert list(weights) == ["query", "key", "value", "dense"]
        expect_close(bert_attention(np.array(x), weights, 1)[0], np.array(right))
