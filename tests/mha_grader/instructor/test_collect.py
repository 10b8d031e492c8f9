"""Hand-ins out of the archives of Moodle and Canvas, and what an archive must not be able to do."""

import contextlib
import io
import shutil
import struct
import zipfile
from datetime import UTC, datetime

import pytest
from nbgrader.plugins import ExtractorPlugin
from setuptools.archive_util import UnrecognizedFormat

from mha_grader.course.assignment import CourseError
from mha_grader.instructor import collect, origins, taken, timestamps
from mha_grader.instructor.origins import Origin
from tests.mha_grader.small_course import NAME

from .conftest import archive, folders, submitted

NOTEBOOK = f"{NAME}.ipynb"
MOODLE = "assignsubmission_file_"


# --- Moodle -----------------------------------------------------------------------------------------------


def test_moodle_in_folders_of_old_and_new_versions_with_names_of_all_kinds(course, gather):
    found = gather(
        {
            f"Ann Lee_1234567_{MOODLE}/{NOTEBOOK}": "of ann",
            f"Zoë van der Müller-O'Hara_1234568_{MOODLE}/{NOTEBOOK}": "of zoë",
            f"李 小龙_1234569_assignsubmission_file/{NOTEBOOK}": "of li",
            f"Dan Roe_1234570_{MOODLE}/deeper/{NOTEBOOK}": "of dan",
            "Eve Doe_1234571_assignsubmission_onlinetext_/onlinetext.html": "I forgot the file",
        }
    )
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "of ann",
        f"Zoë van der Müller-O'Hara/{NAME}/{NOTEBOOK}": "of zoë",
        f"李 小龙/{NAME}/{NOTEBOOK}": "of li",
        f"Dan Roe/{NAME}/{NOTEBOOK}": "of dan",
    }
    assert (len(found.new), found.without_notebook, found.left_out) == (5, ["Eve Doe"], [])
    assert "Eve Doe" in folders(course)
    assert origins.origins(course, NAME)["Ann Lee"] == Origin("moodle", "Ann Lee", "1234567")


def test_moodle_flat_and_unpacked_and_packed_again_on_a_mac(course, gather):
    name = "Zoe\u0308 M_7_" + MOODLE + NOTEBOOK  # decomposed, as a Mac writes it
    gather({f"All of them/{name}": "of zoë", f"__MACOSX/All of them/._{name}": "junk"})
    assert submitted(course) == {f"Zo\u00eb M/{NAME}/{NOTEBOOK}": "of zoë"}


def test_names_in_utf_8_that_are_not_marked_as_such(course, tmp_path):
    path = archive({f"Zoe M_7_{MOODLE}/{NOTEBOOK}": "of zoë"}, tmp_path / "all.zip")
    path.write_bytes(path.read_bytes().replace(b"Zoe M", "Zoë".encode() + b"M"))
    collect.collect(course, NAME, path)
    assert folders(course) == ["ZoëM"]


def test_students_of_one_name_are_told_apart_and_keep_their_ids(course, gather):
    gather({f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "first"})
    gather({f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "first", f"Ann Lee_2_{MOODLE}/{NOTEBOOK}": "second"})
    gather({f"Participant_{number}_{MOODLE}/{NOTEBOOK}": str(number) for number in (3, 4)})
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "first",
        f"Ann Lee (2)/{NAME}/{NOTEBOOK}": "second",
        f"Participant (3)/{NAME}/{NOTEBOOK}": "3",
        f"Participant (4)/{NAME}/{NOTEBOOK}": "4",
    }


def test_a_name_that_looks_like_anothers_id_is_another_student(course, gather):
    """Students can change the name that Moodle shows."""
    gather(
        {
            f"Ann Lee (2)_9_{MOODLE}/{NOTEBOOK}": "of eve",
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "first",
            f"Ann Lee_2_{MOODLE}/{NOTEBOOK}": "second",
        }
    )
    assert submitted(course) == {
        f"Ann Lee (1)/{NAME}/{NOTEBOOK}": "first",
        f"Ann Lee (2)/{NAME}/{NOTEBOOK}": "second",
        f"Ann Lee (2) (9)/{NAME}/{NOTEBOOK}": "of eve",
    }
    gather({f"Ann Lee (1)_8_{MOODLE}/{NOTEBOOK}": "of eve again"})
    assert submitted(course)[f"Ann Lee (1)/{NAME}/{NOTEBOOK}"] == "first"


# --- Canvas -----------------------------------------------------------------------------------------------


def test_canvas_with_late_hand_ins_resubmissions_and_anonymous_students(course, gather):
    found = gather(
        {
            f"leeann_12345_678901_{NOTEBOOK}": "of ann",
            f"müllerzoë_LATE_12346_678902_{NAME}-2.ipynb": "of zoë",
            f"roedan_12347_678903_{NOTEBOOK}": "first",
            f"roedan_12347_678904_{NAME}-10.ipynb": "last",
            f"roedan_12347_678905_{NAME}-9.ipynb": "second",
            f"LATE_anon_aB3xY_678906_{NOTEBOOK}": "nameless",
            "doeeve_12349_text.html": "I forgot the file",
        }
    )
    assert submitted(course) == {
        f"12345/{NAME}/{NOTEBOOK}": "of ann",
        f"12346/{NAME}/{NOTEBOOK}": "of zoë",
        f"12347/{NAME}/{NOTEBOOK}": "last",
        f"anon_aB3xY/{NAME}/{NOTEBOOK}": "nameless",
    }
    assert (found.late, found.without_notebook) == (["12346", "anon_aB3xY"], ["12349"])
    assert origins.origins(course, NAME)["12346"] == Origin("canvas", "müllerzoë", "12346", late=True)


# --- plain, and the choice of a scheme --------------------------------------------------------------------


def test_plain_folders_of_students(course, gather):
    found = gather({f"ann/{NOTEBOOK}": "of ann", f"bob/{NAME}/{NOTEBOOK}": "of bob", NOTEBOOK: "whose?"})
    assert submitted(course) == {f"ann/{NAME}/{NOTEBOOK}": "of ann", f"bob/{NAME}/{NOTEBOOK}": "of bob"}
    assert found.left_out == [NOTEBOOK]


def test_the_scheme_is_guessed_and_can_be_said(course, gather):
    assert collect.guess([f"Ann Lee_1_{MOODLE}/{NOTEBOOK}"]) == "moodle"
    assert collect.guess(["readme.txt", f"leeann_12345_678901_{NOTEBOOK}"]) == "canvas"
    assert collect.guess([f"ann/{NOTEBOOK}"]) == "plain"
    with pytest.raises(CourseError, match="by the scheme 'canvas'"):
        gather({f"ann/{NOTEBOOK}": "of ann"}, "canvas")
    gather({f"leeann_1_2_x/{NOTEBOOK}": "a folder that looks like Canvas"}, "plain")
    assert folders(course) == ["leeann_1_2_x"]


# --- Brightspace and Sakai --------------------------------------------------------------------------------


def test_of_brightspaces_attempts_the_last_is_taken_with_its_time(course, gather):
    attempt = "384{}-1077 - {} - Nov {} {}"
    found = gather(
        {
            "index.html": "the platform's",
            f"{attempt.format(1, 'Ann Lee', '1, 2026', '1133 PM')}/{NOTEBOOK}": "of ann",
            f"{attempt.format(2, 'Zoë - M', '3, 2026', '1205 AM')}/{NOTEBOOK}": "last",
            f"{attempt.format(2, 'Zoë - M', '2, 2026', '933 PM')}/{NOTEBOOK}": "first",
            f"{attempt.format(2, 'Zoë - M', '4, 2026', '933 PM')}/thanks.pdf": "no notebook",
            f"{attempt.format(3, 'Ann Lee', '31, 2026', '100 AM')}/{NOTEBOOK}": "another ann, on no day",
        }
    )
    texts = submitted(course)
    assert {name: text for name, text in texts.items() if name.endswith(".ipynb")} == {
        f"Ann Lee (3841)/{NAME}/{NOTEBOOK}": "of ann",
        f"Ann Lee (3843)/{NAME}/{NOTEBOOK}": "another ann, on no day",
        f"Zoë - M/{NAME}/{NOTEBOOK}": "last",
    }
    local = datetime(2026, 11, 3, 0, 5).astimezone(UTC)  # in the time zone of this machine
    assert timestamps.timestamp(course.submitted / "Zoë - M" / NAME) == local.replace(tzinfo=None)
    assert not (course.submitted / "Ann Lee (3843)" / NAME / "timestamp.txt").exists()
    assert found.left_out == ["index.html"]


def test_sakais_folders_are_no_students_and_only_attachments_are_hand_ins(course, gather):
    home = "Homework 1/Lee, Ann (or Bob)(alee)"
    found = gather(
        {
            "Homework 1/grades.csv": "the platform's",
            f"{home}/timestamp.txt": "20260105214200000",
            f"{home}/Submission attachment(s)/{NOTEBOOK}": "of ann",
            f"{home}/Submission attachment(s)/timestamp.txt": "20010101000000000",
            f"{home}/Feedback Attachment(s)/{NOTEBOOK}": "of the teacher",
            "Homework 1/Roe, Dan(roe)/comments.txt": "I forgot",
            "Homework 1/Roe, Dan(roe)/Submission attachment(s)/work.pdf": "no notebook",
        }
    )
    assert submitted(course) == {
        f"alee/{NAME}/{NOTEBOOK}": "of ann",
        f"alee/{NAME}/timestamp.txt": "2026-01-05 21:42:00 UTC\n",
    }
    assert (found.new, found.without_notebook) == (["alee", "roe"], ["roe"])
    assert found.left_out == ["Homework 1/grades.csv"]


# --- which notebook ---------------------------------------------------------------------------------------


def test_of_several_notebooks_the_one_of_the_assignment_is_taken_else_all(course, gather):
    gather(
        {
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "right",
            f"Ann Lee_1_{MOODLE}/draft.ipynb": "wrong",
            f"Ann Lee_1_{MOODLE}/data.csv": "not read",
            f"Bob Roe_2_{MOODLE}/{NAME} (1).ipynb": "renamed",
            f"Dan Poe_4_{MOODLE}/{NAME}-Copy1.ipynb": "a copy",
            f"Dan Poe_4_{MOODLE}/draft.ipynb": "wrong",
            f"Eve Ng_5_{MOODLE}/{NAME}-Copy1.ipynb": "1",
            f"Eve Ng_5_{MOODLE}/{NAME}-Copy2.ipynb": "2",
            f"Cyd Doe_3_{MOODLE}/one.ipynb": "1",
            f"Cyd Doe_3_{MOODLE}/t$wo;`.IPYNB": "2",
        }
    )
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "right",
        f"Bob Roe/{NAME}/{NAME} (1).ipynb": "renamed",
        f"Cyd Doe/{NAME}/one.ipynb": "1",
        f"Cyd Doe/{NAME}/t_wo__.ipynb": "2",
        f"Dan Poe/{NAME}/{NAME}-Copy1.ipynb": "a copy",
        f"Eve Ng/{NAME}/{NAME}-Copy1.ipynb": "1",
        f"Eve Ng/{NAME}/{NAME}-Copy2.ipynb": "2",
    }


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name, text)
    return data.getvalue()


def test_a_students_zip_file_is_opened_once_and_only_if_there_is_no_notebook(course, gather):
    inner = zipped({NOTEBOOK: "of a zip in a zip"})
    found = gather(
        {
            f"Ann Lee_1_{MOODLE}/work.zip": zipped(
                {f"my/../work/{NOTEBOOK}": "of ann", "__MACOSX/._x.ipynb": ""}
            ),
            f"Bob Roe_2_{MOODLE}/work.zip": zipped({NOTEBOOK: "not read"}),
            f"Bob Roe_2_{MOODLE}/{NOTEBOOK}": "of bob",
            f"Cyd Doe_3_{MOODLE}/work.zip": zipped({"inner.zip": inner}),
            f"Dan Poe_4_{MOODLE}/one.zip": inner,
            f"Dan Poe_4_{MOODLE}/two.zip": inner,
            f"Eve Ng_5_{MOODLE}/work.zip": "damaged",
        }
    )
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "of ann",
        f"Bob Roe/{NAME}/{NOTEBOOK}": "of bob",
    }
    assert (found.without_notebook, sorted(found.refused)) == (["Cyd Doe"], ["Dan Poe", "Eve Ng"])


def test_a_students_zip_file_that_is_too_large_when_unpacked_is_refused(course, gather, monkeypatch):
    monkeypatch.setattr(collect, "MAX_BYTES", 2**20)
    found = gather({f"Eve Ng_5_{MOODLE}/work.zip": zipped({NOTEBOOK: bytes(2**20 + 1)})})
    assert list(found.refused) == ["Eve Ng"]
    assert submitted(course) == {}


def test_a_table_tells_when_hand_ins_came(course, tmp_path):
    path = archive(
        {f"leeann_LATE_11_6_{NOTEBOOK}": "of ann", f"roebob_12_7_{NOTEBOOK}": "of bob"}, tmp_path / "a.zip"
    )
    table = tmp_path / "times.csv"
    table.write_text("student,time\n11,2026-11-05 18:00 UTC\n")
    assert collect.collect(course, NAME, path, collect.Extra(times=table)).late == ["11"]
    assert submitted(course)[f"11/{NAME}/timestamp.txt"] == "2026-11-05 18:00:00 UTC\n"
    assert f"12/{NAME}/timestamp.txt" not in submitted(course)
    for wrong in ("11,3/4/2026 18:00", "11,2026-11-05", "11,soon"):
        table.write_text(f"student,time\n{wrong}\n")
        with pytest.raises(CourseError, match="line 2"):
            collect.collect(course, NAME, path, collect.Extra(times=table))


def test_collecting_again_replaces_what_changed_and_nothing_else(course, gather):
    files = {f"{name}_{name}_{MOODLE}/{NOTEBOOK}": "first" for name in ("1", "2")}
    gather(files)
    for student in ("1", "2", "3"):
        folder = course.submitted / student / NAME
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "timestamp.txt").write_text("2026-03-02 00:00:10 UTC")
    found = gather(files | {f"2_2_{MOODLE}/{NOTEBOOK}": "second"})
    assert (found.new, found.replaced, found.unchanged) == ([], ["2"], ["1"])
    assert submitted(course) == {
        f"1/{NAME}/{NOTEBOOK}": "first",
        f"1/{NAME}/timestamp.txt": "2026-03-02 00:00:10 UTC",
        f"2/{NAME}/{NOTEBOOK}": "second",  # its time was that of another notebook
        f"3/{NAME}/timestamp.txt": "2026-03-02 00:00:10 UTC",
    }


# --- what an archive must not do --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        f"../../Eve Doe_1_{MOODLE}/{NOTEBOOK}",
        f"/tmp/Eve Doe_1_{MOODLE}/{NOTEBOOK}",
        f"Eve Doe_1_{MOODLE}/../../../{NOTEBOOK}",
        f"Eve Doe_1_{MOODLE}/..\\..\\{NOTEBOOK}",
        f"..\\Eve Doe_1_{MOODLE}/{NOTEBOOK}",
        f".._1_{MOODLE}/{NOTEBOOK}",
        f".ssh_1_{MOODLE}/{NOTEBOOK}",
        f"two\nlines_1_{MOODLE}/{NOTEBOOK}",
        f"{'long' * 50}_1_{MOODLE}/{NOTEBOOK}",
    ],
)
def test_a_name_that_leads_elsewhere_is_left_out(course, gather, tmp_path, name):
    found = gather({name: "escaped", f"Ann Lee_2_{MOODLE}/{NOTEBOOK}": "of ann"}, "moodle")
    assert found.left_out == [name]
    assert submitted(course) == {f"Ann Lee/{NAME}/{NOTEBOOK}": "of ann"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.zip", "course"]
    assert sorted(path.name for path in course.root.iterdir()) == ["grades", "submitted"]


def test_what_is_too_large_is_refused_before_anything_of_it_is_written(course, gather, monkeypatch):
    monkeypatch.setattr(collect, "MAX_BYTES", 2**20)
    bomb = bytes(2**20 + 1)
    found = gather(
        {
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann",
            f"Eve Doe_2_{MOODLE}/{NOTEBOOK}": bomb,
            f"Flo Doe_3_{MOODLE}/{NOTEBOOK}": "small",
            f"Flo Doe_3_{MOODLE}/data.bin": bomb,  # not read
            **{f"Gus Doe_4_{MOODLE}/{number}.ipynb": "x" for number in range(collect.MAX_NOTEBOOKS + 1)},
        }
    )
    assert set(found.refused) == {"Eve Doe", "Gus Doe"}
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "of ann",
        f"Flo Doe/{NAME}/{NOTEBOOK}": "small",
    }
    monkeypatch.setattr(collect, "MAX_TOTAL", 10)
    with pytest.raises(CourseError, match="nothing was written"):
        gather({f"{number}_{number}_{MOODLE}/{NOTEBOOK}": "12345" for number in (5, 6, 7)})
    monkeypatch.setattr(taken, "MAX_MEMBERS", 1)
    with pytest.raises(CourseError, match="2 files"):
        gather({f"{number}_{number}_{MOODLE}/{NOTEBOOK}": "12345" for number in (5, 6)})
    assert folders(course) == ["Ann Lee", "Flo Doe"]


def test_a_member_that_lies_about_its_size_or_is_damaged_harms_nobody_else(course, tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "MAX_BYTES", 2**20)
    size = 3 * 2**20
    path = archive(
        {
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann",
            f"Eve Doe_2_{MOODLE}/{NOTEBOOK}": bytes(size),
            f"Flo Doe_3_{MOODLE}/{NOTEBOOK}": "0123456789" * 3,
        },
        tmp_path / "all.zip",
    )
    data = path.read_bytes().replace(struct.pack("<L", size), struct.pack("<L", 100))
    with zipfile.ZipFile(path) as opened:
        crc = struct.pack("<L", opened.infolist()[2].CRC)
    path.write_bytes(data.replace(crc, b"\0\1\2\3"))
    before = course.submitted / "Flo Doe" / NAME / NOTEBOOK
    before.parent.mkdir(parents=True)
    before.write_text("from last week")
    found = collect.collect(course, NAME, path)
    assert set(found.refused) == {"Eve Doe", "Flo Doe"}
    assert submitted(course) == {
        f"Ann Lee/{NAME}/{NOTEBOOK}": "of ann",
        f"Flo Doe/{NAME}/{NOTEBOOK}": "from last week",
    }


def zip_of(files, kind=zipfile.ZIP_DEFLATED):
    """The bytes of a zip file of texts or bytes by name."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return made.getvalue()


WORK = zip_of({NOTEBOOK: "0123456789" * 30, "notes.txt": "x"})
ZIPS = {  # of a student, which Python's library cannot read
    "no zip file": b"PK no zip",
    "half of one": WORK[: len(WORK) // 2],
    "a name that is not UTF-8": zip_of({"\xe9.ipynb": "x"}).replace(b"\xc3\xa9", b"\xff\xfe"),
    "an empty name": WORK.replace(b"notes.txt", b"\0otes.txt"),
    "damaged": WORK.replace(WORK[60:70], bytes(10)),
    "bzip2": zip_of({NOTEBOOK: "x"}, zipfile.ZIP_BZIP2),
    "damaged bzip2": zip_of({NOTEBOOK: "x" * 999}, zipfile.ZIP_BZIP2).replace(b"BZh", b"BZx"),
    "lzma": zip_of({NOTEBOOK: "x"}, zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("kind", ZIPS)
def test_a_students_zip_file_that_cannot_be_read_harms_nobody_else(course, gather, kind):
    found = gather(
        {
            f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann",
            f"Eve Doe_2_{MOODLE}/work.zip": ZIPS[kind],
            f"Zoe Doe_3_{MOODLE}/work.zip": zip_of({NOTEBOOK: "of zoe"}),
        }
    )
    assert {"Ann Lee", "Zoe Doe"} <= set(found.new)
    assert submitted(course)[f"Zoe Doe/{NAME}/{NOTEBOOK}"] == "of zoe"
    assert "Eve Doe" in found.refused or kind == "an empty name"  # the notebook beside it can be read


def test_notebooks_whose_names_would_become_one_are_all_there(course, gather):
    names = ["a*b.ipynb", "a?b.ipynb", "A_B.ipynb"]
    gather({f"Ann Lee_1_{MOODLE}/{name}": name for name in names})
    assert sorted(submitted(course).values()) == sorted(names)


def test_a_file_in_a_students_place_is_named_and_stops_nobody_else(course, gather):
    course.submitted.mkdir()
    (course.submitted / "Ann Lee").write_text("a note")
    found = gather({f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "of ann", f"Bob Roe_2_{MOODLE}/{NOTEBOOK}": "of bob"})
    assert (found.new, list(found.refused)) == (["Bob Roe"], ["Ann Lee"])
    assert (course.submitted / "Ann Lee").read_text() == "a note"


def test_a_zip_file_that_is_too_large_leaves_room_for_the_others(course, gather, monkeypatch):
    monkeypatch.setattr(taken, "MAX_BYTES", 2**20)
    files = {f"A{number}_{number}_{MOODLE}/work.zip": bytes(2**20 + 1) for number in range(3)}
    found = gather({**files, f"Zoe_9_{MOODLE}/work.zip": zip_of({NOTEBOOK: "of zoe"})})
    assert submitted(course) == {f"Zoe/{NAME}/{NOTEBOOK}": "of zoe"}
    assert set(found.refused) == {"A0", "A1", "A2"}


@pytest.mark.parametrize("place", range(10, len(WORK), 7))
def test_an_archive_that_is_damaged_is_collected_or_said_to_be_damaged(course, tmp_path, place):
    whole = archive({f"Ann Lee_1_{MOODLE}/{NOTEBOOK}": "0123456789" * 9}, tmp_path / "all.zip").read_bytes()
    (tmp_path / "all.zip").write_bytes(whole[:place] + b"\xff\0" + whole[place + 2 :])
    with contextlib.suppress(CourseError):
        found = collect.collect(course, NAME, tmp_path / "all.zip")
        assert found.new or found.refused or found.left_out


def test_links_are_neither_made_nor_followed(course, tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as made:
        link = zipfile.ZipInfo(f"Eve Doe_2_{MOODLE}/{NOTEBOOK}")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    collect.collect(course, NAME, path)
    written = course.submitted / "Eve Doe" / NAME / NOTEBOOK
    assert not written.is_symlink()
    assert written.read_text() == "/etc/passwd"  # nine letters and no notebook
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.ipynb").write_text("kept")
    shutil.rmtree(written.parent)
    written.parent.symlink_to(outside)
    found = collect.collect(course, NAME, path)
    assert (found.replaced, list(outside.iterdir())) == (["Eve Doe"], [outside / "kept.ipynb"])
    assert not written.parent.is_symlink()


@pytest.mark.parametrize("data", [b"", b"PK no zip"])
def test_what_is_no_zip_file_is_named(course, tmp_path, data):
    (tmp_path / "all.zip").write_bytes(data)
    with pytest.raises(CourseError, match=r"all\.zip as a zip file"):
        collect.collect(course, NAME, tmp_path / "all.zip")
    with pytest.raises(CourseError, match=r"none\.zip"):
        collect.collect(course, NAME, tmp_path / "none.zip")


def test_why_nbgraders_own_extraction_is_not_used(tmp_path):
    """It unpacks archives in archives, however large, and stops at one that is damaged."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(20):
            made.writestr(f"{number}.ipynb", bytes(2**20))
    source, target = tmp_path / "archive", tmp_path / "extracted"
    source.mkdir()
    target.mkdir()
    path = archive({f"Eve Doe_1_{MOODLE}/work.zip": inner.getvalue()}, source / "all.zip")
    ExtractorPlugin().extract(str(source), str(target))
    assert sum(found.stat().st_size for found in target.rglob("*.ipynb")) == 20 * 2**20
    assert path.stat().st_size < 2**20 / 10
    archive({f"Eve Doe_1_{MOODLE}/work.zip": "damaged"}, path)
    with pytest.raises(UnrecognizedFormat):
        ExtractorPlugin().extract(str(source), str(target))
