"""The file in which the oracle keeps its verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import oracle_journal  # noqa: E402 - after the path is set
from oracle_journal import Journal  # noqa: E402 - after the path is set


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the state of the sources that journals see, which a test may change."""
    seen = ["one"]
    monkeypatch.setattr(oracle_journal, "state_of_sources", lambda sources: seen[0])
    return seen


def test_a_run_goes_on_where_another_stopped(tmp_path: Path, state: list[str]) -> None:
    """Each verdict is on the disk at once, and a second run with the same options has it."""
    path = tmp_path / "folder/journal.jsonl"
    first = Journal(path, {"samples": 3})
    first.record("add", ["right", 7])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [["one", {"samples": 3}], ["add", ["right", 7]]]
    second = Journal(path, {"samples": 3})
    assert second.verdicts == {"add": ["right", 7]}
    second.record("mul", ["wrong", 1])
    assert Journal(path, {"samples": 3}).verdicts == {"add": ["right", 7], "mul": ["wrong", 1]}


def test_a_run_does_not_mix_states(tmp_path: Path, state: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A run of other sources, or with other options, says that it starts again."""
    path = tmp_path / "journal.jsonl"
    Journal(path, {}).record("add", "right")
    changed = Journal(path, {"samples": 3})
    assert changed.verdicts == {}
    assert "has verdicts of ['one', {}], this is ['one', {'samples': 3}]: it starts again" in capsys.readouterr().err
    changed.record("add", "wrong")
    state[0] = "another"
    assert Journal(path, {"samples": 3}).verdicts == {}
    assert [json.loads(line) for line in path.read_text().splitlines()] == [["another", {"samples": 3}]]


def test_without_a_file_nothing_is_kept() -> None:
    """The verdicts are in memory only, and git is not asked."""
    journal = Journal(None, {})
    journal.record("add", "right")
    assert journal.verdicts == {"add": "right"}


def test_the_state_is_that_of_the_tree() -> None:
    """It is a digest of the sources, the same at each call."""
    assert len(oracle_journal.state_of_sources()) == 16
    assert oracle_journal.state_of_sources() == oracle_journal.state_of_sources()
    assert oracle_journal.state_of_sources(("docs",)) != oracle_journal.state_of_sources()
