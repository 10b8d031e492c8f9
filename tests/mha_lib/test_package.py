import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mha_lib

MODULES = sorted(module.name for module in pkgutil.walk_packages(mha_lib.__path__, "mha_lib."))
NEEDS_TORCH = {
    name
    for name in MODULES
    if name.startswith("mha_lib.experiments")
    or "torch" in name
    or "transformer" in name
    or "modern_heads" in name
    or "language_model" in name
    or name
    in (
        "mha_lib.fused",
        "mha_lib.positions",
        "mha_lib.minilm.encoder",
        "mha_lib.minilm.prune_curve",
    )
}
FOR_THE_BOOK = {"mha_lib.figures.plotting"}  # needs matplotlib
STYLES = {name for name in MODULES if name.startswith("mha_lib.styles.")}  # use what students may use
NUMPY_MODULES = [name for name in MODULES if name not in NEEDS_TORCH | FOR_THE_BOOK | STYLES]


def source_of(name):
    path = Path(mha_lib.__path__[0]).parent.joinpath(*name.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()


def imported_by(name):
    for node in ast.walk(ast.parse(source_of(name))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what a module needs"
            yield node.module


def test_the_numpy_modules_do_not_load_torch():
    code = f"import sys, {', '.join(['mha_lib', *NUMPY_MODULES])}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["mha_lib", *NUMPY_MODULES, *sorted(NEEDS_TORCH - STYLES)])
def test_a_module_needs_only_numpy_torch_and_the_standard_library(name):
    roots = {imported.split(".")[0] for imported in imported_by(name)}
    readers = set()
    if name.startswith("mha_lib.minilm."):
        readers = {"safetensors", "tokenizers", "huggingface_hub"}  # of the real model
    elif name.startswith("mha_lib.experiments."):
        readers = {"scipy"}  # for linear programs
    assert roots <= {"mha_lib", "numpy", "torch", *sys.stdlib_module_names} | readers


@pytest.mark.parametrize("name", MODULES)
def test_the_maps_show_every_module(name):
    _, *room, module = name.split(".")
    if not room:
        assert f"`{name}`" in (mha_lib.__doc__ or "")
    elif room in (["experiments"], ["minilm"], ["figures"], ["pitfalls"]):
        assert f"`{module}`" in ast.get_docstring(ast.parse(source_of(f"mha_lib.{room[0]}")))


OUTSIDE_THE_BANK = [name for name in MODULES if not name.startswith(("mha_lib.pitfalls.", "mha_lib.styles."))]


@pytest.mark.parametrize("name", OUTSIDE_THE_BANK)
def test_a_file_outside_the_bank_has_at_most_500_lines(name):
    assert source_of(name).count("\n") <= 500
