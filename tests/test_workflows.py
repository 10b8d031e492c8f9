"""What GitHub is asked to do can be done: the files are well formed and call commands that exist."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def steps_of(workflow):
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_exist_and_actions_are_pinned(workflow):
    steps = steps_of(workflow)
    assert all(
        re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step
    )
    ours = [step["run"] for step in steps if re.match(r"make |bash ", step.get("run", ""))]
    assert ours
    for command, what in (line.split() for line in ours):
        assert what in TARGETS if command == "make" else (ROOT / what).is_file()


def test_the_folder_that_is_published_is_the_one_that_is_built():
    steps = steps_of(ROOT / ".github" / "workflows" / "pages.yml")
    assert [step["run"] for step in steps if step.get("run", "").startswith("make")] == ["make book"]
    assert [step["with"]["path"] for step in steps if "with" in step] == ["_build/html"]
    recipe = (ROOT / "Makefile").read_text("utf-8").split("\nbook:")[1].split("\n\n")[0]
    assert "-m book.build" in recipe


@pytest.mark.parametrize("self_study", [True, False])
def test_a_release_carries_the_package_and_kits_but_nothing_that_is_not_public(tmp_path, self_study):
    """The kits themselves are stood in for: one line in a file for each that is asked for."""
    (script,) = (
        step["run"].split()[1]
        for step in steps_of(ROOT / ".github/workflows/release.yml")
        if "bash" in step.get("run", "")
    )
    (tmp_path / ".ci").mkdir()
    shutil.copyfile(ROOT / script, tmp_path / script)
    for name in ("one", "two"):
        (tmp_path / "exercises" / name).mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/bash\n"
        '[ "$*" = "-m mha_grader.course.kit${3:+ $3}" ] || exit 1\n'
        "mkdir -p build/kit/attention-exercises\n"
        'touch "build/kit/attention-exercises${3:+-$3}.zip"\n'
        + ("touch build/kit/attention-exercises/course.whl\n" if self_study else "")
    )
    python.chmod(0o755)
    subprocess.run(["bash", str(tmp_path / script)], env={**os.environ, "PYTHON": str(python)}, check=True)
    carried = {path.name for path in (tmp_path / "build" / "release").iterdir()}
    rest = {"course.whl", "attention-exercises-one.zip", "attention-exercises-two.zip"}
    assert carried == {"attention-exercises.zip"} | (rest if self_study else set())
