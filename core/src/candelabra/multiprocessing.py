"""Python's ``multiprocessing`` with PyTorch's additions: ``spawn``, and the names of sharing strategies.

Tensors are sent by value. ``candelabra.utils.data.DataLoader`` sends batches through shared memory.
"""

from __future__ import annotations

import multiprocessing as _python
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait as _wait

from candelabra._annotations import Any

_STRATEGY = "by_value"


def get_all_sharing_strategies() -> set[str]:
    """Return the ways in which tensors are sent to another process: by value."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Return the way in which tensors are sent to another process."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept a name of PyTorch's strategies, ``"file_descriptor"`` or ``"file_system"``; tensors are sent by value.

    Raises ``ValueError`` for any other name.
    """
    if new_strategy not in ("file_descriptor", "file_system", _STRATEGY):
        raise ValueError(f"unknown sharing strategy {new_strategy!r}; tensors are sent {_STRATEGY!r}")


class ProcessRaisedException(RuntimeError):
    """A process that :func:`spawn` started raised an exception; the message has its traceback."""


class ProcessExitedException(RuntimeError):
    """A process that :func:`spawn` started ended with a status other than 0."""


def _run(function: Callable[..., Any], index: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


class SpawnContext:
    """The processes of one :func:`spawn`."""

    def __init__(self, processes: Sequence[Any], errors: Sequence[Any]) -> None:
        self.processes = list(processes)
        self._errors = list(errors)

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for a process, and return whether all have ended.

        If one has failed, ends the others and raises its error.
        """
        running = {process.sentinel: number for number, process in enumerate(self.processes) if process.is_alive()}
        # A process that raised may wait for the others before it ends, so its error counts before its status.
        told = [errors._reader for errors in self._errors if errors.empty()]
        for ended in _wait([*running, *told], timeout) if running else ():
            if ended in running:
                self.processes[running[ended]].join()  # its status may arrive a moment after its sentinel
        failed = next(
            (
                n for n, p in enumerate(self.processes)
                if p.exitcode not in (None, 0) or not self._errors[n].empty()
            ),
            None,
        )  # fmt: skip
        if failed is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        if self._errors[failed].empty():
            raise ProcessExitedException(
                f"process {failed} terminated with exit code {self.processes[failed].exitcode}"
            )
        raise ProcessRaisedException(
            f"process {failed} terminated with the following error:\n{self._errors[failed].get()}"
        )


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Start ``nprocs`` processes that call ``fn(number, *args)``. With ``join``, wait for them and return None.

    Raises :class:`ProcessRaisedException` or :class:`ProcessExitedException` if one fails.
    """
    context: Any = _python.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        errors.append(context.SimpleQueue())
        process = context.Process(target=_run, args=(fn, number, args, errors[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    made = SpawnContext(processes, errors)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Start processes by ``spawn``; see :func:`start_processes`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_python, name)


__all__ = [
    "get_all_sharing_strategies", "get_sharing_strategy", "ProcessExitedException", "ProcessRaisedException",
    "set_sharing_strategy", "spawn", "SpawnContext", "start_processes",
    *(name for name in dir(_python) if name in _python.__all__),
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
