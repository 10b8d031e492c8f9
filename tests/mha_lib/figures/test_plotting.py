"""Numbers in a heat map can be read, on a light page and on a dark one."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from mha_lib.figures.plotting import STYLE, heat_map

WEIGHTS = np.array([[0.0, 0.25, 0.75], [1.0, 0.5, 0.125]])


def in_the_dark(colour):
    """What the book's `invert(0.93) hue-rotate(180deg)` makes of a colour."""
    turned = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    return (turned @ (0.93 - 0.86 * colour)).clip(0, 1)


def luminance(colour):
    """The relative luminance of the Web Content Accessibility Guidelines."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def drawn():
    with mpl.rc_context(STYLE):
        ax = Figure().subplots()
        heat_map(ax, WEIGHTS, ["first", "second"], ["a", "b", "c"])
    return ax


@pytest.mark.parametrize("seen", [np.asarray, in_the_dark], ids=["light", "dark"])
def test_every_number_stands_out_from_its_cell(drawn, seen):
    (picture,) = drawn.images
    for text in drawn.texts:
        cell = np.array(picture.to_rgba(float(text.get_text()), norm=True)[:3])
        ink = np.array(mpl.colors.to_rgb(text.get_color()))
        assert contrast(seen(ink), seen(cell)) >= 4.5


def test_each_number_stands_in_its_cell_with_queries_down_and_keys_across(drawn):
    for text in drawn.texts:
        key, query = text.get_position()
        assert text.get_text() == f"{WEIGHTS[query, key]:.2f}"
    assert len(drawn.texts) == WEIGHTS.size
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["first", "second"]
    assert [label.get_text() for label in drawn.get_xticklabels()] == ["a", "b", "c"]


def test_small_weights_can_be_left_out():
    ax = Figure().subplots()
    heat_map(ax, WEIGHTS, ["first", "second"], ["a", "b", "c"], least=0.25)
    assert [text.get_text() for text in ax.texts] == ["0.25", "0.75", "1.00", "0.50"]


def test_without_decimals_there_are_no_numbers():
    ax = Figure().subplots()
    heat_map(ax, WEIGHTS, ["first", "second"], ["a", "b", "c"], decimals=None)
    assert not ax.texts
