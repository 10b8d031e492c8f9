"""formgrader in a real browser over a graded class: scores and reasons show, what students wrote is inert."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course.folders import Course
from mha_grader.instructor import gradebook
from tests.mha_grader.small_course import ASKED, NAME, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own

SERVER = "import sys; from jupyter_server.serverapp import main; sys.exit(main())"
ATTACK = '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">'
WRONG = f"def double(x):\n    # {ATTACK}\n    class Odd(Exception): pass\n    raise Odd('''{ATTACK}''')\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = make(tmp_path_factory.mktemp("formgrader") / "course", asked=ASKED)
    hand_in(course, "ann", why=f"Since **half** of it. {ATTACK}")
    hand_in(course, "bob <b>", double=WRONG, extra=f"print('''{ATTACK}''')")
    (course / "submitted" / "cy" / NAME).mkdir(parents=True)
    (course / "submitted" / "cy" / NAME / f"{NAME}.ipynb").write_text(f"not json {ATTACK}")
    assert cli.main(["--course", str(course), "grade", NAME, "--quiet"]) == 0
    return course


@pytest.fixture(scope="module")
def address(course):
    """Jupyter with nbgrader's extension, as `jupyter notebook` in the course's folder starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extensions = {"nbgrader.server_extensions.formgrader": True}
    command = [
        sys.executable,
        "-c",
        SERVER,
        "--no-browser",
        f"--port={port}",
        "--ServerApp.token=",
        "--allow-root",
    ]
    command += [f"--ServerApp.jpserver_extensions={extensions!r}", "--ServerApp.password=", "--ip=127.0.0.1"]
    home = course.parent / "home"
    home.mkdir()
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(home), "JUPYTER_RUNTIME_DIR": str(home)}
    with (course.parent / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=course, env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api/status")
                break
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def page(chromium):
    page = chromium.new_page()
    yield page
    page.close()


def submissions(page, address):
    """Student, score of the tests and id of each hand-in, as formgrader's own table asks for them."""
    found = json.loads(page.request.get(f"{address}/formgrader/api/submissions/{NAME}").text())
    return {each["student"]: each for each in found}


def test_the_table_of_hand_ins_shows_everybody_with_a_score(page, address):
    page.goto(f"{address}/formgrader/manage_submissions/{NAME}")
    page.get_by_text("bob <b>").first.wait_for()
    table = page.locator("#main_table, table").first.inner_text()
    assert "3.3 / 5.8" in table
    assert "3 / 5.8" in table
    assert "0 / 5.8" in table
    assert page.evaluate("window.pwned") is None
    scores = {student: round(each["score"], 6) for student, each in submissions(page, address).items()}
    assert scores == {"ann": 3.3, "bob <b>": 3.0, "cy": 0.0}


def test_a_graded_notebook_shows_parts_and_reasons_and_runs_nothing_of_the_student(page, address):
    page.goto(f"{address}/formgrader/gradebook/{NAME}/{NAME}")
    links = page.locator("a[href*='/formgrader/submissions/']")
    links.first.wait_for()
    texts = []
    for link in sorted({link.get_attribute("href") for link in links.all()}):
        page.goto(f"{address}{link}")
        page.locator("text=Twice every number").first.wait_for()
        texts.append(page.locator("body").inner_text())
        assert page.evaluate("window.pwned") is None
    assert len(texts) == 3
    wrong = next(text for text in texts if "window.pwned" in text)
    assert "numbers" in wrong
    assert "error" in wrong
    assert ATTACK in wrong  # it is there, as text


def test_a_person_marks_an_answer_in_the_browser(page, address, course):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        number = book.find_submission_notebook(NAME, NAME, "ann").id
    page.goto(f"{address}/formgrader/submissions/{number}/")
    page.wait_for_load_state("networkidle")  # the page asks for marks and comments when it is there
    answer = page.locator(".nbgrader_cell:has(#why)")
    assert ATTACK.partition(">")[2].partition("<")[0] in answer.inner_text()
    assert answer.locator("strong").inner_text() == "half"
    assert "2 points: a reason" in page.locator("body").inner_text()
    assert page.evaluate("window.pwned") is None
    answer.locator("#why").fill("1.5")
    answer.locator("textarea").fill("An example would do it.")
    answer.locator("textarea").blur()
    answer.locator(".comment-saved").wait_for()
    answer.locator(".score-saved").wait_for()
    for _ in range(100):  # the page says that it was saved a moment before it has been
        entry = gradebook.read(Course(course), NAME)["ann"]
        if entry.comments:
            break
        time.sleep(0.1)
    assert (entry.by_hand, entry.comments) == ({"why": 1.5}, {"why": "An example would do it."})


def test_the_feedback_page_is_inert_as_well(page, course):
    assert cli.main(["--course", str(course), "feedback", NAME]) == 0
    for student in ("ann", "bob <b>", "cy"):
        page.goto(Path(course / "feedback" / student / NAME / f"{NAME}.html").as_uri())
        assert page.evaluate("window.pwned") is None
        assert "of 5.8 points" in page.locator("body").inner_text()
