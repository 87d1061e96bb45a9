"""The sides of a comparison, each with a worker process."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import Case

WORKER = Path(__file__).with_name("worker.py")


class Side:
    """A worker process that measures one library; ``environment`` has its variables, by default those of this process.

    ``worker`` has Python's arguments for a program, run in ``folder``, that answers lines of JSON with lines of JSON.
    With ``cpu_time``, times are CPU times of the process, of all its threads. ``prelude`` stands before every setup.
    """

    def __init__(
        self,
        python: str,
        library: str,
        environment: Mapping[str, str] | None = None,
        worker: Sequence[str] = (str(WORKER),),
        folder: Path | None = None,
        cpu_time: bool = False,
        prelude: str = "",
    ) -> None:
        self.library = library
        self.prelude = prelude
        self.cpu_time = cpu_time
        self.environment = environment
        self._command = [python, "-W", "ignore", *worker]
        self._folder = folder
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self._command, cwd=self._folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1,
            env=self.environment,
        )  # fmt: skip

    def time(self, case: Case, seconds: float) -> float:
        """Return the best time of one call, in seconds. Raise ``RuntimeError`` with the worker's error if the case
        fails.
        """
        answer = self._ask(case, seconds)
        if "error" in answer:
            raise RuntimeError(f"{self.library}, {case.name}: {answer['error']}")
        return float(answer["seconds"])

    def runs(self, case: Case, patience: float) -> bool:
        """Return whether the library accepts the call and completes it within ``patience`` seconds."""
        return "error" not in self._ask(case, 0.0, patience)

    def restart(self) -> None:
        """Start a new process, because an error may have made the device unusable in the old one."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()

    def _ask(self, case: Case, seconds: float, patience: float | None = None) -> dict[str, Any]:
        request = {
            "library": self.library,
            "setup": self.prelude + case.setup,
            "statement": case.statement,
            "seconds": seconds,
        }
        request |= {"prepare": case.prepare, "batches": case.batches, "cpu_time": self.cpu_time}
        return self.ask(request, patience)

    def ask(self, request: dict[str, Any], patience: float | None = None) -> dict[str, Any]:
        """Return the worker's answer, or ``{"error": …}`` if there is none within ``patience`` seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        line = self.process.stdout.readline() if ready else ""
        if not line:  # too slow, or the process ended, probably for lack of memory
            self.process.kill()
            self.process.wait()
            self._start()
            return {"error": "no answer"}
        answer: dict[str, Any] = json.loads(line)
        return answer
