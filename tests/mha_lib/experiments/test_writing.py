import torch

from mha_lib.experiments.writing import CONTEXT, excerpts, held_out_loss, library_text, train_writer, write


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
    assert held_out_loss(model, text, without=(0, 1)) != held_out_loss(model, text)
    assert torch.equal(model.out_proj[0].weight, before)
    assert len(write(model, text, "for ")) == CONTEXT
