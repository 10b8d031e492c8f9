"""The assignment `language_model`: its notebook, and what training tells of broken models."""

import pytest
from torch import nn

from mha_lib.language_model import LanguageModel
from mha_lib.pitfalls.code.language_model.language_model import CutOff, WithoutPositions, WithoutResiduals

OF_EACH_LAYER = ("norm1", "qkv_proj", "out_proj", "norm2", "feed_forward")


@pytest.mark.parametrize("broken", [WithoutPositions, WithoutResiduals, CutOff])
def test_a_model_that_lacks_a_part_does_not_learn_enough(lost, broken):
    assert lost("LanguageModel", broken) == {"learns"}


def test_blocks_in_a_plain_list_are_named_though_they_show_only_in_training(grade):
    class Model(LanguageModel):
        def __init__(self, vocab_size, d_model, num_heads, num_layers, context):
            super().__init__(vocab_size, d_model, num_heads, num_layers, context)
            for name in OF_EACH_LAYER:
                layers = [*getattr(self, name)]
                delattr(self, name)
                setattr(self, name, layers)

    assert grade("LanguageModel", Model).slugs == {"learns": "heads-in-a-list"}


def test_a_cache_that_outlives_a_call_costs_points_even_if_it_is_emptied_when_full(lost):
    class Model(LanguageModel):
        kept = None

        def forward(self, ids):
            if self.training:
                return super().forward(ids)
            full = not self.kept or self.kept[0][0].shape[2] + ids.shape[1] > self.context
            if full or len(self.kept[0][0]) != len(ids):
                self.kept = []
            return super().forward(ids, self.kept)

    assert lost("LanguageModel", Model) == {"each sequence by itself"}


def test_one_block_in_place_of_several_costs_points(lost):
    class Model(LanguageModel):
        def __init__(self, vocab_size, d_model, num_heads, num_layers, context):
            super().__init__(vocab_size, d_model, num_heads, num_layers, context)
            for name in OF_EACH_LAYER:
                setattr(self, name, nn.ModuleList([getattr(self, name)[0]] * num_layers))

    assert lost("LanguageModel", Model) == {"learns"}


def test_attention_along_the_batch_is_named(grade):
    class Model(nn.Module):
        def __init__(self, vocab_size, d_model, num_heads, num_layers, context):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(context, d_model)
            self.block = nn.TransformerEncoderLayer(d_model, num_heads, 4 * d_model, dropout=0.0)
            self.read_out = nn.Linear(d_model, vocab_size)

        def forward(self, ids):
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
            return self.read_out(self.block(x))

    assert grade("LanguageModel", Model).slugs["reads the text"] == "batch-first-forgotten"


def test_a_model_that_remembers_earlier_calls_is_not_said_to_see_later_tokens(grade, lost):
    class Model(LanguageModel):
        read = 0.0

        def forward(self, ids):
            if not self.training:
                self.read = self.read + float(ids.sum())
            return super().forward(ids) + self.read

    assert lost("LanguageModel", Model) == {"each sequence by itself"}
    assert grade("LanguageModel", Model).slugs == {}


def test_the_notebook_runs_with_the_solutions_and_writes(assignment, run_solved, text_of):
    (train,) = [cell for cell in assignment.cells if cell.id == "train"]
    quick = train.released.replace("SECONDS = 300", "SECONDS = 2").replace("d_model=96", "d_model=24")
    assert quick.count("SECONDS = 2") == 1
    outputs = run_solved(train=quick)
    assert "on files that it has not seen, it writes" in text_of(outputs["train"])
