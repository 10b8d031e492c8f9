import torch

from mha_lib.experiments.head_sweep import D_MODEL, KEYS, VALUES, N, RecallLayer, key_value_recall, make_batch


def test_every_query_names_keys_of_the_sequence_and_wants_their_values():
    torch.manual_seed(0)
    queries, tokens, right = make_batch(5, asked=3)
    assert queries.shape == (5, N, 3 * KEYS)
    assert tokens.shape == (5, N, KEYS + VALUES)
    for sequence, asking, answers in zip(tokens, queries, right, strict=True):
        keys, values = sequence[:, :KEYS].argmax(-1).tolist(), sequence[:, KEYS:].argmax(-1).tolist()
        assert len(set(keys)) == N
        book = dict(zip(keys, values, strict=True))
        for query, answer in zip(asking.view(N, 3, KEYS), answers.tolist(), strict=True):
            named = query.argmax(-1).tolist()
            assert len(set(named)) == 3
            assert [book[key] for key in named] == answer


def test_the_number_of_parameters_does_not_depend_on_the_number_of_heads():
    counts = {sum(p.numel() for p in RecallLayer(h).parameters()) for h in (1, 4, 64)}
    assert len(counts) == 1
    assert RecallLayer(16, d_k=1).q_proj.out_features == 16
    assert RecallLayer(2).q_proj.out_features == D_MODEL


def test_the_layer_gives_every_value_of_every_named_key_a_score():
    queries, tokens, _ = make_batch(3, asked=2)
    assert RecallLayer(4)(queries, tokens[:, :7]).shape == (3, N, 2, VALUES)


def test_a_seed_gives_the_same_number_again():
    assert key_value_recall(2, steps=3, seed=4) == key_value_recall(2, steps=3, seed=4)
    assert key_value_recall(2, steps=3, seed=4) != key_value_recall(2, steps=3, seed=5)
