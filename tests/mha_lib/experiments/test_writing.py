import torch

from mha_lib.experiments.writing import (
    CONTEXT,
    excerpts,
    head_maps,
    held_out_loss,
    library_text,
    train_writer,
    write,
)
from mha_lib.language_model import LanguageModel


def test_a_folder_becomes_text_and_every_twentieth_file_is_held_out(tmp_path):
    for i in range(21):
        (tmp_path / f"{i:02}.py").write_text(chr(ord("a") + i) * 100 + "\n€")
    text = library_text(tmp_path)
    assert set(text.decode(text.held_out)) == {"a", "u", "\n"}
    assert "a" not in text.decode(text.trained_on)
    assert "€" not in text.letters
    assert text.decode(text.encode("bad")) == "bad"
    assert excerpts(text.trained_on, 3).shape == (3, CONTEXT + 1)


def test_it_learns_a_text_and_heads_can_be_taken_out(tmp_path):
    for i in range(21):
        (tmp_path / f"{i:02}.py").write_text("for item in items:\n    print(item)\n" * 20)
    text = library_text(tmp_path)
    model, curve = train_writer(text, steps=60)
    assert len(curve) == 11
    assert curve[-1] < curve[0] / 3
    before = model.out_proj[0].weight.clone()
    assert held_out_loss(model, text, without=[(0, 1)]) != held_out_loss(model, text)
    assert torch.equal(model.out_proj[0].weight, before)
    assert len(write(model, text, "for ")) == CONTEXT


def test_without_all_heads_a_token_knows_nothing_of_those_before_it(tmp_path):
    for i in range(21):
        (tmp_path / f"{i:02}.py").write_text("abab" * 40)
    text = library_text(tmp_path)
    model, _ = train_writer(text, steps=2)
    heads = [(layer, head) for layer in range(2) for head in range(4)]
    for proj in model.out_proj:
        torch.nn.init.zeros_(proj.bias)
    without = held_out_loss(model, text, heads)
    for proj in model.qkv_proj:
        torch.nn.init.zeros_(proj.weight[2 * 64 :])  # no values either
        torch.nn.init.zeros_(proj.bias[2 * 64 :])
    assert abs(held_out_loss(model, text) - without) < 1e-6


def test_the_maps_of_heads_are_causal_and_reproduce_what_the_layer_adds():
    torch.manual_seed(0)
    model = LanguageModel(vocab_size=9, d_model=12, num_heads=3, num_layers=2, context=16)
    ids = torch.randint(9, (7,))
    maps = head_maps(model, ids)
    assert maps.shape == (2, 3, 7, 7)
    assert (maps.triu(1) == 0).all()
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 3, 7))
    x = model.norm1[0](model.tokens(ids) + model.positions.weight[:7])  # (n, d_model)
    values = model.qkv_proj[0](x)[:, 24:].unflatten(-1, (3, 4)).transpose(0, 1)  # (heads, n, d_k)
    wanted = model.out_proj[0]((maps[0] @ values).transpose(0, 1).flatten(1))  # (n, d_model)
    got = []
    model.out_proj[0].register_forward_hook(lambda _, __, output: got.append(output[0]))
    model(ids[None])
    torch.testing.assert_close(got[0], wanted)
