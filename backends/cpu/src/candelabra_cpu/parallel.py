"""Run large kernels on several threads. NumPy releases the interpreter lock, so the threads run concurrently.

The ranges depend on the number of threads alone. Results do not depend on the order in which the threads run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from candelabra import get_num_threads

from candelabra_cpu.numpy_kernels import run_in_context_copy

GRAIN_SIZE: Final = 1 << 17
"""The number of elements that justifies one more thread; waking a thread takes about 30 µs."""


MAX_THREADS: Final = 256
"""A thread is started only when there is work for one more."""


class _Pool:
    """The worker threads. They start at the first use, and again after a fork."""

    executor: ThreadPoolExecutor | None = None

    def get(self) -> ThreadPoolExecutor:
        if self.executor is None:
            self.executor = ThreadPoolExecutor(MAX_THREADS, "candelabra-cpu")
        return self.executor

    def reset(self) -> None:
        self.executor = None


_pool: Final = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.reset)


def parallel_for(count: int, work: int, function: Callable[[int, int], Any]) -> list[Any]:
    """Call ``function(start, stop)`` on consecutive ranges that cover ``range(count)``, one range per thread.

    Returns the results in the order of the ranges. ``work`` is the total number of elements: a small job runs as one
    range in the thread of the caller. No range emits floating-point warnings. An exception in any range is raised when
    all ranges are done.
    """
    ranges = min(get_num_threads(), MAX_THREADS, count, work // GRAIN_SIZE)
    if ranges < 2:
        return [function(0, count)]
    bounds = [count * i // ranges for i in range(ranges + 1)]
    pending = [_pool.get().submit(run_in_context_copy, function, a, b) for a, b in pairwise(bounds[1:])]
    try:
        first = function(0, bounds[1])
    finally:
        done = [p.exception() for p in pending]
    for error in done:
        if error is not None:
            raise error
    return [first, *(p.result() for p in pending)]
