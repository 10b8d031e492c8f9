"""What is registered is found by everybody, once, in order, and PyTorch is loaded only for who asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from mha_grader.course.assignment import in_teaching_order, load_assignment
from mha_grader.course.authoring import assignment_names
from mha_lib import checkers, pitfalls
from mha_lib.pitfalls import BANK, variants
from mha_lib.pitfalls.code import MISTAKES, mistake
from mha_lib.pitfalls.examples import ITEMS, items
from mha_lib.pitfalls.registry import IN_TEACHING_ORDER
from mha_lib.pitfalls.same_items import SAME_ITEMS, original
from mha_lib.pitfalls.weak_checks import CHECKS, weak_checks
from mha_lib.styles import STYLES, styles

COURSE = Path(__file__).parents[3]
LOADED = [load_assignment(COURSE, name) for name in assignment_names(COURSE)]
# Answers, and checkers of other people's code, are neither made wrong nor in another style.
GRADED = [
    (loaded.name, item)
    for loaded in LOADED
    for item in loaded.items
    if callable(getattr(loaded.reference, item)) and not hasattr(checkers, item)
]
REGISTRIES = {"mistakes": MISTAKES, "styles": STYLES, "weak checks": CHECKS, "items": ITEMS}


# --- what is registered of an item is whole, and the item is graded ------------------------------------------


@pytest.mark.parametrize("place", sorted({place for known in REGISTRIES.values() for place in known.items()}))
def test_an_item_of_the_bank_has_right_code_a_style_and_a_mistake(place):
    assert items()[place].right.__name__ == place.partition(".")[2]
    assert styles(*place.split("."))
    assert variants(*place.split("."))


@pytest.mark.parametrize("name", REGISTRIES)
def test_what_is_registered_belongs_to_an_item_that_is_graded(name):
    graded = {".".join(original(*pair)) for pair in GRADED}
    assert set(REGISTRIES[name].items()) <= graded


@pytest.mark.parametrize("name", REGISTRIES)
def test_every_assignment_has_its_place_in_the_order_of_the_course(name):
    with_code = {original(*pair)[0] for pair in GRADED}
    in_contents = in_teaching_order(COURSE, with_code)
    assert REGISTRIES[name].assignments() == list(IN_TEACHING_ORDER) == in_contents


def test_the_bank_speaks_of_items_in_the_order_of_the_course():
    order = [place.partition(".")[0] for place in items()]
    assert list(dict.fromkeys(order)) == list(IN_TEACHING_ORDER)


@pytest.mark.parametrize("place", MISTAKES.items())
def test_an_item_has_a_module_of_its_name_with_its_mistakes(place):
    assignment, _, item = place.partition(".")
    folder = Path(pitfalls.__path__[0]) / "code" / assignment
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in item).lstrip("_")
    text = (folder / f"{name}.py").read_text("utf-8")
    others = [path for path in folder.glob("*.py") if path.name != f"{name}.py"]
    assert f', "{place}")' in text
    assert not [path for path in others if f', "{place}")' in path.read_text("utf-8")]


def test_variants_come_in_teaching_order():
    for place in MISTAKES.items():
        slugs = list(variants(*place.split(".")))
        assert slugs == [slug for slug in BANK if slug in slugs]
        assert slugs
    assert next(iter(variants("single_head", "softmax"))) == "no-max-subtraction"


@pytest.mark.parametrize("name", SAME_ITEMS)
def test_what_is_known_of_an_item_is_known_of_it_under_another_name(name):
    twin, first = name.split("."), SAME_ITEMS[name].split(".")
    for known in (variants, styles, weak_checks):
        assert known(*twin) == known(*first) != {}


@pytest.mark.parametrize(
    "unknown", [("single_head", "no_such_item"), ("heads", "x"), ("attention", "attention")]
)
def test_of_what_nobody_registered_nothing_is_known(unknown):
    assert variants(*unknown) == styles(*unknown) == weak_checks(*unknown) == {}


# --- registering -------------------------------------------------------------------------------------------


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """A registry of two packages that lie in a folder of their own."""
    package = tmp_path / "demo_bank"
    (package / "one").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from mha_lib.pitfalls.registry import Registry\n"
        "THINGS = Registry('demo_bank', 'demo_bank_of_items')\n"
    )
    (package / "one" / "__init__.py").write_text("")
    items = tmp_path / "demo_bank_of_items"
    items.mkdir()
    (items / "__init__.py").write_text("")
    register = "from demo_bank import THINGS\nTHINGS.register({!r}, {!r})({})\n"
    for path, *thing in (
        ("one/f.py", "a", "one.f", 1),
        ("one/more.py", "b", "one.f", 2),
        ("two.py", "a", "two.g", 3),
        ("../demo_bank_of_items/two.py", "a", "two.h", 4),
    ):
        (package / path).write_text(register.format(*thing))
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("demo_bank").THINGS
    for name in [name for name in sys.modules if name.startswith("demo_bank")]:
        del sys.modules[name]


def test_a_new_module_is_found_without_being_named_anywhere(demo):
    assert demo.assignments() == ["one", "two"]
    assert "demo_bank.one.f" not in sys.modules
    assert demo.of("one", "f") == {"a": 1, "b": 2}
    assert "demo_bank.two" not in sys.modules
    assert demo.items() == ["one.f", "two.g", "two.h"]


def test_nobody_can_change_what_is_registered(demo):
    demo.of("one", "f").clear()
    assert demo.of("one", "f") == {"a": 1, "b": 2}


def test_a_new_mistake_is_seen_at_once(monkeypatch):
    monkeypatch.setattr(MISTAKES, "_found", {item: dict(found) for item, found in MISTAKES._found.items()})

    @mistake("softmax-twice", "single_head.softmax")
    def twice(x, axis=-1):
        return x

    assert variants("single_head", "softmax")["softmax-twice"] is twice
    with pytest.raises(ValueError, match=r"single_head\.softmax has two entries 'softmax-twice'"):
        mistake("softmax-twice", "single_head.softmax")(twice)


def test_a_mistake_without_words_is_refused():
    with pytest.raises(ValueError, match="no words for the mistake 'no-such-slug'"):
        mistake("no-such-slug", "single_head.softmax")


def test_numpy_code_is_found_without_pytorch():
    code = """
import sys
from mha_lib.pitfalls import variants
from mha_lib.pitfalls.weak_checks import weak_checks
from mha_lib.styles import styles
for place in "single_head.attention", "multi_head.head_dim", "efficient_heads.prune_heads", "real_heads.keep_heads":
    assert all(known(*place.split(".")) for known in (variants, weak_checks, styles))
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=COURSE).returncode == 0
