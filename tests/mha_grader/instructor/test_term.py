"""A term as an instructor plays it: 40 hand-ins in five platforms' archives, from the roster to the exports."""

import csv
import io
import json
import zipfile

import pytest

from mha_grader import cli
from mha_grader.course.folders import Course
from mha_grader.grading import schedule
from mha_grader.instructor import collect, gradebook
from tests.mha_grader.small_course import NAME, SOURCE, hand_in, make

from .conftest import archive

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own

NOTEBOOK = f"{NAME}.ipynb"
STUDENTS = range(100, 142)  # the last two hand in nothing
PLATFORMS = ("moodle", "canvas", "brightspace", "blackboard", "gradescope")
NO_HALF = "def half(x):\n    return x\n"
WRONG = (105,)  # hands in a wrong `half`
LATE = (107, 122)  # hand in on Brightspace, two days late
HALF_ITEM = SOURCE[SOURCE.index('# %% role="solution" item="half"') :]
CANVAS = "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
BRIGHTSPACE = "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n"


def archives(right, wrong):
    """The files of five archives, by platform; student n hands in on platform n modulo 5."""
    files = {platform: {} for platform in PLATFORMS}
    about = ""
    for n in STUDENTS[:-2]:
        platform, data = PLATFORMS[n % 5], wrong if n in WRONG else right
        day = 3 if n in LATE else 1
        attempt = f"Homework_1_l{n}_attempt_2026-11-01-20-33-00"
        name = {
            "moodle": f"Ann Lee{n}_{n}7_assignsubmission_file_/{NOTEBOOK}",
            "canvas": f"lee{n}ann_{n}1_{n}9_{NAME}-2.ipynb",
            "brightspace": f"{n}-4 - Ann Lee{n} - Nov {day}, 2026 933 PM/{NOTEBOOK}",
            "blackboard": f"{attempt}_{NOTEBOOK}",
            "gradescope": f"assignment_1_export/submission_{n}/{NOTEBOOK}",
        }[platform]
        files[platform][name] = data
        if platform == "blackboard":
            files[platform][f"{attempt}.txt"] = f"Name: Ann Lee{n} (l{n})\n"
        if platform == "gradescope":
            about += f"submission_{n}:\n  :submitters:\n  - :name: x\n    :sid: s{n}\n    :email: {n}@x.edu\n"
    files["gradescope"]["assignment_1_export/submission_metadata.yml"] = about
    return files


def table(course, end):
    return list(csv.DictReader(io.StringIO((course / "grades" / f"{NAME}{end}.csv").read_text("utf-8"))))


def test_a_term(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(schedule, "FEW", 1000)
    course = make(tmp_path / "course", '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    right, wrong = ((hand_in(course, "x", **code) / NOTEBOOK).read_text() for code in ({}, {"half": NO_HALF}))
    (course / "submitted").rename(tmp_path / "made")

    def run(*arguments):
        return cli.main(["--course", str(course), *map(str, arguments)])

    # the roster, from two platforms
    (tmp_path / "canvas.csv").write_text(
        CANVAS + "".join(f'"Lee{n}, Ann",{n}1,s{n},l{n},A\n' for n in STUDENTS), "utf-8"
    )
    (tmp_path / "brightspace.csv").write_text(
        BRIGHTSPACE + "".join(f"#o{n},#l{n},Lee{n},Ann,{n}@x.edu,#\n" for n in STUDENTS), "utf-8"
    )
    assert [run("roster", "import", tmp_path / f"{name}.csv") for name in ("canvas", "brightspace")] == [0, 0]
    assert f"{len(STUDENTS)} new" in capsys.readouterr().out

    # a due date
    with gradebook._opened(gradebook.course_directory(Course(course)).db_url) as book:
        book.update_or_create_assignment(NAME, duedate="2026-11-02 00:00:00 UTC")
    files = archives(right, wrong)
    paths = {platform: archive(files[platform], tmp_path / f"{platform}.zip") for platform in PLATFORMS}

    def collect_and_grade(*platforms):
        for platform in platforms:
            assert run("collect", NAME, paths[platform]) == 0, platform
            assert "8 new, 0 replaced" in capsys.readouterr().out
        assert run("grade", NAME) == 0

    def final_scores():
        return {row["student"]: row["final_score"] for row in table(course, "")}

    # two platforms' hand-ins; more time for one of the two who are late
    collect_and_grade("moodle", "brightspace")
    assert run("extend", "l122", NAME, "2026-11-04") == 0
    assert run("export", NAME) == 0
    special = {"s105": "0.3", "s107": "0"}
    there = [n for n in STUDENTS[:-2] if n % 5 in (0, 2)]
    assert final_scores() == {f"s{n}": special.get(f"s{n}", "3.3") if n in there else "" for n in STUDENTS}

    # an item is dropped, and the others hand in; who handed in nothing gets 0
    (course / "solutions" / f"{NAME}.py").write_text(SOURCE.replace(HALF_ITEM, ""))
    assert run("change", NAME, "--yes") == 0
    collect_and_grade("canvas", "blackboard", "gradescope")
    assert "nothing handed in: s140 (Ann Lee140), s141 (Ann Lee141)" in capsys.readouterr().out
    assert run("export", NAME, "--missing", "zero") == 0
    assert final_scores() == {f"s{n}": "0" if n in (107, 140, 141) else "0.3" for n in STUDENTS}
    moodle, canvas = table(course, "-moodle"), table(course, "-canvas")
    brightspace, blackboard = table(course, "-brightspace"), table(course, "-blackboard")
    assert {len(rows) for rows in (moodle, canvas[1:], brightspace, blackboard)} == {len(STUDENTS)}
    assert [row["Identifier"] for row in moodle if row["Identifier"]] == [
        f"Participant {n}7" for n in STUDENTS if n % 5 == 0 and n < 140
    ]
    assert list(canvas[1].values()) == ["Ann Lee100", "1001", "", "l100", "", "0.3"]
    assert list(brightspace[7].values()) == ["o107", "l107", "0", "#"]
    assert list(blackboard[3].values()) == ["Lee103", "Ann", "l103", "0.3"]

    # feedback, by the names that platforms ask for
    assert run("feedback", NAME, "--zip") == 0
    with zipfile.ZipFile(course / "feedback" / f"{NAME}.zip") as pages:
        assert {
            f"Ann Lee100_1007_assignsubmission_file_/{NAME}.html",
            f"lee101ann_1011_1019_{NAME}.html",
            f"102-4 - Ann Lee102 - Nov 1, 2026 933 PM/{NAME}.html",
            f"s103/{NAME}.html",
            f"s104/{NAME}.html",
        } <= set(pages.namelist())
        assert len(pages.namelist()) == 40
    assert json.loads((course / "grades" / f"{NAME}-collected.json").read_text())["s104"]["number"] == "s104"

    # an archive that cannot be taken says so
    monkeypatch.setattr(collect, "MAX_BYTES", 10)
    capsys.readouterr()
    assert run("collect", NAME, paths["canvas"]) == 3
    assert "mha-grade: s101 was not collected: more than" in capsys.readouterr().err
