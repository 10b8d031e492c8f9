"""Grades for other programs."""

import csv
import json

import pytest

from mha_grader import export
from mha_grader.course import Course
from mha_grader.gradebook import Entry
from mha_grader.records import ItemRecord, PartRecord, SubmissionRecord


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


@pytest.fixture
def written(tmp_path):
    table, data = export.write(Course(tmp_path), "single_head", RECORDS, ENTRIES)
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
