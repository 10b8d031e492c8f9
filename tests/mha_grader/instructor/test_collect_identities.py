"""Nobody's file may become somebody else's, whatever names an archive has."""

import contextlib
import itertools

import pytest

from mha_grader.course.assignment import CourseError
from mha_grader.instructor import collect, origins, roster
from mha_grader.instructor.schemes import guess
from tests.mha_grader.small_course import NAME

from .conftest import archive, submitted

NOTEBOOK = f"{NAME}.ipynb"
MOODLE = "assignsubmission_file_"


def test_a_files_name_cannot_hand_in_for_somebody_else(course, gather):
    gather(
        {
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann",
            f"Eve Doe_2_{MOODLE}/Ann Lee_1_{MOODLE}{NOTEBOOK}": "of eve",
            f"Eve Doe_2_{MOODLE}/Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of eve",
        }
    )
    assert submitted(course)[f"Ann Lee/{NAME}/{NOTEBOOK}"] == "of ann"
    gather({f"leeann_1_2_{NOTEBOOK}": "of ann", f"doeeve_3_4_leeann_1_2_{NOTEBOOK}": "of eve"})
    assert submitted(course)[f"1/{NAME}/{NOTEBOOK}"] == "of ann"
    gather({f"ann/{NOTEBOOK}": "of ann", f"eve/ann/{NAME}/{NOTEBOOK}": "of eve"})
    assert submitted(course)[f"ann/{NAME}/{NOTEBOOK}"] == "of ann"


PLAIN = {f"{student}/{NOTEBOOK}": f"of {student}" for student in ("ann", "bob", "cyd")}
MOODLES = {f"{name}_{number}_{MOODLE}/{NOTEBOOK}": f"of {name}" for number, name in enumerate(["Ann", "Bob"])}
IDENTITIES = {  # an archive of others, what Eve adds to it, and what is hers of it
    "a name as of Moodle in a plain archive": (PLAIN, f"eve/ann_1_{MOODLE}{NOTEBOOK}", "eve"),
    "a folder as of Moodle in a plain archive": (PLAIN, f"eve/ann_1_{MOODLE}/{NOTEBOOK}", None),
    "a name as of Canvas in a plain archive": (PLAIN, f"eve/leeann_1_2_{NOTEBOOK}", "eve"),
    "a name as of Brightspace in a plain archive": (
        PLAIN, f"eve/1-2 - ann - Nov 1, 2026 1133 PM - {NOTEBOOK}", "eve"),
    "folders as of Sakai in a plain archive": (
        PLAIN, f"eve/Lee, Ann(ann)/Submission attachment(s)/{NOTEBOOK}", None),
    "the name of another's folder, written in another way": (PLAIN, f"eve/../ann/{NOTEBOOK}", None),
    "another's folder inside one's own": (PLAIN, f"eve/ann/{NAME}/{NOTEBOOK}", None),
    "a name as of Canvas in Moodle's": (MOODLES, f"Eve_7_{MOODLE}/leeann_1_2_{NOTEBOOK}", "Eve"),
    "another's words behind one's own in Moodle's": (
        MOODLES, f"Eve_7_{MOODLE}/Ann_0_{MOODLE}/{NOTEBOOK}", "Eve"),
    "a folder before the platform's": (
        {f"Dan {number}_2{number}_{MOODLE}/{NOTEBOOK}": "of Dan" for number in range(9)} | MOODLES,
        f"x/Ann_0_{MOODLE}/{NOTEBOOK}", None),
    "another's number under one's own name on Canvas": (
        {f"annlee_1_2_{NOTEBOOK}": "of ann"}, f"eve_1_3_{NOTEBOOK}", None),
    "a name on Canvas with another's number in it": (
        {f"annlee_1_2_{NOTEBOOK}": "of ann"}, f"x_1_2_y_99_3_{NOTEBOOK}", None),
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTITIES)
def test_nobodys_file_becomes_somebody_elses(course, gather, name):
    others, crafted, hers = IDENTITIES[name]
    gather(others)
    before = submitted(course)
    found = gather(others | {crafted: "of eve"})
    after = submitted(course)
    assert {path: after.get(path) for path in before} == before
    of_eve = {path.partition("/")[0] for path, text in after.items() if text == "of eve"}
    assert of_eve == ({hers} if hers else set())
    assert hers or crafted in found.left_out or found.refused


def test_what_another_handed_in_stays_whatever_the_platform_says_now(course, gather):
    gather({f"12/{NOTEBOOK}": "plain", f"ann/{NOTEBOOK}": "plain"})
    (course.submitted / "bob" / NAME).mkdir(parents=True)
    (course.submitted / "bob" / NAME / NOTEBOOK).write_text("copied by hand")
    found = gather({f"leeann_12_3_{NOTEBOOK}": "of Canvas' 12"})
    assert list(found.refused) == ["12"]
    found = gather(
        {f"ann_5_{MOODLE}/{NOTEBOOK}": "of another ann", f"bob_6_{MOODLE}/{NOTEBOOK}": "of another bob"}
    )
    assert (found.new, list(found.refused)) == (["ann (5)"], ["bob"])
    assert submitted(course) == {
        f"12/{NAME}/{NOTEBOOK}": "plain",
        f"ann/{NAME}/{NOTEBOOK}": "plain",
        f"bob/{NAME}/{NOTEBOOK}": "copied by hand",
        f"ann (5)/{NAME}/{NOTEBOOK}": "of another ann",
    }


def test_an_archive_of_one_folder_replaces_nothing_by_names_that_its_owner_may_have_chosen(course, gather):
    gather(MOODLES)
    lone = {f"eve/Ann_0_{MOODLE}{NOTEBOOK}": "of eve"}
    assert list(gather(lone).refused) == ["Ann"]
    assert submitted(course)[f"Ann/{NAME}/{NOTEBOOK}"] == "of Ann"
    assert gather(lone, "plain").new == ["eve"]


def test_a_name_that_cannot_be_a_students_does_not_change_the_scheme(gather):
    found = gather(MOODLES | {f".eve_7_{MOODLE}/{NOTEBOOK}": "of eve"})
    assert (found.new, found.left_out) == (["Ann", "Bob"], [f".eve_7_{MOODLE}/{NOTEBOOK}"])
    time = "Nov 1, 2026 1133 PM"
    found = gather({f"1-9 - Cyd - {time}/{NOTEBOOK}": "1", f"2-9 - Cyd - {time} - {time}/{NOTEBOOK}": "2"})
    assert found.new == ["Cyd", f"Cyd - {time}"]


# What each platform puts before the name of a file, by a student's number.
WORDS = {
    "moodle": "Ann_{}_assignsubmission_file_",
    "canvas": "leeann_{}_1_",
    "brightspace": "{}-5 - Ann - Nov 1, 2026 1133 PM - ",
    "blackboard": "Hw_{}_attempt_2026-11-01-23-33-00_",
    "moodle's folders": "Ann_{}_assignsubmission_file_/",
    "brightspace's folders": "{}-5 - Ann - Nov 1, 2026 1133 PM/",
    "gradescope": "submission_{}/",
    "sakai": "Lee, Ann({})/Submission attachment(s)/",
    "plain": "{}/",
}


@pytest.mark.parametrize(("platform", "another"), list(itertools.permutations(WORDS, 2)))
def test_no_file_names_of_one_student_make_the_class_one_of_another_platform(platform, another):
    ours = platform.partition("'")[0]
    words = WORDS[another] if "/" in WORDS[platform] else WORDS[another].replace("/", "_")
    # what the others handed in, how many they are, and how many files the one hands in
    for ending, size, count in itertools.product(("zip", "ipynb", "py"), (1, 2), (1, 60)):
        others = [WORDS[platform].format(number) + f"heads.{ending}" for number in range(1, size + 1)]
        crafted = [WORDS[platform].format(7) + words.format(100 + i) + NOTEBOOK for i in range(count)]
        assert guess([*others, *crafted, "index.html"]) == ours


def test_names_of_which_too_many_are_odd_are_not_read_as_folders_of_students(course, gather):
    odd = {f"a_b_{number}_{MOODLE}/{NOTEBOOK}": "of another" for number in (5, 6)}
    with pytest.raises(
        CourseError, match=r"3 of 5 hand-ins are named by the scheme 'moodle'.*--scheme moodle"
    ):
        gather(MOODLES | {f"Cyd_9_{MOODLE}/{NOTEBOOK}": "of Cyd"} | odd)
    assert submitted(course) == {}
    found = gather(MOODLES | odd, "moodle")
    assert (found.new, found.left_out) == (["Ann", "Bob"], list(odd))


def test_names_as_of_another_platform_replace_nothing_that_the_roster_finds(course, gather):
    (course.root / roster.NAME).write_text("id,first_name,last_name,login,canvas\ns1,Ann,Lee,alee,11\n")
    gather({f"Lee, Ann(alee)/Submission attachment(s)/{NOTEBOOK}": "of ann"})
    again = {f"leeann_11_6_{NOTEBOOK}": "by canvas"}
    found = gather(again)
    assert list(found.refused) == ["s1"]
    assert "add --scheme canvas" in found.refused["s1"]
    assert submitted(course) == {f"s1/{NAME}/{NOTEBOOK}": "of ann"}
    assert gather(again, "canvas").replaced == ["s1"]


# --- whose, and when --------------------------------------------------------------------------------------

ROSTER = (
    "id,first_name,last_name,email,login,canvas,group\n"
    "s1,Ann,Lee,ann@x.edu,boss,11,A\ns2,Eve,Doe,eve@x.edu,edoe,99,a\n"
)
TIME = "Nov 1, 2026 1133 PM"


def gradescope(*people):
    """An archive of hand-ins by name, sid and e-mail."""
    about = [
        f"submission_{number}:\n  :submitters:\n  - :name: {name}\n    :sid: '{sid}'\n    :email: {email}\n"
        for number, (name, sid, email) in enumerate(people)
    ]
    files = {f"submission_{number}/{NOTEBOOK}": f"of {email}" for number, (_, _, email) in enumerate(people)}
    return {"submission_metadata.yml": "".join(about), **files}


ANN, EVE_AS_ANN = ("Ann Lee", "s1", "ann@x.edu"), ("Ann Lee", "s1", "eve@x.edu")
TAKING_ANNS_PLACE = {  # with a roster: Ann's archive, and the next one, in which Eve calls herself Ann
    "a number on Gradescope": (gradescope(ANN), gradescope(EVE_AS_ANN)),
    "a number on Gradescope beside Ann's": (gradescope(ANN), gradescope(EVE_AS_ANN, ANN)),
    "a name on Brightspace": (
        {f"1-5 - Ann Lee - {TIME}/{NOTEBOOK}": "of ann@x.edu"}, {f"9-5 - Ann Lee - {TIME}/{NOTEBOOK}": "of eve"}),
    "a name on Moodle": (
        {f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann@x.edu"}, {f"Ann Lee_9_{MOODLE}/{NOTEBOOK}": "of eve"}),
    "a number in a name on Canvas": (
        {f"leeann_11_5_{NOTEBOOK}": "of ann@x.edu"}, {f"leeann_11_99_6_{NOTEBOOK}": "of eve"}),
    "a login on Sakai that only looks like Ann's": (
        {f"Lee, Ann(boss)/Submission attachment(s)/{NOTEBOOK}": "of ann@x.edu"},
        {f"Lee, Ann(bo\u017fs)/Submission attachment(s)/{NOTEBOOK}": "of eve"}),
    "a login on Sakai that is Ann's id": (
        {f"Lee, Ann(boss)/Submission attachment(s)/{NOTEBOOK}": "of ann@x.edu"},
        {f"Lee, Ann(s1)/Submission attachment(s)/{NOTEBOOK}": "of eve"}),
    "names of Sakai in a plain archive": (
        {f"Lee, Ann(boss)/Submission attachment(s)/{NOTEBOOK}": "of ann@x.edu"},
        {f"s2/Lee, Ann(boss)/Submission attachment(s)/{NOTEBOOK}": "of eve"}),
    "names of Moodle in a plain archive": (
        {f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann@x.edu"}, {f"s2/Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of eve"}),
    "a group whose name is written like Ann's": (
        {f"leeann_11_5_{NOTEBOOK}": "of ann@x.edu"}, {f"doeeve_99_6_{NOTEBOOK}": "of eve"}),
}  # fmt: skip


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("name", TAKING_ANNS_PLACE)
def test_nobody_takes_the_place_of_another_who_is_in_the_roster(course, tmp_path, name, groups):
    (course.root / roster.NAME).write_text(ROSTER)

    def gather(files):
        with contextlib.suppress(CourseError):
            collect.collect(course, NAME, archive(files, tmp_path / "all.zip"), collect.Extra(groups=groups))

    for files in TAKING_ANNS_PLACE[name]:
        gather(files)
        assert submitted(course)[f"s1/{NAME}/{NOTEBOOK}"] == "of ann@x.edu"


def test_without_a_roster_an_address_tells_people_of_one_number_apart(course, gather):
    gather(gradescope(ANN))
    found = gather(gradescope(EVE_AS_ANN))
    assert list(found.refused) == ["s1"]
    assert submitted(course) == {f"s1/{NAME}/{NOTEBOOK}": "of ann@x.edu"}


def test_groups_need_a_roster(course, tmp_path):
    path = archive({f"leeann_11_5_{NOTEBOOK}": "of ann"}, tmp_path / "all.zip")
    with pytest.raises(CourseError, match=r"roster\.csv"):
        collect.collect(course, NAME, path, collect.Extra(groups=True))


def test_folders_that_some_machines_take_for_one_are_not_both_made(course, gather):
    found = gather({f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "1", f"ann lee_2_{MOODLE}/{NOTEBOOK}": "2"})
    assert found.new == ["Ann Lee", "ann lee (2)"]
    sakai = "Lee, Ann({})/Submission attachment(s)/" + NOTEBOOK
    found = gather({sakai.format("alee"): "3", sakai.format("ALEE"): "4"})
    assert (found.new, list(found.refused)) == (["alee"], ["ALEE"])


def test_a_name_that_can_be_read_in_two_ways_is_left_out(gather):
    odd = [f"leeann_11_12_13_{NOTEBOOK}", f"x_1_2_LATE_12_13_{NOTEBOOK}", "leeann_11_12_text.html"]
    found = gather(
        {f"roebob_{n}_{n}_{NOTEBOOK}": "of bob" for n in range(1, 9)} | dict.fromkeys(odd, "of eve")
    )
    assert sorted(found.left_out) == sorted(odd)


def test_names_that_two_platforms_write_are_asked_about(course, gather):
    names = {f"Homework_1_{login}_attempt_2026-11-01-23-33-00_{NOTEBOOK}": "x" for login in (101, 102, 103)}
    with pytest.raises(CourseError, match="--scheme blackboard or --scheme canvas"):
        gather(names)
    texts = {name.replace(f"_{NOTEBOOK}", ".txt"): f"Name: A ({name.split('_')[2]})\n" for name in names}
    assert gather(names | texts, "blackboard").new == ["101", "102", "103"]


def test_words_that_look_like_a_platforms_around_all_files_or_in_a_students_id(gather):
    found = gather({f"Homework (1)/Lee, Ann(ann)/Submission attachment(s)/{NOTEBOOK}": "of ann"})
    assert found.new == ["ann"]
    assert gather({f"Roe(bob)/{NOTEBOOK}": "of bob"}, "plain").new == ["Roe(bob)"]
    assert guess([f"Roe(bob)/{NOTEBOOK}", f"Doe(cyd)/{NOTEBOOK}"]) == "plain"
    found = gather({f"submitted/dan/{NOTEBOOK}": "of whom?", f"flo/{NOTEBOOK}": "of flo"})
    assert (found.new, found.left_out) == (["flo"], [f"submitted/dan/{NOTEBOOK}"])


FORGED = {  # a time that a student would like to have
    "Sakai": (
        {f"Doe, Eve(eve)/Submission attachment(s)/{name}": text
         for name, text in {NOTEBOOK: "x", "timestamp.txt": "20010101000000000"}.items()}
        | {"Doe, Eve(eve)/timestamp.txt": "20261101233300000"}, "eve"),
    "Brightspace": ({f"9-5 - Eve - Jan 1, 2026 1200 AM - {TIME} - {NOTEBOOK}": "x"}, "Eve"),
    "Brightspace, the year 1": ({f"9-5 - Eve - Jan 1, 0001 1200 AM - {TIME} - {NOTEBOOK}": "x"}, None),
}  # fmt: skip


@pytest.mark.parametrize("platform", FORGED)
def test_a_student_sets_no_time(course, gather, platform, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    files, student = FORGED[platform]
    found = gather(files)
    stamp = (course.submitted / (student or found.new[0]) / NAME / "timestamp.txt").read_text()
    assert stamp == "2026-11-01 23:33:00 UTC\n"


def test_a_hand_in_that_is_refused_takes_no_mark_of_being_late_away(course, gather):
    gather({f"doeeve_LATE_99_5_{NOTEBOOK}": "late"})
    again = {f"doeeve_99_{number}_{number}x.ipynb": "x" for number in range(collect.MAX_NOTEBOOKS + 1)}
    assert list(gather(again).refused) == ["99"]
    assert origins.origins(course, NAME)["99"].late


@pytest.mark.parametrize("text", ["{", "[]", '{"ann": 1}', '{"ann": {"zzz": 1}}', "\xff"])
def test_a_list_of_whose_is_whose_that_cannot_be_read_is_named(course, gather, text):
    gather(PLAIN)
    (course.root / "grades" / f"{NAME}-collected.json").write_text(text, "latin-1")
    with pytest.raises(CourseError, match=r"cannot read .*-collected\.json"):
        gather(PLAIN)
