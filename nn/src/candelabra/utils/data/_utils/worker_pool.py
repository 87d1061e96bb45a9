"""The worker processes of a loader, seen from the program: starting them, their results, and their end."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, Final

from candelabra.library import open_instances
from candelabra.utils.data._utils.shared_memory import PackedBatch, SegmentReader
from candelabra.utils.data._utils.worker import WorkerSetup, run_worker

__all__ = ["WorkerPool", "devices_without_fork", "start_context"]

STOP_SECONDS: Final = 5.0
"""How long workers may take to finish their batch when they are no longer needed, before they are terminated."""

_starting: Final = threading.Lock()
_own_ends: Final[set[Connection]] = set()
"""The program's ends of all pools' pipes. A forked worker closes its copies, or others would not see them closed."""


def devices_without_fork() -> list[str]:
    """Return the devices in use that a forked process cannot use.

    An asynchronous device has threads of its driver, and a fork copies one thread only.
    """
    return [str(instance.device) for instance in open_instances() if instance.capabilities.asynchronous]


def start_context() -> Any:
    """Return the ``multiprocessing`` context by which workers start unless the loader names one.

    It is the one that the program has set; else fork, which needs no pickling, where the platform's libraries allow it
    and no device in use forbids it; else forkserver or spawn.
    """
    methods = multiprocessing.get_all_start_methods()
    chosen = multiprocessing.get_start_method(allow_none=True)
    if chosen in (None, "fork"):
        can_fork = "fork" in methods and sys.platform != "darwin" and not devices_without_fork()
        chosen = "fork" if can_fork else "forkserver" if "forkserver" in methods else "spawn"
    return multiprocessing.get_context(chosen)


class WorkerPool:
    """Worker processes with a pipe to and from each.

    Args:
        context: how the processes start.
        setup: of worker 0; the others have the following numbers and seeds.
        ahead: the number of orders that a worker may have at a time.
    """

    def __init__(self, context: Any, setup: WorkerSetup, ahead: int) -> None:
        self.epoch = 0
        self._owner = os.getpid()
        self._ahead = ahead
        self.is_closed = False
        self._processes: list[Any] = []
        self._orders: list[Connection] = []
        self._results: list[Connection] = []
        self._readers: list[SegmentReader] = []
        if os.name == "posix":
            # Before the first fork, or each worker would start a tracker of its own, which removes segments that live.
            resource_tracker.ensure_running()
        prefix = f"cd{os.getpid():x}p{secrets.token_hex(3)}"  # Names of shared memory have 30 characters on macOS.
        try:
            for number in range(setup.num_workers):
                name = f"{prefix}_{number}"
                own = replace(setup, id=number, seed=setup.seed + number, segment_prefix=name)
                self._readers.append(SegmentReader(name))
                self._start(context, own)
        except BaseException:
            self.close(0)
            raise

    def _start(self, context: Any, setup: WorkerSetup) -> None:
        # Only the worker may hold the far ends: when it dies, reading its results must end. So no other worker is
        # started before they are closed here.
        with _starting:
            orders, to_worker = context.Pipe(duplex=False)
            from_worker, results = context.Pipe(duplex=False)
            self._orders.append(to_worker)
            self._results.append(from_worker)
            _own_ends.update((to_worker, from_worker))
            inherited = list(_own_ends) if context.get_start_method() == "fork" else []
            name, arguments = f"DataLoader worker {setup.id}", (setup, orders, results, inherited)
            process = context.Process(target=run_worker, args=arguments, name=name, daemon=True)
            try:
                with _pickling_explained(context), warnings.catch_warnings():
                    # From 3.12 on, Python warns of any thread at a fork. A forked process starts its own thread pool.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
            finally:
                orders.close()
                results.close()
            self._processes.append(process)

    def __len__(self) -> int:
        return len(self._readers)

    def begin_epoch(self) -> int:
        """Return the number of a new epoch. Results of earlier ones are dropped."""
        self.epoch += 1
        return self.epoch

    def send(self, worker: int, epoch: int, number: int, order: Any) -> None:
        """Order a batch of a worker. A worker that has died shows when results are received."""
        with suppress(OSError):
            self._orders[worker].send((epoch, number, order, self._readers[worker].take_returned()))

    def receive(self, timeout: float) -> list[tuple[int, int, Any]]:
        """Wait for results, and return them as (number of the worker, number of the order, result).

        Raises ``RuntimeError`` when a worker has died, and when ``timeout`` seconds pass (0: no limit) without a result
        of the current epoch. The pool is closed then.
        """
        deadline = monotonic() + timeout if timeout else None
        while True:
            ends: list[Any] = [*self._results, *(process.sentinel for process in self._processes)]
            ready = wait(ends, None if deadline is None else max(deadline - monotonic(), 0))
            if not ready:
                self.close(0)
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            arrived = [worker for worker, end in enumerate(self._results) if end in ready]
            if not arrived:
                self._raise_death([n for n, process in enumerate(self._processes) if process.sentinel in ready])
            found = []
            for worker in arrived:
                try:
                    epoch, number, result = self._results[worker].recv()
                except (EOFError, OSError):
                    self._raise_death([worker])
                if epoch == self.epoch:
                    found.append((worker, number, result))
                elif isinstance(result, PackedBatch):
                    self._readers[worker].discard(result)
            if found:
                return found

    def unpack(self, worker: int, packed: PackedBatch) -> Any:
        """Return the batch of a result."""
        return self._readers[worker].unpack(packed)

    def _raise_death(self, workers: Sequence[int]) -> None:
        process = self._processes[workers[0]]
        process.join(STOP_SECONDS)
        code, pid = process.exitcode, process.pid
        self.close(0)
        if code is not None and code < 0:
            hint = _HINTS.get(signal.Signals(-code).name, "")
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. {hint}")
        raise RuntimeError(
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are lost due to "
            "multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )

    def close(self, patience: float = STOP_SECONDS) -> None:
        """Stop the workers and remove their shared memory. Those that still run after ``patience`` seconds are killed.

        In a process that was forked from the pool's, this does nothing.
        """
        if self.is_closed or os.getpid() != self._owner:
            return
        self.is_closed = True
        for connection in self._orders:
            with suppress(OSError):
                connection.send(None)  # A process that the program forked may keep the pipe open.
        for connection in (*self._orders, *self._results):
            connection.close()
        _own_ends.difference_update(self._orders, self._results)
        deadline = monotonic() + patience
        for process in self._processes:
            process.join(max(deadline - monotonic(), 0))
        for end in ("terminate", "kill"):
            alive = [process for process in self._processes if process.is_alive()]
            for process in alive:
                getattr(process, end)()
            for process in alive:
                process.join(STOP_SECONDS)
        for reader in self._readers:
            reader.close(self._ahead + 1)
        for process in self._processes:
            with suppress(ValueError):  # not even killed: in an uninterruptible system call
                process.close()


_HINTS: Final = {
    "SIGBUS": "This might be caused by insufficient shared memory (shm).",
    "SIGKILL": "This might be the system's answer to too little memory.",
}


@contextmanager
def _pickling_explained(context: Any) -> Iterator[None]:
    """Add to the error of a data set that cannot be pickled why it is pickled."""
    try:
        yield
    except Exception as error:
        method, devices = context.get_start_method(), devices_without_fork()
        if method != "fork":
            reason = f" because {', '.join(devices)}, in use, cannot be forked" if devices else ""
            error.add_note(
                f"DataLoader workers start by {method}{reason}, so the dataset, collate_fn and worker_init_fn are "
                "pickled: define their classes and functions at the top level of a module, or use num_workers=0"
            )
        raise


def __dir__() -> list[str]:
    return sorted(__all__)
