"""`mha-grade log`: what an instructor reads of one hand-in."""

from mha_grader import cli


def test_the_log_lists_every_part_once_with_its_reason_and_the_example(graded, capsys):
    assert cli.main(["--course", str(graded), "log", "small", "ann"]) == 0
    out = capsys.readouterr().out
    assert out.count("numbers") == 2  # a part of each item
    assert "fail     0/0.1 numbers\n" in out
    assert "at index [0] of the result: expected 2, got 3" in out
    assert "pass     3/3 numbers\n" in out
