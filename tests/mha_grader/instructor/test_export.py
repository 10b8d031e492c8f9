"""Grades for other programs."""

import csv
import dataclasses
import json

import pytest

from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import export, origins
from mha_grader.instructor.entry import Entry
from mha_grader.instructor.origins import Origin
from mha_grader.instructor.results import Result
from mha_lib import pitfalls


def part(points, status="pass", pitfall=None):
    return PartRecord("values", points, status, "", pitfall)


def record(*softmax, status="graded", attention="pass"):
    found = None if attention == "pass" else "mask-inverted"
    items = (ItemRecord("softmax", softmax), ItemRecord("attention", (part(4.0, attention, found),)))
    return SubmissionRecord("single_head", "1", "abc", status, items, notes=("a note",))


RECORDS = {
    "ann": record(part(0.1), part(0.2)),
    "bob": record(
        part(1.0, "fail", "no-scale"),
        part(1.0, "fail", "no-scale"),
        attention="fail",
    ),
    "=1+cmd()": record(part(2.0), status="repaired"),
    "+49": record(part(2.0)),
    "-rf": record(part(2.0)),
    "@sum": record(part(2.0)),
}
ENTRIES = {"ann": Entry(by_hand={"softmax": 0.25}, late_seconds=90.0, penalty=1.0)}


def everyone(records, entries):
    return [Result(student, record, entries.get(student, Entry())) for student, record in records.items()]


@pytest.fixture
def written(tmp_path):
    table, data = export.write(Course(tmp_path), "single_head", everyone(RECORDS, ENTRIES))
    assert (table, data) == (tmp_path / "grades/single_head.csv", tmp_path / "grades/single_head.json")
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file)), json.loads(data.read_text("utf-8"))


def test_the_table_has_a_column_for_each_item(written):
    ann, bob = written[0][:2]
    assert ann == {
        "student": "ann",
        "status": "graded",
        "score": "4.3",
        "max_score": "4.3",
        "softmax": "0.3",
        "attention": "4",
        "by_hand": "softmax=0.25",
        "late_seconds": "90",
        "late_penalty": "1",
        "final_score": "3.25",
        "recognised": "",
        "look_at": "",
    }
    assert (bob["score"], bob["softmax"], bob["final_score"]) == ("0", "0", "0")
    assert bob["recognised"] == "no-scale mask-inverted"


def test_no_cell_is_a_formula(written):
    assert [row["student"] for row in written[0]] == ["ann", "bob", "'=1+cmd()", "'+49", "'-rf", "'@sum"]
    assert not [cell for row in written[0] for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]


def test_the_json_file_says_the_same_and_more(written):
    ann, bob, cmd = written[1][:3]
    assert ann["by_hand"] == {"softmax": 0.25}
    assert ann["final_score"] == pytest.approx(3.25)
    assert bob["items"]["attention"] == {"score": 0.0, "max_score": 4.0, "status": "fail"}
    assert bob["recognised"] == ["no-scale", "mask-inverted"]
    assert (cmd["student"], cmd["status"], cmd["notes"]) == ("=1+cmd()", "repaired", ["a note"])


def test_lines_to_look_at_stand_in_the_table_without_control_characters(tmp_path):
    item = ItemRecord("attention", (part(4.0),), flags=("line 1: x\x1b[31m", "line 7: y"))
    records = {"ann": dataclasses.replace(RECORDS["ann"], items=(item,))}
    table, data = export.write(Course(tmp_path), "single_head", everyone(records, {}))
    (ann,) = csv.DictReader(table.read_text("utf-8").splitlines())
    assert ann["look_at"] == "line 1: x, line 7: y"
    assert json.loads(data.read_text("utf-8"))[0]["flags"] == list(item.flags)


@pytest.mark.parametrize(
    "text",
    [
        "x;=cmd",
        "x\t=cmd",
        "x\r\n=cmd",
        '";=cmd',
        " =cmd",
        "\N{FULLWIDTH EQUALS SIGN}cmd",
        '""=cmd',
        "-x;+y",
        "\ufeff=cmd",
        "\u200b+1",
        "\x00@sum",
    ],
)
def test_no_separator_makes_a_formula_of_what_a_student_wrote(tmp_path, text):
    item = ItemRecord("attention", (part(4.0),), flags=(text,))
    records = {text: dataclasses.replace(RECORDS["ann"], items=(item,))}
    table, _ = export.write(Course(tmp_path), "single_head", everyone(records, {}))
    for separator in ",;\t":
        for row in csv.reader(table.read_text("utf-8").splitlines(), delimiter=separator):
            assert not [
                cell for cell in row if cell.strip(' "').startswith(("=", "+", "-", "@", "\uff1d"))
            ], row


# --- Moodle and Canvas ------------------------------------------------------------------------------------


def test_how_late_a_hand_in_is_has_all_its_digits(tmp_path):
    (student, record), *_ = RECORDS.items()
    late = {student: Entry(late_seconds=12345678.5)}
    table, _ = export.write(Course(tmp_path), "toy", everyone({student: record}, late))
    (line,) = csv.DictReader(table.read_text("utf-8").splitlines())
    assert line["late_seconds"] == "12345678.5"


def for_platforms(folder, monkeypatch, who):
    monkeypatch.setattr(origins, "origins", lambda course, assignment: who)
    (folder / "grades").mkdir()
    found = {}
    for path in export.write_for_platforms(Course(folder), "single_head", everyone(RECORDS, ENTRIES)):
        with path.open(newline="", encoding="utf-8") as file:
            found[path.name] = list(csv.DictReader(file))
    return found


def test_hand_ins_of_unknown_origin_are_known_by_their_ids(tmp_path, monkeypatch):
    found = for_platforms(tmp_path, monkeypatch, {})
    ann, bob = found["single_head-moodle.csv"][:2]
    assert ann == {
        "Identifier": "",
        "Full name": "",
        "ID number": "ann",
        "Email address": "",
        "Grade": "3.25",  # with what a person changed and the penalty
        "Maximum Grade": "4.3",
        "Last modified (grade)": "",
        "Feedback comments": "softmax 0.25/0.3, attention 4/4",
    }
    title = pitfalls.BANK["no-scale"].title
    assert f"softmax 0/2 ({title}), attention 0/4 (" in bob["Feedback comments"]
    points, ann = found["single_head-canvas.csv"][:2]
    assert list(ann) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "single_head"]
    assert list(points.values()) == ["    Points Possible", "", "", "", "", "4.3"]
    assert list(ann.values()) == ["ann", "", "", "ann", "", "3.25"]
    blackboard = (tmp_path / "grades" / "single_head-blackboard.csv").read_text("utf-8").splitlines()
    assert blackboard[:2] == ['"Last Name","First Name","Username","single_head"', '"","","ann","3.25"']
    for rows in found.values():
        cells = [cell for row in rows for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


def test_collected_hand_ins_are_known_by_the_numbers_of_their_platform_and_left_out_for_the_other(
    tmp_path, monkeypatch
):
    who = {
        "ann": Origin("moodle", "Ann Lee", "1234567"),
        "bob": Origin("canvas", "roebob", "12345", late=True),
        "=1+cmd()": Origin("canvas", "", "anon_aB3xY"),
        **{student: Origin("plain", student) for student in ("+49", "-rf", "@sum")},
    }
    found = for_platforms(tmp_path, monkeypatch, who)
    moodle, canvas = found["single_head-moodle.csv"], found["single_head-canvas.csv"]
    assert [(row["Identifier"], row["Full name"], row["ID number"]) for row in moodle[:2]] == [
        ("Participant 1234567", "Ann Lee", ""),
        ("", "'+49", "'+49"),
    ]
    assert len(moodle) == 4
    assert list(canvas[1].values()) == ["roebob", "12345", "", "", "", "0"]
    assert [row["SIS Login ID"] for row in canvas] == ["", "", "'+49", "'-rf", "'@sum"]


def test_a_class_of_one_platform_has_no_file_for_the_other(tmp_path, monkeypatch):
    who = {student: Origin("moodle", student, "1") for student in RECORDS}
    assert set(for_platforms(tmp_path, monkeypatch, who)) == {"single_head-moodle.csv"}
