"""A command that is about one student takes what an instructor calls them."""

import json
import shutil

import pytest

from mha_grader import cli
from tests.mha_grader.small_course import NAME

ROSTER = "id,first_name,last_name,email,login\nann,Ann,Lee,ann@x.edu,alee\nbob,Bob,Roe,bob@x.edu,broe\n"


@pytest.fixture
def course(graded, tmp_path):
    """Ann's hand-in has been graded; it counts for Bob too, and Eve, who is in no roster, handed in as well."""
    root = shutil.copytree(graded, tmp_path / "small")
    (root / "roster.csv").write_text(ROSTER)
    group = {"ann": {"scheme": "plain", "name": "ann", "members": ["ann", "bob"]}}
    (root / "grades" / f"{NAME}-collected.json").write_text(json.dumps(group))
    shutil.copytree(root / "submitted" / "ann", root / "submitted" / "eve")
    return root


@pytest.mark.parametrize("called", ["ann", "alee", "ANN@x.edu", "Ann Lee", "Lee Ann"])
def test_a_student_is_named_by_id_login_address_or_name(course, capsys, called):
    def run(*command):
        assert cli.main(["--course", str(course), *command]) == 0
        return capsys.readouterr().out

    assert run("log", NAME, called) == run("log", NAME, "ann")
    assert run("log", NAME, called).startswith("ann (Ann Lee): small ")
    assert "1 written" in run("feedback", NAME, "--student", called)
    assert (course / "feedback" / "ann" / NAME / f"{NAME}.html").is_file()
    assert run("grade", NAME, "--student", called, "--json").count('"student": "ann"') == 1


def test_a_member_of_a_group_and_a_stranger_are_found_and_nobody_is_guessed(course, capsys):
    assert cli.main(["--course", str(course), "log", NAME, "Bob Roe"]) == 0
    assert cli.main(["--course", str(course), "grade", NAME, "--student", "eve", "--quiet"]) == 0
    assert cli.main(["--course", str(course), "log", NAME, "eve"]) == 0
    for command in (
        ["log", NAME, "Lee"],
        ["feedback", NAME, "--student", "Lee"],
        ["extend", "Lee", NAME, "x"],
    ):
        capsys.readouterr()
        assert cli.main(["--course", str(course), *command]) == 1
        assert "nobody in roster.csv is called 'Lee'" in capsys.readouterr().err


def test_marks_tells_the_names_that_formgrader_shows(course, capsys):
    wrong = course / "submitted" / "ann" / NAME / f"{NAME}.ipynb"
    wrong.write_text("no notebook")
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet", "--student", "ann"]) == 0
    assert cli.main(["--course", str(course), "marks", NAME]) == 0
    assert "  ann (Ann Lee)\n" in capsys.readouterr().out
