"""The two sides of a comparison, a worker process each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.cases import Case

WORKER = Path(__file__).with_name("worker.py")


class Side:
    """A worker process that measures one library."""

    def __init__(self, python: str, library: str) -> None:
        self.library = library
        self.process = subprocess.Popen(
            [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def time(self, case: Case, seconds: float) -> float:
        """The best time of one call, in seconds; RuntimeError with the worker's words if the case fails there."""
        answer = self._ask(case, seconds)
        if "error" in answer:
            raise RuntimeError(f"{self.library}, {case.name}: {answer['error']}")
        return float(answer["seconds"])

    def runs(self, case: Case) -> bool:
        """Whether the library takes the call."""
        return "error" not in self._ask(case, 0.0)

    def _ask(self, case: Case, seconds: float) -> dict[str, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"library": self.library, "setup": case.setup, "statement": case.statement, "seconds": seconds}
        self.process.stdin.write(json.dumps(request) + "\n")
        answer: dict[str, str] = json.loads(self.process.stdout.readline())
        return answer
