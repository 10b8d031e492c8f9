"""The gradebook in PostgreSQL: a real server is started, used, killed in the middle, and started again."""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.instructor import nbgrader_internals
from tests.mha_grader.killing import EXPECTED, make_class
from tests.mha_grader.small_course import NAME, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own


def program(name: str) -> str:
    """PostgreSQL's programs are often on no path."""
    found = [*sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True), shutil.which(name)]
    assert found[0], "PostgreSQL is missing: sudo apt-get install postgresql"
    return found[0]


class Server:
    """A PostgreSQL server with data of its own, on a free port of this machine."""

    def __init__(self, folder: Path):
        """Make the data; root may not, so there it is done as another user."""
        self.folder, self.user = folder, []
        if os.geteuid() == 0:
            nobody = 65534
            self.user = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups"]
            os.chown(folder, nobody, nobody)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql://grader@127.0.0.1:{self.port}/postgres"
        self._run(program("initdb"), "-D", folder / "data", "-U", "grader", "-A", "trust", "--no-sync")

    def _run(self, *command: object) -> None:
        done = subprocess.run(
            [*self.user, *map(str, command)], cwd="/", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        data = self.folder / "data"
        self._run(program("pg_ctl"), "-D", data, "-l", self.folder / "log", "-w", "-o", options, "start")

    def kill(self) -> None:
        """Kill it at once; it has no time to write anything down."""
        process = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        children = process.children()
        process.kill()
        psutil.wait_procs([process, *children], timeout=30)  # the children notice by themselves


@pytest.fixture
def server():
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders let no other user in
        server = Server(Path(folder))
        server.start()
        yield server
        with contextlib.suppress(psutil.NoSuchProcess):
            server.kill()


def entered(server):
    with Gradebook(server.url) as book:
        return {
            each.student_id: round(sum(grade.auto_score for grade in each.notebooks[0].grades), 6)
            for each in book.find_assignment(NAME).submissions
        }


def test_grading_into_postgresql_survives_the_death_of_the_server(server, tmp_path, capsys):
    course = make(
        tmp_path / "course",
        f'\nc.CourseDirectory.db_url = "{server.url}"\nc.CourseDirectory.course_id = "mha"\n',
    )
    assert not (course / "gradebook.db").exists()
    scores = make_class(course, 4)
    assert set(scores.values()) == set(EXPECTED.values())
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 0
    assert entered(server) == scores
    with Gradebook(server.url) as book:
        grade = book.find_grade("test_half", NAME, NAME, "c0001")
        grade.manual_score = 2.5
        book.db.commit()
    server.kill()
    scores |= make_class(course, 6)
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 1
    said = capsys.readouterr().err
    assert "the gradebook postgresql://" in said
    assert "cannot be opened" in said
    server.start()
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 0
    assert entered(server) == scores
    with Gradebook(server.url) as book:
        assert book.find_grade("test_half", NAME, NAME, "c0001").manual_score == 2.5


def test_a_server_that_goes_away_while_scores_are_entered_is_one_sentence(
    server, tmp_path, capfd, monkeypatch
):
    course = make(
        tmp_path / "course",
        f'\nc.CourseDirectory.db_url = "{server.url}"\nc.CourseDirectory.course_id = "mha"\n',
    )
    scores = make_class(course, 2)
    real, ways = nbgrader_internals.enter, []

    def kill_before(*arguments):
        ways.append("before")
        server.kill()
        real(*arguments)

    def kill_within(converter):
        ways.append("within")
        server.kill()
        return start(converter)

    start = nbgrader_internals.EnterScores.init_notebooks
    for target, name, kill in (
        (nbgrader_internals, "enter", kill_before),
        (nbgrader_internals.EnterScores, "init_notebooks", kill_within),
    ):
        capfd.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(target, name, kill)
            assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 1
        (said,) = capfd.readouterr().err.splitlines()
        assert said.startswith(
            f"mha-grade: the gradebook postgresql://grader@127.0.0.1:{server.port}/postgres can"
        )
        server.start()
    assert ways == ["before", "within"]
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 0
    assert entered(server) == scores
