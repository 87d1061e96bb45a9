"""The benchmark's worker measures the requested statement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.cases import CASES

WORKER = Path(__file__).parents[2] / "benchmarks" / "worker.py"


def ask(**request: object) -> dict[str, object]:
    """Return a function that sends one request to a new worker."""
    done = subprocess.run(
        [sys.executable, str(WORKER)], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_worker_measures_the_time_of_a_statement() -> None:
    """The answer is a positive number of seconds."""
    answer = ask(library="candelabra", setup="a = xp.ones(3)", statement="a + a", seconds=0.01)
    assert 0 < float(str(answer["seconds"])) < 1


def test_a_worker_reports_what_failed() -> None:
    """A statement that raises gives an answer with the error, not a crash."""
    answer = ask(library="candelabra", setup="", statement="1 / 0", seconds=0.01)
    assert answer == {"error": "ZeroDivisionError: division by zero"}


def test_every_case_can_be_run_on_our_side() -> None:
    """Setup and statement of each case run once."""
    import candelabra

    for case in CASES:
        names: dict[str, object] = {"xp": candelabra}
        exec(case.setup, names)
        exec(case.statement, names)
