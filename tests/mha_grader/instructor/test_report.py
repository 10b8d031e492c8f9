"""The page about a class: its numbers, what it says of whom, and that it is safe and needs nothing but itself."""

import base64
import hashlib
import random
import re
import shutil
import statistics

import numpy as np
import pytest

from mha_grader import cli
from mha_grader.course.assignment import Cell
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.grading import schedule
from mha_grader.instructor import report, similar, terminal
from mha_lib import pitfalls
from tests.mha_grader.small_course import NAME, hand_in, make

from .test_feedback import Reader, one_head

SCALE = pitfalls.BANK["no-scale"]
STUB = "def attention(Q, K, V):\n    raise NotImplementedError()\n"
SOLUTION = '''\
def attention(Q, K, V, mask=None):
    """One head."""
    d_k = Q.shape[-1]
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores, axis=-1)
    return weights @ V, weights
'''
LOOPS = '''\
def attention(Q, K, V, mask=None):
    """With loops over queries and keys."""
    batch, n, d_k = Q.shape
    m, d_v = K.shape[1], V.shape[2]
    out = np.zeros((batch, n, d_v))
    weights = np.zeros((batch, n, m))
    for b in range(batch):
        for i in range(n):
            row = np.full(m, -1e30)  # what may be attended to
            for j in range(m):
                if mask is None or mask[b, i, j]:
                    row[j] = float(Q[b, i].dot(K[b, j])) / d_k**0.5
            row = np.exp(row - row.max())
            weights[b, i] = row / row.sum()
            for j in range(m):
                out[b, i] += weights[b, i, j] * V[b, j]
    return out, weights
'''
# The same with other names, other comments, another layout, another docstring and an annotation.
LOOPS_RENAMED = """\
import numpy

def attention(Q, K, V, mask: object = None) -> tuple:
    size, queries, width = Q.shape
    keys, out_width = K.shape[1], V.shape[2]
    result = np.zeros(
        (size, queries, out_width)
    )
    w = np.zeros((size, queries, keys))
    # go through all of them
    for s in range(size):
        for q in range(queries):
            logits = np.full(keys, -1e30)
            for k in range(keys):
                if mask is None or mask[s, q, k]:
                    logits[k] = (float(Q[s, q].dot(K[s, k])) / width ** 0.5)
            logits = np.exp(logits - logits.max())
            w[s, q] = logits / logits.sum()
            for k in range(keys):
                result[s, q] += w[s, q, k] * V[s, k]
    return result, w
"""
EINSUM = """\
def attention(Q, K, V, mask=None):
    scale = 1.0 / np.sqrt(K.shape[-1])
    logits = np.einsum("bnd,bmd->bnm", Q, K) * scale
    if mask is None:
        mask = np.ones(logits.shape, dtype=bool)
    peak = np.max(np.where(mask, logits, logits.min()), axis=-1, keepdims=True)
    e = np.multiply(np.exp(np.minimum(logits - peak, 0.0)), mask)
    total = np.add.reduce(e, axis=-1)
    weights = np.divide(e, total[..., np.newaxis], out=np.zeros_like(e), where=total[..., None] > 0)
    return np.einsum("bnm,bmv->bnv", weights, V), weights
"""


@pytest.fixture
def assignment(tmp_path):
    answers = Cell("answers", "solution", "answers = {}", "answers = {'a': 1}", "answers")
    return one_head(tmp_path, STUB, SOLUTION, answers)


def part(name="values", status="pass", pitfall=None, points=2.0):
    return PartRecord(name, points, status, f"What {name} shows.", pitfall)


def record(*parts, source=SOLUTION, answers="pass", status="graded", flags=(), notes=()):
    items = (
        ItemRecord("attention", parts or (part(), part("scale")), source, flags=flags),
        ItemRecord("answers", (part("number", answers, points=1.0),), "answers = {'a': 1}"),
    )
    return SubmissionRecord("single_head", "1", "abc", status, items, notes)


def text_of(*arguments, **names):
    return Reader(report.page(*arguments, **names)).text


# --- numbers ----------------------------------------------------------------------------------------------


def test_the_distribution_puts_each_score_into_its_tenth():
    records = {
        str(points): record(part(points=points / 10), part("rest", "fail", points=9 - points / 10))
        for points in (0, 9, 10, 30, 59, 89, 90)
    }
    # Each has one more point, of ten, for its answers; three tenths and more do not fall below by rounding.
    assert dict(report.distribution(records)) == {
        "90 to 100 %": 2,
        "80 to below 90 %": 0,
        "70 to below 80 %": 0,
        "60 to below 70 %": 1,
        "50 to below 60 %": 0,
        "40 to below 50 %": 1,
        "30 to below 40 %": 0,
        "20 to below 30 %": 1,
        "10 to below 20 %": 2,
        "0 to below 10 %": 0,
    }


def test_quartiles_are_numpys():
    scores = [3.0, 8.0, 1.5, 9.0, 4.0, 4.0, 7.5]
    assert report.quartiles(scores) == pytest.approx(tuple(np.quantile(scores, [0.25, 0.5, 0.75])))
    assert report.quartiles([5.0]) == (5.0, 5.0, 5.0)
    assert report.quartiles([]) == (0.0, 0.0, 0.0)


def test_items_and_parts_are_counted(assignment):
    records = {
        "ann": record(),
        "bob": record(part(), part("scale", "fail", "no-scale")),
        "cyd": record(part(status="fail"), part("scale", "not-run"), source=STUB),
        "dan": record(part(status="timeout"), part("scale", "not-run"), source=""),
    }
    found = report.summary(assignment, records, "attention")
    assert found.success == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert (found.full, found.untouched) == (1, 2)
    values, scale = found.parts
    assert (values.name, values.proves, values.passed) == ("values", "What values shows.", 0.5)
    assert dict(values.counts) == {"pass": 2, "fail": 1, "timeout": 1}
    assert (values.unexplained, scale.unexplained) == (1, 0)
    assert dict(scale.counts) == {"pass": 1, "fail": 1, "not-run": 2}


def test_a_mistake_counts_once_for_a_hand_in(assignment):
    twice = record(part(status="fail", pitfall="no-scale"), part("scale", "fail", "no-scale"))
    once = record(part(status="fail", pitfall="softmax-over-queries"), part("scale", "fail", "no-scale"))
    found = report.misconceptions({"ann": twice, "bob": once, "cyd": record(), "dan": once})
    assert [(each.slug, each.count) for each in found] == [("no-scale", 3), ("softmax-over-queries", 2)]
    assert (found[0].title, found[0].reason, found[0].items) == (SCALE.title, SCALE.reason, ("attention",))
    text = text_of(assignment, {"ann": twice, "bob": once, "cyd": record(), "dan": once})
    assert f"{SCALE.title} 3 of 4 (75 %) {SCALE.reason}" in text
    where = "Pitfalls: scale, pitfalls_scale.html#no-scale; One head, section Scaled dot-product attention."
    assert f"In the book: {where}" in text
    linked = report.page(assignment, {"ann": twice}, book="https://a.b/book/")
    assert '<a href="https://a.b/book/pitfalls_scale.html#no-scale">Pitfalls: scale</a>' in linked


def test_a_mistake_that_is_no_longer_in_the_bank_is_still_counted(assignment):
    records = {"ann": record(part(status="fail", pitfall="gone"))}
    assert report.misconceptions(records) == [report.Misconception("gone", "gone", "", 1, ("attention",))]
    assert "gone 1 of 1 (100 %)" in text_of(assignment, records)


# --- discrimination ---------------------------------------------------------------------------------------


def a_class(n, seed=3):
    """Two items that go together, and one that goes the other way."""
    rng, found = random.Random(seed), {}
    for number in range(n):
        skill = rng.random()
        items = []
        for item, chance in (("one", skill), ("two", skill), ("odd", 1 - skill)):
            names = ("a", "b", "c", "d")
            parts = tuple(part(p, "pass" if rng.random() < chance else "fail", points=1.0) for p in names)
            items.append(ItemRecord(item, parts))
        found[f"s{number}"] = SubmissionRecord("single_head", "1", "abc", "graded", tuple(items))
    return found


def test_discrimination_is_the_correlation_with_the_rest_and_the_difference_of_groups():
    records = a_class(200)
    found = {each.item: each for each in report.discrimination(records)}
    scores = np.array([[item.score for item in each.items] for each in records.values()])  # (200, 3)
    for number, item in enumerate(("one", "two", "odd")):
        rest = scores.sum(axis=1) - scores[:, number]
        assert found[item].correlation == pytest.approx(np.corrcoef(scores[:, number], rest)[0, 1])
    assert found["odd"].correlation < 0 > found["odd"].index
    assert found["odd"].weak


def test_who_ties_at_the_edge_of_a_group_counts_in_part():
    own, rest = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [9, 8, 7, 7, 5, 4, 3, 2, 1, 0]
    # The upper 27 % of ten are 2.7: the first two, and 0.7 of the two who tie, of whom one has the point.
    assert report._top(own, rest) == pytest.approx((1 + 1 + 0.7 * 0.5) / 2.7)
    assert report._top(list(reversed(own)), list(reversed(rest))) == pytest.approx((2 + 0.35) / 2.7)


def test_an_item_that_all_solve_has_no_correlation():
    found = report.discrimination({str(number): record(answers="pass") for number in range(25)})
    assert [each.correlation for each in found] == [None, None]
    assert all(each.weak and each.index == 0 for each in found)


def test_with_few_hand_ins_nothing_is_said_of_discrimination(assignment):
    few = {str(number): record() for number in range(report.ENOUGH - 1)}
    assert "Nothing is said with fewer than 20 graded hand-ins; there are 19." in text_of(assignment, few)
    text = text_of(assignment, few | {"last": record()})
    assert "n = 20." in text
    assert "Look at attention, answers" in text


# --- who needs a person -----------------------------------------------------------------------------------


def test_what_needs_a_person_is_named_with_its_reason(assignment):
    records = {
        "ann": record(),
        "bob": record(flags=("line 3 uses a library's MultiheadAttention: mha = bobs_code",)),
        "cyd": record(status="not-json", notes=("the file is no notebook",)),
        "dan": record(part(status="timeout"), part("scale", "timeout")),
        "eve": record(part(status="memory"), part("scale")),
        "flo": record(status="repaired", notes=("found as flo (1).ipynb",)),
    }
    found = report.needs_a_person(records, ["gus"])
    assert found == {
        "bob": ["attention: line 3 uses a library's MultiheadAttention: mha = bobs_code"],
        "cyd": ["could not be graded (not-json): the file is no notebook"],
        "dan": ["attention: out of time in 2 of 2 parts"],
        "eve": ["attention: out of memory in 1 of 2 parts"],
        "gus": ["handed in, but not graded yet, or grading failed"],
    }
    private = report.needs_a_person(records, private=True)
    assert private["bob"] == ["attention: 1 to look at in its code"]
    assert private["cyd"] == ["could not be graded (not-json)"]
    text = text_of(assignment, records, ["gus"])
    assert "6 hand-ins, 5 of them graded" in text
    assert "gus handed in, but not graded yet, or grading failed" in text


def test_the_table_names_what_ran_out_of_time_since_the_machine_may_have_been_busy(course, capsys):
    terminal.print_scores({"ann": record(), "dan": record(part(status="timeout"))}, {}, course)
    _, ann, dan = capsys.readouterr().out.splitlines()[-3:]
    assert "out of time" not in ann
    assert "attention out of time" in dan


def test_a_class_of_which_nothing_could_be_graded_has_a_report(assignment):
    text = text_of(assignment, {"cyd": record(status="missing")})
    assert "1 hand-in, 0 of them graded" in text
    assert "cyd could not be graded (missing)" in text
    assert "Misconceptions" not in text


# --- nearly the same --------------------------------------------------------------------------------------


def alike(assignment, sources):
    records = {student: record(source=source) for student, source in sources.items()}
    return similar.find(assignment, records)


def test_other_names_comments_layout_and_docstrings_do_not_hide_a_copy(assignment):
    assert similar.labels(LOOPS) == similar.labels(LOOPS_RENAMED) != []
    (found,) = alike(assignment, {"ann": LOOPS, "bob": EINSUM, "cyd": LOOPS_RENAMED})
    assert (found.students, found.share, found.items) == (("ann", "cyd"), 1.0, ("attention",))
    assert found.fingerprints >= similar.OWN


def test_a_small_change_does_not_hide_a_copy_and_two_right_solutions_are_not_alike(assignment):
    changed = LOOPS_RENAMED.replace(
        "w = np.zeros((size, queries, keys))", "w = np.empty([size, queries, keys])"
    )
    (found,) = alike(assignment, {"ann": LOOPS, "bob": EINSUM, "cyd": changed})
    assert found.students == ("ann", "cyd")
    assert similar.ALIKE <= found.share < 1
    assert alike(assignment, {"ann": LOOPS, "bob": EINSUM}) == []


def test_the_stub_the_solution_short_code_and_answers_are_no_sign(assignment):
    short = "def attention(Q, K, V):\n    return Q @ K.T @ V\n"
    answers = "answers = " + repr({f"question {number}": number for number in range(50)}) + "\n"
    broken = LOOPS + ")"
    for source in (STUB, SOLUTION, SOLUTION.replace("scores", "logits"), short, answers, broken, ""):
        assert alike(assignment, {"ann": source, "bob": source}) == []
    assert similar.labels(answers) == similar.labels(broken) == []


def test_a_number_too_long_to_be_written_in_digits_is_no_trouble(assignment):
    long = LOOPS + f"\nx = 0x{'f' * 9000}\ny = 1e999 + 1j + True\n"
    (found,) = alike(assignment, {"ann": long, "bob": long})
    assert found.students == ("ann", "bob")


def test_what_many_hand_ins_share_is_no_sign(assignment):
    """The same loops, each with a helper of its own."""
    helper = "def helper(x):\n    return np.round(x, {0}) * {0} + np.sum(x - {0})\n"
    forms = {f"s{i}": LOOPS + helper.format(i) for i in range(similar.FEW + 1)}
    assert alike(assignment, forms) == []
    few = {student: forms[student] for student in ("s0", "s1", "s2")}
    assert {found.students for found in alike(assignment, few)} == {("s0", "s1"), ("s0", "s2"), ("s1", "s2")}


def test_a_copy_that_goes_round_is_one_group(assignment):
    (found,) = alike(assignment, {f"s{number}": LOOPS for number in range(12)} | {"bob": EINSUM})
    assert len(found.students) == 12


# --- pseudonyms and safety --------------------------------------------------------------------------------


def test_pseudonyms_are_stable_differ_and_need_the_secret():
    names = [report.pseudonym(b"secret", f"s{number}") for number in range(1000)]
    assert len(set(names)) == 1000
    assert names == [report.pseudonym(b"secret", f"s{number}") for number in range(1000)]
    assert report.pseudonym(b"other", "s0") != names[0]
    assert all(re.fullmatch("P-[A-Z2-7]{8}", name) for name in names)


def test_under_pseudonyms_no_id_and_no_line_of_code_is_in_the_page(assignment):
    records = {
        "ann.miller": record(source=LOOPS, flags=("line 1 uses a library's x: by ann miller",)),
        "bob.jones": record(source=LOOPS_RENAMED, status="graded"),
        "cyd.brown": record(status="missing", notes=("no notebook, but cyd.brown.pdf",)),
    }
    page = report.page(assignment, records, ["dan.green"], lambda name: report.pseudonym(b"secret", name))
    assert not re.search("miller|jones|brown|green", page)
    for name in (*records, "dan.green"):
        assert report.pseudonym(b"secret", name) in page


def test_what_comes_from_students_is_no_markup(assignment):
    attack = "<script>document.title = 1</script>"
    records = {
        attack: record(source=LOOPS, flags=(f"line 1: {attack}",)),
        f"\x1b[31m{attack}\x00": record(status="missing", notes=(attack,)),
        '"><img src=x onerror=alert(1)>': record(source=LOOPS_RENAMED),
    }
    page = Reader(report.page(assignment, records, [f"waiting {attack}"]))
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    assert page.text.count(attack) == 6
    assert "\x1b" not in page.text
    assert "\x00" not in page.text


def test_the_page_needs_nothing_but_itself(assignment):
    page = Reader(report.page(assignment, a_class(30) | {"ann": record()}))
    attributes = [(name, value) for _, found in page.elements for name, value in found.items()]
    assert not [value for name, value in attributes if name in ("href", "src") and not value.startswith("#")]
    assert not [name for name, _ in attributes if name.startswith("on") or name == "style"]
    links = {value.removeprefix("#") for name, value in attributes if name == "href"}
    assert links <= {value for name, value in attributes if name == "id"}
    text = report.page(assignment, {"ann": record()})
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in text
    assert "url(" not in style
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


# --- the command ------------------------------------------------------------------------------------------

WRONG = "def double(x):\n    return x\n"
ENDLESS = "def half(x):\n    while True:\n        pass\n"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return make(tmp_path_factory.mktemp("released") / "course")


@pytest.mark.filterwarnings("ignore")
def test_the_report_of_a_graded_course(released, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(schedule, "FEW", 1000)
    course = shutil.copytree(released, tmp_path / "course")
    hand_in(course, "ann")
    hand_in(course, "bob", double=WRONG)
    (hand_in(course, "cyd") / f"{NAME}.ipynb").write_text("no notebook")

    def run(*arguments):
        return cli.main(["--course", str(course), *arguments])

    assert run("report", NAME) == 1
    assert f"run `mha-grade grade {NAME}`" in capsys.readouterr().err
    assert run("grade", NAME) == 0
    hand_in(course, "dan", half=ENDLESS)
    (course / "submitted" / "eve").mkdir()
    (course / "submitted" / "eve" / f"{NAME}.ipynb").write_text("beside its place")
    assert run("report", NAME) == 0
    path = course / "grades" / f"{NAME}-report.html"
    assert capsys.readouterr().out.splitlines()[-1] == str(path)
    text = Reader(path.read_text("utf-8")).text
    assert "3 hand-ins, 2 of them graded" in text
    mean = statistics.fmean([3.3, 3.0])
    assert f"Of 3.3 points: mean {mean:.1f}" in text
    assert "Integers are doubled as well. 50 % not passed: 1" in text
    assert "cyd could not be graded (not-json)" in text
    assert "dan handed in, but not graded yet" in text
    assert "eve handed in, but not graded yet" in text
    assert run("report", NAME, "--pseudonyms") == 0
    page = path.read_text("utf-8")
    assert report.pseudonym(Course(course).secret(), "cyd") in page
    assert "cyd" not in page
