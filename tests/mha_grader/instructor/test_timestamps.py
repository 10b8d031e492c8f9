"""When a hand-in came, from whatever its timestamp.txt holds."""

import os
import time
from datetime import UTC, datetime

import pytest

from mha_grader.instructor.metadata import parse_time
from mha_grader.instructor.timestamps import is_unreadable, small_file, timestamp

TIME = "2026-02-03 14:05:06.5 UTC"
CAME = datetime(2026, 2, 3, 14, 5, 6, 500000)

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_way_that_editors_write_text_is_read(tmp_path, encoding):
    (tmp_path / "timestamp.txt").write_bytes(f"{TIME}\r\n".encode(encoding))
    assert timestamp(tmp_path) == CAME
    assert not is_unreadable(tmp_path)


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("2026-02-03 14:05:06.5", CAME),
        ("2026-02-03 16:05:06.5 +0200", CAME),
        ("2026-02-03T16:05:06.5+02:00", CAME),
        ("20260203T140506.5Z", CAME),
    ],
)
def test_times_are_utc(tmp_path, text, came):
    (tmp_path / "timestamp.txt").write_text(text)
    assert timestamp(tmp_path) == came


@pytest.mark.parametrize("data", [b"", b"2026-02-03", b"soon", b"\xff", b"1:00 of what", b"1" * 2000])
def test_what_tells_no_time_is_named(tmp_path, data):
    assert not is_unreadable(tmp_path)
    (tmp_path / "timestamp.txt").write_bytes(data)
    assert timestamp(tmp_path) is None
    assert is_unreadable(tmp_path)


def test_a_link_is_not_followed_and_is_named(tmp_path):
    (tmp_path / "secret").write_text(TIME)
    os.symlink(tmp_path / "secret", tmp_path / "timestamp.txt")
    assert small_file(tmp_path / "timestamp.txt") == ""
    assert is_unreadable(tmp_path)


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-11-05 18:00 CET", 17),
        ("2026-07-05 18:00 EET", 15),  # in summer
        ("2026-11-05 18:00 EST", 23),
        ("2026-11-05 18:00 UTC", 18),
        ("2026-11-05T18:00Z", 18),
        ("2026-11-05 18:00 -0300", 21),
        ("Thursday, 5 November 2026, 6:00 PM", 18),
    ],
)
def test_a_date_that_a_person_writes_is_in_the_zone_that_it_names(text, hour, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        found = parse_time(text)
    time.tzset()
    assert found is not None
    assert (found.astimezone(UTC).hour, found.astimezone(UTC).minute) == (hour, 0)


def test_a_zone_that_nobody_knows_is_not_taken_for_this_machines():
    assert parse_time("2026-11-05 18:00 QQT") is None
