"""Large kernels split over the cores: NumPy lets go of the interpreter while it works, so threads do run side by side.

The parts are fixed by the number of cores alone, so results do not depend on how the threads happen to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from candelabra_cpu.quiet import run_in_copy

LEAST: Final = 1 << 17
"""Elements of work for which waking another thread pays (it costs about 30 µs)."""


def _cores() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CORES: Final = _cores()
"""How many threads work on one kernel: ``OMP_NUM_THREADS``, else the cores that the process may use."""


class _Pool:
    """The threads beside the caller's own, started at first use, and anew in a forked process."""

    executor: ThreadPoolExecutor | None = None

    def get(self) -> ThreadPoolExecutor:
        if self.executor is None:
            self.executor = ThreadPoolExecutor(max(CORES - 1, 1), "candelabra-cpu")
        return self.executor

    def forget(self) -> None:
        self.executor = None


_pool: Final = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def split(count: int, work: int, function: Callable[[int, int], Any]) -> list[Any]:
    """``function(start, stop)`` over parts that cover ``range(count)``, one per core; the results in order.

    ``work`` is the number of elements in all: small jobs run in one part, in the caller's thread. Floating warnings are
    silenced in every part.
    """
    parts = min(CORES, count, work // LEAST)
    if parts < 2:
        return [function(0, count)]
    bounds = [count * i // parts for i in range(parts + 1)]
    pending = [_pool.get().submit(run_in_copy, function, a, b) for a, b in pairwise(bounds[1:])]
    try:
        first = function(0, bounds[1])
    finally:
        done = [p.exception() for p in pending]
    for error in done:
        if error is not None:
            raise error
    return [first, *(p.result() for p in pending)]
