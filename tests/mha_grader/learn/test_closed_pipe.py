"""`mha-grade … | head`: what happens where nobody reads on."""

import os
import sys

import pytest

from mha_grader.__main__ import main


@pytest.mark.parametrize("words", [["progress"], ["check", "single_head", "--solution", "softmax"]])
def test_where_nobody_reads_on_it_ends_without_a_complaint(words, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(words) == 1
        pipe.write("what Python still has to write when it ends")  # goes nowhere, and raises nothing
    assert capsys.readouterr().err == ""
