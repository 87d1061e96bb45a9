"""Functions of many passes, or of many nanoseconds an element, over large arrays: in blocks, on all cores.

A block's temporaries stay in the cache, where those of a whole array are written to memory and read back, pass by pass,
and each is a fresh piece of memory that the system has to clear first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import asarray, ndarray, run_in_copy

BLOCK: Final = 1 << 16
"""Elements in a block. Smaller ones would fit a nearer cache, but between two blocks the threads take turns at the
interpreter's lock, which costs a wake-up where other processes are about."""
LARGE: Final = 1 << 15
"""Elements from which on blocks pay."""
WEIGHT: Final = 8
"""What one element costs, in elements of an addition: how soon another thread pays."""
Kernel = Callable[..., Any]


def in_blocks(function: Kernel, operands: tuple[Any, ...], out: Any = None) -> Any:
    """``function(*operands)``, which is elementwise, in their dtype; into ``out`` if there is one.

    Operands are arrays of one dtype and numbers. Arrays that are not all alike and contiguous go in whole.
    """
    arrays = [o for o in operands if o.__class__ is ndarray and o.ndim]
    like = arrays[0] if arrays else None
    if (
        like is None
        or like.size < LARGE
        or not all(a.shape == like.shape and a.flags.c_contiguous for a in (*arrays, like if out is None else out))
    ):
        d = next(o.dtype for o in operands if o.__class__ is ndarray)
        whole = asarray(run_in_copy(function, *operands), d)
        if out is None:
            return whole
        np.copyto(out, whole)
        return out
    made = np.empty(like.shape, like.dtype) if out is None else out
    result = made.reshape(-1)
    flat = [(o.reshape(-1), True) if o.__class__ is ndarray and o.ndim else (o, False) for o in operands]

    def part(start: int, stop: int) -> None:
        if isinstance(function, np.ufunc):  # has no temporaries
            function(*[o[start:stop] if sliced else o for o, sliced in flat], result[start:stop])
            return
        for a in range(start, stop, BLOCK):
            b = min(a + BLOCK, stop)
            result[a:b] = function(*[o[a:b] if sliced else o for o, sliced in flat])

    split(like.size, like.size * WEIGHT, lambda start, stop: run_in_copy(part, start, stop))
    return made


def blockwise(function: Kernel) -> Kernel:
    """The kernel of an elementwise function; half types are computed in float32 and rounded once."""

    def kernel(*operands: Any) -> Any:
        d = next(o.dtype for o in operands if o.__class__ is ndarray)
        if d.itemsize > 2 or d.kind in "iub":
            return in_blocks(function, operands)
        raised = [o.astype(np.float32) if o.__class__ is ndarray else o for o in operands]
        return run_in_copy(asarray(in_blocks(function, tuple(raised))).astype, d)  # what overflows does so quietly

    return kernel


def large_in_blocks(small: Kernel, function: Kernel) -> Kernel:
    """``small``, but for large floating arrays ``function`` in blocks: the kernel of a ufunc that takes its time."""

    def kernel(x: Any, *rest: Any) -> Any:
        like = x if x.__class__ is ndarray else rest[0]
        if like.size < LARGE or like.dtype.char not in "fdFD":
            return small(x, *rest)
        return in_blocks(function, (x, *rest))

    return kernel


def large_in_blocks_into(small: Kernel, function: Kernel) -> Kernel:
    """The in-place form of :func:`large_in_blocks`."""

    def kernel(x: Any, *rest: Any) -> Any:
        if x.size < LARGE or x.dtype.char not in "fdFD":
            return small(x, *rest)
        return in_blocks(function, (x, *rest), x)

    return kernel
