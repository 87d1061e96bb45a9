"""Damaged files of all formats: each is loaded or refused, in bounded time and memory, and nothing is executed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SALT = os.environ.get("CANDELABRA_TEST_SALT", "")


@pytest.mark.parametrize(
    ("part", "count"),
    [(0, 1000), *(pytest.param(part, 10_000, marks=pytest.mark.thorough) for part in range(1, 11))],
)
def test_damaged_files_are_loaded_or_refused(request: pytest.FixtureRequest, part: int, count: int) -> None:
    """A process of its own loads the files, so that a hang, a crash or a lack of memory is a failure of this test."""
    seed = f"{SALT}{request.node.nodeid}"
    command = [sys.executable, "-m", "tests.core.serialization.fuzzing", seed, str(count)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert result["faults"] == [], f"python -m tests.core.serialization.fuzzing '{seed}' 1 NUMBER"
    for form in ("safetensors", "zip", "legacy", "t7"):
        assert result["outcomes"][f"{form} loaded"] > count / 100
        assert result["outcomes"][f"{form} refused"] > count / 20
