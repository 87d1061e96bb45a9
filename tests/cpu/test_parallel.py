"""Distribution of a kernel over the cores: order, errors, small jobs, warnings, forks."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from candelabra_cpu import parallel
from candelabra_cpu.numpy_kernels import numpy_kernel


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "get_num_threads", lambda: 3)


def test_parts_cover_the_range_in_order() -> None:
    """Every index is in one part, and the results have the order of the parts."""
    assert parallel.parallel_for(10, 1 << 30, lambda a, b: (a, b)) == [(0, 3), (3, 6), (6, 10)]
    assert parallel.parallel_for(2, 1 << 30, lambda a, b: (a, b)) == [(0, 1), (1, 2)]


def test_small_jobs_stay_in_the_callers_thread() -> None:
    """Jobs below the threshold, and empty ones, have one part and use no other thread."""
    assert parallel.parallel_for(10, 5, lambda a, b: (a, b, threading.get_ident())) == [(0, 10, threading.get_ident())]
    assert parallel.parallel_for(0, 1 << 30, lambda a, b: (a, b)) == [(0, 0)]


@pytest.mark.parametrize("bad", [0, 3, 6])
def test_an_error_in_any_part_reaches_the_caller(bad: int) -> None:
    """The error is raised after all parts are done, whichever thread it occurs in."""

    def part(start: int, stop: int) -> None:
        if start == bad:
            raise ValueError(f"part from {start}")

    with pytest.raises(ValueError, match=f"part from {bad}"):
        parallel.parallel_for(10, 1 << 30, part)


def test_no_part_warns() -> None:
    """Floating-point warnings are suppressed in every thread (they are errors here)."""
    x, out = np.array([-1.0] * 9), np.empty(9)

    def kernel(x: np.ndarray) -> np.ndarray:
        parallel.parallel_for(9, 1 << 30, lambda a, b: np.log(x[a:b], out=out[a:b]))
        return out

    assert np.isnan(numpy_kernel(kernel)(x)).all()


def test_a_forked_process_starts_threads_of_its_own() -> None:
    """The thread pool of the parent is discarded, and the next job creates a new one."""
    parallel.parallel_for(10, 1 << 30, lambda a, b: None)
    parallel._pool.reset()
    assert parallel._pool.executor is None
    assert parallel.parallel_for(4, 1 << 30, lambda a, b: b - a) == [1, 1, 2]
