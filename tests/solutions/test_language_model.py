"""The assignment `language_model`: its notebook, and what training tells of broken models."""

import pytest

from mha_lib.pitfalls.code.language_model.language_model import CutOff, WithoutPositions, WithoutResiduals


@pytest.mark.parametrize("broken", [WithoutPositions, WithoutResiduals, CutOff])
def test_a_model_that_lacks_a_part_does_not_learn_enough(lost, broken):
    assert lost("LanguageModel", broken) == {"learns"}


def test_the_notebook_runs_with_the_solutions_and_writes(assignment, run_solved, text_of):
    (train,) = [cell for cell in assignment.cells if cell.id == "train"]
    quick = train.released.replace("SECONDS = 300", "SECONDS = 2").replace("d_model=96", "d_model=24")
    assert quick.count("SECONDS = 2") == 1
    outputs = run_solved(train=quick)
    assert "on files that it has not seen, it writes" in text_of(outputs["train"])
