"""One person is one student, whatever an archive or a table calls them."""

import pytest

from mha_grader.course.assignment import CourseError
from mha_grader.instructor import collect, metadata, origins, roster, roster_import
from tests.mha_grader.small_course import NAME

from .conftest import archive, submitted

NOTEBOOK = f"{NAME}.ipynb"
ROSTER = (
    "id,first_name,last_name,email,login,canvas,group\n"
    "s1,Ann,Lee,ann@x.edu,alee,11,g1\ns2,Bob,Roe,bob@x.edu,broe,12,g1\n"
    "s3,Cyd,Doe,cyd@x.edu,cdoe,13,\ns4,Cyd,Doe,cyd2@x.edu,cdoe2,14,\n"
)
GRADESCOPE = """\
submission_5:
  :submitters:
  - :name: Ann Lee
    :sid: s1
    :email: ann@x.edu
  - :name: Bob Roe
    :sid: s2
    :email: bob@x.edu
  :created_at: 2026-11-01 20:30:00.123456789 Z
submission_6:
  :submitters:
  - :name: Eve
    :sid: ''
    :email: eve@x.edu
"""
BLACKBOARD = "Homework_1_alee_attempt_2026-11-01-23-33-00"
ARCHIVES = {
    "moodle": {f"Ann Lee_1_assignsubmission_file_/{NOTEBOOK}": "of ann"},
    "canvas": {f"leeann_LATE_11_6_{NOTEBOOK}": "of ann"},
    "brightspace": {f"3-4 - Ann Lee - Nov 1, 2026 1133 PM/{NOTEBOOK}": "of ann"},
    "blackboard": {
        f"{BLACKBOARD}_{NOTEBOOK}": "of ann",
        f"{BLACKBOARD}.txt": "Name: Ann (cdoe) Lee (alee)\nAssignment: Homework 1\n",
    },
    "sakai": {f"HW/Lee, Ann(alee)/Submission attachment(s)/{NOTEBOOK}": "of ann"},
    "plain": {f"submitted/s1/{NAME}/{NOTEBOOK}": "of ann"},
}


@pytest.fixture
def course(course):
    (course.root / roster.NAME).write_text(ROSTER)
    return course


@pytest.mark.parametrize("platform", ARCHIVES)
def test_every_platforms_ann_is_one_student(course, gather, platform):
    found = gather(ARCHIVES[platform])
    assert submitted(course)[f"s1/{NAME}/{NOTEBOOK}"] == "of ann"
    assert (found.new, found.unknown) == (["s1"], {})
    assert origins.origins(course, NAME)["s1"].scheme == platform


def test_gradescopes_group_has_one_hand_in_and_strangers_are_listed(course, gather):
    files = {f"assignment_1_export/submission_{number}/{NOTEBOOK}": str(number) for number in (5, 6)}
    found = gather(files | {"assignment_1_export/submission_metadata.yml": GRADESCOPE})
    assert submitted(course) == {
        f"s1/{NAME}/{NOTEBOOK}": "5",
        f"s1/{NAME}/timestamp.txt": "2026-11-01 20:30:00 UTC\n",
    }
    assert origins.representatives(course, NAME) == {"s1": "s1", "s2": "s1"}
    assert "eve@x.edu" in next(iter(found.unknown.values()))
    with pytest.raises(CourseError, match=r"submission_metadata\.yml"):
        gather(files)


def test_a_number_that_someone_else_entered_in_gradescope_is_not_taken(course, gather):
    stranger = GRADESCOPE.replace("sid: ''", "sid: s4")
    files = {f"assignment_1_export/submission_6/{NOTEBOOK}": "of eve"}
    found = gather(files | {"assignment_1_export/submission_metadata.yml": stranger})
    assert "its number is that of s4, but its address is not" in next(iter(found.unknown.values()))
    assert submitted(course) == {}


def test_gradescopes_numbers_are_what_is_written():
    text = GRADESCOPE.replace("sid: s1", "sid: 007").replace("sid: s2", "sid: &a [1, 2]")
    ann, bob = metadata.gradescope(text.encode())["submission_5"].people
    assert (ann.user, bob.user) == ("007", "bob@x.edu")


def test_a_name_that_two_have_is_not_guessed(course, gather):
    found = gather({f"Cyd Doe_1_assignsubmission_file_/{NOTEBOOK}": "whose?"})
    assert "2 students have this name: s3, s4" in next(iter(found.unknown.values()))
    assert submitted(course) == {}


def test_moodles_worksheet_tells_who_and_when(course, tmp_path):
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Last modified (submission)\n"
        'Participant 1,Cyd Doe,cyd2@x.edu,"Wednesday, 10 June 2026, 2:14 PM"\n'
    )
    path = archive({f"Cyd Doe_1_assignsubmission_file_/{NOTEBOOK}": "hers"}, tmp_path / "all.zip")
    collect.collect(course, NAME, path, collect.Extra(worksheet=sheet))
    assert set(submitted(course)) == {f"s4/{NAME}/{NOTEBOOK}", f"s4/{NAME}/timestamp.txt"}


def test_blackboards_file_names_cannot_hand_in_for_somebody_else():
    assert metadata.blackboards_user("Name: Eve (alee) (eve)\n", "HW_eve") == "eve"
    assert metadata.blackboards_user("Name: Eve (alee)\n", "HW_eve") == ""
    assert (
        metadata.blackboards_user("Name: Eve (eve_alice)\nName: Alice (alice)\n", "HW_eve_alice")
        == "eve_alice"
    )
    assert metadata.blackboards_user("Date: today\nName: Alice (alice)\n", "HW_eve_alice") == ""


def test_canvas_export_is_imported_and_formulas_stay_text(course, tmp_path):
    table = tmp_path / "canvas.csv"
    table.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
        '"Lee, Ann",11,s1,alee,A\n"=cmd(), Eve",99,s9,eve,A\n"Student, Test",50,,x,A\n'
    )
    found = roster_import.import_table(course, table)
    assert (found.new, found.unchanged, found.refused) == (["s9"], ["s1"], {})
    assert found.not_in_file == ["s2", "s3", "s4"]
    assert "s9,Eve,'=cmd()" in (course.root / roster.NAME).read_text()
    assert roster.load(course).by_id["s9"].last_name == "=cmd()"
    assert roster.load(course).by_id["s1"].group == "g1"


IMPORTS = {
    "moodle": "\ufeffFirst name,Surname,ID number,Email address,Groups\nAnn,Lee,m1,ann@x.edu,No groups\n"
    "Gus,Kay,m7,gus@x.edu,g2\n",
    "brightspace": "OrgDefinedId;Username;Last Name;First Name;Email;End-of-Line Indicator\n"
    "#o1;#alee;Lee;Ann;;#\n#m7;#gkay;Kay;Gus;gus@x.edu;#\n",
}


@pytest.mark.parametrize("platform", IMPORTS)
def test_what_moodle_and_brightspace_export_is_imported(course, tmp_path, platform):
    table = tmp_path / "table.csv"
    table.write_text(IMPORTS[platform])
    found = roster_import.import_table(course, table)
    assert (found.new, found.changed, found.refused) == (["m7"], ["s1"], {})
    ann, gus = (roster.load(course).by_id[student] for student in ("s1", "m7"))
    assert (ann.login, ann.canvas, ann.group) == ("alee", "11", "g1")  # what the table does not say stays
    numbers = {"moodle": ("moodle", "m1", "m7"), "brightspace": ("brightspace_org", "o1", "m7")}
    field, of_ann, of_gus = numbers[platform]
    assert (getattr(ann, field), getattr(gus, field)) == (of_ann, of_gus)
    assert gus.name == "Gus Kay"


def test_two_platforms_tables_make_one_student(course, tmp_path):
    table = tmp_path / "table.csv"
    for text in IMPORTS.values():
        table.write_text(text)
        roster_import.import_table(course, table)
    gus = roster.load(course).by_id["m7"]
    assert (gus.moodle, gus.brightspace_org, gus.login, gus.group) == ("m7", "m7", "gkay", "g2")
    assert len(roster.load(course).students) == 5


def by_groups(course, tmp_path, files, scheme=None):
    extra = collect.Extra(scheme, groups=True)
    return collect.collect(course, NAME, archive(files, tmp_path / "all.zip"), extra)


def test_a_groups_hand_in_lies_with_its_first_member_and_counts_for_all(course, tmp_path):
    found = by_groups(
        course, tmp_path, {f"roebob_12_6_{NOTEBOOK}": "of both", f"doecyd_13_7_{NOTEBOOK}": "of cyd alone"}
    )
    assert submitted(course) == {f"s1/{NAME}/{NOTEBOOK}": "of both", f"s3/{NAME}/{NOTEBOOK}": "of cyd alone"}
    assert (found.new, found.refused, found.groups) == (["s1", "s3"], {}, ["s1 (2)"])
    assert origins.representatives(course, NAME) == {"s1": "s1", "s2": "s1"}


def test_of_a_groups_different_hand_ins_the_last_counts_and_without_times_none(course, tmp_path):
    canvas = {f"leeann_11_6_{NOTEBOOK}": "of ann", f"roebob_12_7_{NOTEBOOK}": "of bob"}
    assert "2 people" in by_groups(course, tmp_path, canvas).refused["s1"]
    assert submitted(course) == {}
    by_groups(course, tmp_path, dict.fromkeys(canvas, "of both"))
    assert submitted(course) == {f"s1/{NAME}/{NOTEBOOK}": "of both"}
    folder = "{}-4 - {} - Nov {}, 2026 933 PM/" + NOTEBOOK
    brightspace = {folder.format(3, "Ann Lee", 2): "later", folder.format(5, "Bob Roe", 1): "earlier"}
    by_groups(course, tmp_path, brightspace, "brightspace")
    assert submitted(course)[f"s1/{NAME}/{NOTEBOOK}"] == "later"


@pytest.mark.parametrize("line", ["../x", "s1", ".x", "a/b"])
def test_ids_that_are_no_folders_or_not_unique_are_refused(course, line):
    (course.root / roster.NAME).write_text(f"{ROSTER}{line}\n")
    with pytest.raises(CourseError, match="line"):
        roster.load(course)
