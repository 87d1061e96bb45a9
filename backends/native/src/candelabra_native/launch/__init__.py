"""Launches of compiled kernels: arrays and numbers in, work-items on a pool of threads.

:func:`kernel` makes a function from the address of a compiled kernel, which has the signature

.. code-block:: c

    void kernel(const uint64_t *slots, uint64_t first, uint64_t last, uint64_t total);

and runs the work-items ``first`` to ``last - 1`` of ``total``. Each slot has 8 bytes and holds an argument: a pointer,
or a number in its low bytes. The function is called as ``launch(count, *arguments)`` with the number of work-items. The
types of the arguments are given by one letter each: ``b`` for an object with the buffer protocol (of any layout; only
the address of its first element is passed), and for numbers ``i`` int32, ``I`` uint32, ``q`` int64, ``Q`` uint64,
``f`` float32, ``d`` float64. Numbers out of range raise ``OverflowError``.

Arrays are neither copied nor checked. A kernel that writes beyond its arrays corrupts memory; if it crashes, its name
is written to stderr.

The interpreter lock is released while a kernel runs. Work-items run in any order, on any thread of one pool that the
process shares, and kernels must not depend on it; then results do not depend on the number of threads. Several Python
threads may launch kernels at once. A process made by fork starts threads of its own.
"""

from __future__ import annotations

import os

from candelabra_native.launch._launch import (
    forget_threads,
    get_num_threads,
    kernel,
    release,
    reset_peak,
    set_num_threads,
    statistics,
)

__all__ = ["kernel", "get_num_threads", "memory", "set_num_threads"]


def memory(free: bool, reset: bool) -> dict[str, int]:
    """Return the bytes of blocks that are allocated, reserved, and were at most allocated.

    With ``free``, those that are kept for the next results are released to the system first. With ``reset``, the peak
    is counted from now on.
    """
    if free:
        release()
    if reset:
        reset_peak()
    return statistics()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_threads)
