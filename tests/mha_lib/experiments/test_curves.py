import json

import pytest

from mha_lib.experiments import curves
from mha_lib.experiments.curves import CURVES, load_curve, select, train_curve


@pytest.mark.parametrize("name", CURVES)
def test_every_run_that_the_script_would_make_is_stored_once(name):
    wanted = list(CURVES[name][0]())
    stored = [{key: value for key, value in run.items() if key != "result"} for run in load_curve(name)]
    assert sorted(stored, key=str) == sorted(wanted, key=str)
    assert all(-0.05 < run["result"] <= 1 for run in load_curve(name))


LONG = ("alibi", "composition", "induction", "linear", "pointers")  # seconds for the shortest run
SHORT = [pytest.param(name, marks=pytest.mark.soak if name in LONG else ()) for name in CURVES]


@pytest.mark.parametrize("name", SHORT)
def test_a_stored_run_comes_out_again(name):
    list_settings, train = CURVES[name]
    settings = min(list_settings(), key=lambda settings: settings["steps"])
    (stored,) = select(load_curve(name), **settings)
    assert train(**settings) == pytest.approx(stored, abs=0.02)


def test_runs_that_are_not_stored_yet_are_trained_and_stored_beside_the_others(tmp_path, monkeypatch, capsys):
    settings = [{"steps": 1, "seed": 0}, {"steps": 2, "seed": 0}]
    monkeypatch.setattr(curves, "FILE", tmp_path / "curves.json")
    monkeypatch.setattr(
        curves, "CURVES", {name: (lambda: settings, lambda steps, seed: steps / 8) for name in "ab"}
    )
    train_curve("b")
    train_curve("a")
    expected = [{**setting, "result": setting["steps"] / 8} for setting in settings]
    assert json.loads((tmp_path / "curves.json").read_text("utf-8")) == {"a": expected, "b": expected}
    assert capsys.readouterr().out.count("result") == 4
    settings.append({"steps": 3, "seed": 0})
    train_curve("b")
    assert load_curve("b") == [*expected, {"steps": 3, "seed": 0, "result": 3 / 8}]
    assert load_curve("a") == expected
    assert capsys.readouterr().out.count("result") == 1
