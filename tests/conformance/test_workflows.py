"""The workflows for GitHub Actions: that of a generated package, whose shell lines are run, and the reusable one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from candelabra_conformance.cli import main
from candelabra_conformance.scaffold import write_backend

REUSABLE = Path(__file__).parents[2] / ".github" / "workflows" / "backend.yml"
ACTIONS = {"actions/checkout@v4", "actions/setup-python@v5", "actions/upload-artifact@v4"}


def parsed(text: str) -> dict[str, Any]:
    """Return the workflow; YAML 1.1 reads the key ``on`` as True."""
    return {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}


def shell_steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps with shell lines of the only job."""
    (job,) = workflow["jobs"].values()
    return [step for step in job["steps"] if "run" in step]


def expanded(text: str, values: dict[str, str]) -> str:
    """Return the text with its expressions ``${{ … }}`` replaced. An unknown expression raises ``KeyError``."""
    return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda match: values[match[1]], text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a package and return its folder."""
    return write_backend("lamp", tmp_path_factory.mktemp("vendor"))


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a runner without a network, in which candelabra is installed.

    pip installs only the wheel, without the network. Python finds the packages of this process, and ``candelabra`` is
    a script for whichever Python is first in ``PATH``, as after an installation.
    """
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    command = scripts / "candelabra"
    command.write_text('#!/bin/sh\nexec python -m candelabra._cli.main "$@"\n')
    command.chmod(0o755)
    (scripts / "python").symlink_to(sys.executable)
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1"}
    return {
        **os.environ,
        **offline,
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "GITHUB_PATH": str(tmp_path / "path"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }


def execute(script: str, folder: Path, environment: dict[str, str]) -> str:
    """Run the lines of a step as GitHub's runners do and return the output. A failing line fails the test."""
    added = Path(environment["GITHUB_PATH"])
    if added.exists():
        path = os.pathsep.join([*reversed(added.read_text().split()), environment["PATH"]])
        environment = {**environment, "PATH": path}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.thorough
def test_the_shell_lines_of_a_generated_workflow_run(folder: Path, runner: dict[str, str], tmp_path: Path) -> None:
    """They build the wheel, install it in a fresh environment, run the tests and the suite, and write the reports."""
    workflow = parsed((folder / ".github/workflows/conformance.yml").read_text())
    output = {}
    for step in shell_steps(workflow):
        text = expanded(step["run"], {"matrix.pip": "", "matrix.core": "released"})
        output[step["name"]] = execute(text, folder, runner)
    installed = next((folder / "fresh").glob("lib/python*/site-packages/candelabra_lamp"))
    assert (installed / "expected_failures.toml").exists()
    assert "lamp in the host's memory" in output["Show the versions and the devices"]
    assert "1 passed" in output["Run the tests"]
    assert {p.suffix for p in folder.glob("conformance.*")} == {".json", ".xml", ".html", ".md"}
    assert (tmp_path / "summary.md").read_text() == (folder / "conformance.md").read_text()


def test_a_generated_workflow_runs_each_week_against_both_versions_of_the_core(folder: Path) -> None:
    """A schedule is set, pre-releases have a job of their own that does not fail the workflow, and reports are kept."""
    workflow = parsed((folder / ".github/workflows/conformance.yml").read_text())
    assert set(workflow["on"]) == {"push", "pull_request", "schedule"}
    assert re.fullmatch(r"(\S+ ){4}\S+", workflow["on"]["schedule"][0]["cron"])
    (job,) = workflow["jobs"].values()
    assert {m["core"]: m["pip"] for m in job["strategy"]["matrix"]["include"]} == {
        "released": "",
        "development": "--pre --upgrade",
    }
    assert job["continue-on-error"] == "${{ matrix.core == 'development' }}"
    upload = job["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["with"]["name"] == "conformance-${{ matrix.core }}"
    assert {step["uses"] for step in job["steps"] if "uses" in step} == ACTIONS


def test_the_commands_of_the_reusable_workflow_exist() -> None:
    """Each shell line is valid, its command exists, and the suite accepts its options."""
    workflow = parsed(REUSABLE.read_text())
    (job,) = workflow["jobs"].values()
    assert {step["uses"] for step in job["steps"] if "uses" in step} == ACTIONS
    for step in shell_steps(workflow):
        subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
        assert "${{" not in step["run"], "inputs reach the shell as variables, which it does not interpret"
        commands = {line.split()[0] for line in step["run"].splitlines()} - {"fresh/bin/python", "candelabra"}
        assert [command for command in commands if shutil.which(command) is None] == []
    (suite,) = (s["run"] for s in shell_steps(workflow) if s["run"].startswith("candelabra conformance"))
    assert set(re.findall(r"\$(\w+)", suite)) <= set(job["env"])
    with pytest.raises(SystemExit, match="0"):
        main([*suite.replace('"$LEVEL"', "2").replace(" $ARGUMENTS", "").split()[2:], "--help"])


def test_the_inputs_of_the_reusable_workflow_are_those_that_it_uses() -> None:
    """Each input has a description and is used, and only the device is required."""
    workflow = parsed(REUSABLE.read_text())
    inputs = workflow["on"]["workflow_call"]["inputs"]
    assert {name for name, about in inputs.items() if about.get("required")} == {"device"}
    assert all(about["description"] for about in inputs.values())
    used = set(re.findall(r"\binputs\.([\w-]+)", yaml.safe_dump(workflow["jobs"])))
    assert used == set(inputs)


@pytest.mark.thorough
def test_the_shell_lines_of_the_reusable_workflow_run(folder: Path, runner: dict[str, str]) -> None:
    """They hold the package of the calling repository to a level."""
    workflow = parsed(REUSABLE.read_text())
    (job,) = workflow["jobs"].values()
    inputs = workflow["on"]["workflow_call"]["inputs"]
    values = {f"inputs.{name}": str(about.get("default", "")) for name, about in inputs.items()}
    values |= {"inputs.device": "lamp:0", "inputs.level": "0"}
    environment = runner | {name: expanded(str(value), values) for name, value in job["env"].items()}
    for step in shell_steps(workflow):
        # Without a network, pip cannot be asked for the core.
        execute(step["run"].replace(' "candelabra[conformance]"', ""), folder, environment)
    assert (folder / "conformance.xml").exists()
