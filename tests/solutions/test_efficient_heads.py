"""The assignment `efficient_heads`: what each mistake costs, what junk does, and the whole notebook."""

import shutil

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from mha_grader import assignment as assignments
from mha_grader.kill_table import judge
from mha_lib import pitfalls

FUNCTIONS = ("grouped_query_attention", "kv_cache_bytes", "pruned_attention", "prune_heads")


@pytest.fixture(scope="session")
def efficient_heads(course):
    return assignments.load(course, "efficient_heads")


def grade(efficient_heads, item, tested):
    return judge(efficient_heads, item, "style", "tested", tested, b"secret")


def lost_by(row):
    return {part for part, status in row.statuses.items() if status != "pass"}


# A mistake costs the parts that are about it, and no others

LATER_CHUNKS = {"token by token", "chunks", "reset", "two objects"}
COSTS = [
    ("grouped_query_attention", "kv-tiled", {"groups", "scale in groups"}),
    ("grouped_query_attention", "kv-not-repeated", {"groups", "scale in groups"}),
    (
        "grouped_query_attention",
        "kv-repeated-on-feature-axis",
        {"groups", "one key head", "scale in groups"},
    ),
    ("grouped_query_attention", "no-scale", {"scale", "scale in groups"}),
    ("grouped_query_attention", "scale-by-kv-width", {"scale in groups"}),
    ("grouped_query_attention", "no-output-projection", {"output projection"}),
    ("kv_cache_bytes", "cache-bytes-of-fixed-values", {"other sizes"}),
    ("kv_cache_bytes", "count-not-whole", {"whole number"}),
    ("CachedAttention", "cache-masks-first-chunk-only", {"chunks"}),
    ("CachedAttention", "cache-newest-first", {"chunks"}),
    ("CachedAttention", "square-mask-assumed", {"chunks"}),
    ("CachedAttention", "cache-mask-offset", LATER_CHUNKS),
    ("CachedAttention", "cache-never-used", LATER_CHUNKS),
    ("CachedAttention", "cache-not-reset", {"reset"}),
    ("CachedAttention", "cache-shared-between-objects", {"two objects"}),
    ("CachedAttention", "scale-by-dk", {"scale"}),
    ("CachedAttention", "input-changed-in-place", {"chunk unchanged"}),
    ("pruned_attention", "prune-width-from-d-model", {"narrower", "wider", "scale"}),
    ("pruned_attention", "prune-scale-from-d-model", {"scale"}),
    ("prune_heads", "prune-width-from-d-model", {"pruned before"}),
    ("prune_heads", "prune-stale-indices", {"several heads"}),
    ("prune_heads", "prune-head-count-not-updated", {"number of heads"}),
    ("prune_heads", "prune-zeroed-not-removed", {"smaller", "number of heads"}),
    ("prune_heads", "input-changed-in-place", {"inputs unchanged"}),
]


@pytest.mark.parametrize(("item", "slug", "parts"), COSTS)
def test_a_mistake_costs_only_the_parts_about_it(efficient_heads, item, slug, parts):
    wrong = pitfalls.variants("efficient_heads", item)[slug]
    assert lost_by(grade(efficient_heads, item, wrong)) == parts


def test_whoever_ignores_sharing_loses_half(efficient_heads):
    def multi_head(X, W_Q, W_K, W_V, W_O, num_heads, num_kv_heads):
        return efficient_heads.reference.grouped_query_attention(X, W_Q, W_K, W_V, W_O, num_heads, num_heads)

    row = grade(efficient_heads, "grouped_query_attention", multi_head)
    assert lost_by(row) == {"groups", "one key head", "scale in groups"}
    assert row.score == row.max_score / 2


# Junk is a verdict on the student, never a crash of the grader

JUNK = [
    None,
    "text",
    3.5,
    -(10**400),
    float("nan"),
    [],
    {},
    np.array("text"),
    np.full((2, 3), np.nan),
    np.ones((2, 3, 4, 5)),
    np.ones((0, 4)),
    (None,) * 5,
    (np.ones(2),) * 5,
    (np.ones((15, 0)),) * 4 + (0,),
    (np.ones((15, 12)),) * 4 + (4,),
    object(),
]


@pytest.mark.parametrize("item", FUNCTIONS)
def test_junk_earns_nothing(efficient_heads, item):
    for junk in JUNK:
        row = grade(efficient_heads, item, lambda *arguments, **options: junk)  # noqa: B023 - called at once
        assert row.score == 0, junk
        assert set(row.statuses.values()) <= {"fail", "not-run"}, junk


def test_an_object_that_returns_junk_earns_nothing(efficient_heads):
    for junk in JUNK:

        class Layer:
            def __init__(self, *arguments):
                pass

            def forward(self, chunk, junk=junk):
                return junk

            def reset(self):
                pass

        row = grade(efficient_heads, "CachedAttention", Layer)
        assert row.score == 0, junk
        assert set(row.statuses.values()) <= {"fail", "not-run"}, junk


# The notebook, from top to bottom


def run(course, tmp_path, sources):
    """Run the released notebook with these sources in place of its own; its outputs and what failed, by cell."""
    folder = tmp_path / "efficient_heads"
    shutil.copytree(course / "exercises" / "efficient_heads", folder)
    notebook = nbformat.read(folder / "efficient_heads.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=resources).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    failed = {
        cell: output.ename
        for cell, found in outputs.items()
        for output in found
        if output.output_type == "error"
    }
    return outputs, failed


def text_of(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_with_the_solutions_every_check_is_ok_and_every_demonstration_shows_something(
    course, tmp_path, efficient_heads
):
    solutions = {cell.id: cell.source for cell in efficient_heads.cells if cell.kind == "solution"}
    outputs, failed = run(course, tmp_path, solutions)
    assert failed == {}
    for cell in efficient_heads.cells:
        if cell.kind == "test":
            lines = text_of(outputs[cell.id]).splitlines()
            assert lines, cell.id
            assert all(line.startswith("ok ") for line in lines)
    table = [line.split()[-3:] for line in text_of(outputs["print_kv_cache_bytes"]).splitlines()[1:]]
    assert table[1] == ["10.49", "1.31", "0.16"]
    assert "image/png" in outputs["plot_cache"][0].data
    assert "image/png" in outputs["plot_pruning"][0].data


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(course, tmp_path):
    _, failed = run(course, tmp_path, {})
    assert {f"test_{item}" for item in (*FUNCTIONS, "CachedAttention")} <= set(failed)
    assert set(failed.values()) == {"NotImplementedError"}
