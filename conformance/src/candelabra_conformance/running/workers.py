"""Run cases in separate processes, several in parallel. A driver that crashes ends one case and not the run."""

from __future__ import annotations

import contextlib
import gc
import math
import multiprocessing
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Final

from candelabra.library import plugins

from candelabra_conformance.model import BAD, CRASHED, TIMED_OUT, Case, Result
from candelabra_conformance.running import crashes, main_program
from candelabra_conformance.running.main_program import MainProgram
from candelabra_conformance.running.setup import Setup, prepared
from candelabra_conformance.threads import in_threads

if TYPE_CHECKING:
    from candelabra_conformance.context import Context

STARTING: Final = 120.0
"""The time limit in seconds for a worker to import and to open the device."""
GRACE: Final = 10.0
"""The time in seconds for running cases after the end of the run's time; then they are stopped and remain."""

EXAMINED: Final = 10
"""The maximum number of operators whose crashes a worker examines; each takes a few seconds."""
EXAMINING: Final = 60.0
"""The time limit in seconds for each answer of a process that examines a crash."""
UNUSABLE: Final = "After it the device refused all work of this process; the next case ran in another one."


@dataclass(frozen=True)
class WorkerArguments:
    """The arguments of every worker."""

    device: str
    setup: Setup | None = None
    forbid_fallback: bool = False
    contributions: str | None = None


def _serve(connection: Connection, program: MainProgram | None) -> None:
    """Run a worker: execute the main program up to its call of ``run()``, then serve cases."""
    if program is None:
        _serve_cases(connection)
    else:
        program.execute(lambda: _serve_cases(connection))


def _serve_cases(connection: Connection) -> None:
    """Receive the work, open the device, then send for each case its result and whether more can run. None ends it.

    Requests other than cases belong to the examination of a crash.
    """
    from candelabra_conformance.context import Context
    from candelabra_conformance.suite import run_case

    work: WorkerArguments = connection.recv()  # only now: its setup may be a function of the main program
    context = Context(prepared(work.device, work.setup), work.contributions)
    # Few of the short-lived objects are cycles; without collecting the imported modules this saves an eighth of the
    # time.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    connection.send(None)
    while (asked := connection.recv()) is not None:
        if isinstance(asked, Case):
            result = run_case(context, asked, forbid_fallback=work.forbid_fallback)
            connection.send((result, result.verdict not in BAD or _usable(context)))
        else:
            crashes.answer(context, asked, connection.send)
            connection.send(None)


def _usable(context: Context) -> bool:
    """Return whether the device still works in this process: after some failures a driver refuses all later work.

    The first wait may raise an error of the failed case; the second one must not.
    """
    instance = context.instance
    with contextlib.suppress(Exception):
        instance.backend.synchronize(instance.index)
    try:
        instance.backend.synchronize(instance.index)
    except Exception:
        return False
    return True


class WorkerStartError(RuntimeError):
    """A worker process that did not start."""


class Worker:
    """One process, which is started at the first use and again after it ended."""

    def __init__(self, work: WorkerArguments, timeout: float | None) -> None:
        self.work, self.timeout = work, timeout
        self.process: BaseProcess | None = None
        self.connection: Connection | None = None
        self.examined: dict[str, Result] = {}
        """The examined crash of each operator."""

    def run(self, case: Case, until: float = math.inf) -> Result | None:
        """Return the result of one case, also if the process ends.

        Return None if it was stopped because it ran too long after ``until`` (of ``time.monotonic``).
        """
        connection = self.connection or self._start()
        limit = math.inf if self.timeout is None else self.timeout
        left = until + GRACE - time.monotonic()
        try:
            connection.send(case)
            if not connection.poll(None if min(limit, left) == math.inf else max(0.0, min(limit, left))):
                self.stop(kill=True)
                if left < limit:
                    return None
                return Result(case, TIMED_OUT, message=f"no answer within {limit:g} s", seconds=limit)
            result: Result
            result, usable = connection.recv()
        except (EOFError, OSError):
            return self._crashed(case, until)
        if usable:
            return result
        self.stop(kill=True)
        return replace(result, message=f"{result.message}\n{UNUSABLE}")

    def _crashed(self, case: Case, until: float) -> Result:
        """Return the result of a case in which the process died. The first crash of an operator is examined."""
        died = f"the process that ran it died: {self._end()}"
        known = self.examined.get(case.operator)
        if known is not None:
            died += f"\nThe report of {known.case.id} has the call of this operator that was examined."
            return Result(case, CRASHED, message=died, uses=known.uses)
        if len(self.examined) >= EXAMINED or time.monotonic() >= until:
            return Result(case, CRASHED, message=died)
        self.examined[case.operator] = found = crashes.examined(case, self.work.device, died, self._ask)
        return found

    def _ask(self, request: crashes.Request) -> tuple[list[Any], bool]:
        """Send a request to a new process. Return its answers, and whether it died."""
        self.stop(kill=True)
        answers: list[Any] = []
        connection = self._start()
        try:
            connection.send(request)
            while connection.poll(EXAMINING) and (answer := connection.recv()) is not None:
                answers.append(answer)
        except (EOFError, OSError):
            self._end()
            return answers, True
        self.stop(kill=True)
        return answers, False

    def _start(self) -> Connection:
        methods = multiprocessing.get_context("spawn")
        ours, theirs = methods.Pipe()
        with main_program.hidden() as program:
            self.process = methods.Process(target=_serve, args=(theirs, program), daemon=True)
            self.process.start()
        theirs.close()
        self.connection = ours
        try:
            with main_program.visible():
                ours.send(self.work)
            if not ours.poll(STARTING):
                raise WorkerStartError(f"a worker did not start within {STARTING:g} s")
            ours.recv()
        except (EOFError, OSError):
            raise WorkerStartError(
                f"a worker could not open {self.work.device!r}: {self._end()}; its own error stands above{self._hint()}"
            ) from None
        return ours

    def _hint(self) -> str:
        """Return what to do if a program registers the backend that workers cannot execute again."""
        plugin = plugins.plugins().get(self.work.device.partition(":")[0])
        if plugin is None or plugin.entry is not None or self.work.setup is not None:
            return ""
        return (
            ". No entry point names the backend, so each worker has to register it: put the program into a file, which "
            "registers it outside of `if __name__ == '__main__':`, or pass setup=, a function of the file or of an "
            "importable module; jobs=1 needs neither"
        )

    def _end(self) -> str:
        assert self.process is not None
        self.process.join(5)
        code = self.process.exitcode
        self.process, self.connection = None, None
        return _in_words(code)

    def stop(self, kill: bool = False) -> None:
        """End the process; the next case starts another."""
        if self.process is None or self.connection is None:
            return
        if kill:
            self.process.kill()
        else:
            try:
                self.connection.send(None)
            except OSError:
                self.process.kill()
        self.process.join(10)
        self.connection.close()
        self.process, self.connection = None, None


def _in_words(code: int | None) -> str:
    if code is None:
        return "it does not end"
    if code < 0:
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit status {code}"


def run_in_workers(
    cases: Sequence[Case],
    work: WorkerArguments,
    jobs: int,
    timeout: float | None,
    finished: Callable[[Result], None],
    until: float = math.inf,
    stopped: Callable[[Case], None] = lambda case: None,
) -> list[Result]:
    """Run cases in ``jobs`` processes, those of an operator in one process, since they share the oracle's cache.

    No case begins after ``until`` (of ``time.monotonic``); cases without a result remain. ``stopped`` is called with
    each case that had begun and was stopped then.
    """
    chunks = _by_operator(cases)
    results: list[Result] = []
    lock = threading.Lock()

    def serve(number: int) -> None:
        worker = Worker(work, timeout)
        try:
            while True:
                with lock:
                    chunk = chunks.popleft() if chunks else None
                if chunk is None:
                    return
                for case in chunk:
                    if time.monotonic() >= until:
                        return
                    result = worker.run(case, until)
                    with lock:
                        if result is None:
                            stopped(case)
                            return
                        results.append(result)
                        finished(result)
        except BaseException:
            with lock:
                chunks.clear()  # the others finish their current cases
            raise
        finally:
            worker.stop()

    in_threads(max(1, jobs), serve)
    return results


def _by_operator(cases: Sequence[Case]) -> deque[list[Case]]:
    found: dict[Any, list[Case]] = {}
    for case in cases:
        found.setdefault((case.level == 0, case.operator), []).append(case)
    return deque(found.values())
