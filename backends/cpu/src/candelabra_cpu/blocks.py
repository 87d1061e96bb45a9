"""Apply elementwise functions to large arrays block by block, on several threads.

The temporaries of a block stay in the cache. The temporaries of a whole array are written to memory and read back in
every pass, and the system has to clear the memory of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_cpu.numpy_kernels import asarray, ndarray, run_in_context_copy
from candelabra_cpu.parallel import parallel_for

BLOCK: Final = 1 << 16
"""Elements in a block. Smaller blocks would fit in a faster cache, but the threads exchange the interpreter lock
between blocks, which costs a wake-up when other processes are running."""
LARGE: Final = 1 << 15
"""The number of elements from which processing in blocks is faster."""
WEIGHT: Final = 8
"""The cost of one element relative to an addition. It determines when another thread is worthwhile."""
Kernel = Callable[..., Any]


def apply_in_blocks(function: Kernel, operands: tuple[Any, ...], out: Any = None) -> Any:
    """Return ``function(*operands)`` in the dtype of the arrays; write it into ``out`` if given.

    ``function`` is elementwise. The operands are arrays of one dtype, and Python numbers. Blocks are used if all arrays
    have one shape and are contiguous; otherwise ``function`` is called once.
    """
    arrays = [o for o in operands if o.__class__ is ndarray and o.ndim]
    like = arrays[0] if arrays else None
    if (
        like is None
        or like.size < LARGE
        or not all(a.shape == like.shape and a.flags.c_contiguous for a in (*arrays, like if out is None else out))
    ):
        d = next(o.dtype for o in operands if o.__class__ is ndarray)
        computed = asarray(run_in_context_copy(function, *operands), d)
        if out is None:
            return computed
        np.copyto(out, computed)
        return out
    result = np.empty(like.shape, like.dtype) if out is None else out
    flat_result = result.reshape(-1)
    flat = [(o.reshape(-1), True) if o.__class__ is ndarray and o.ndim else (o, False) for o in operands]

    def compute(start: int, stop: int) -> None:
        if isinstance(function, np.ufunc):  # has no temporaries
            function(*[o[start:stop] if sliced else o for o, sliced in flat], flat_result[start:stop])
            return
        for a in range(start, stop, BLOCK):
            b = min(a + BLOCK, stop)
            flat_result[a:b] = function(*[o[a:b] if sliced else o for o, sliced in flat])

    parallel_for(like.size, like.size * WEIGHT, lambda start, stop: run_in_context_copy(compute, start, stop))
    return result


def blockwise(function: Kernel) -> Kernel:
    """Return the kernel of an elementwise function. Half types are computed in float32 and rounded once."""

    def kernel(*operands: Any) -> Any:
        d = next(o.dtype for o in operands if o.__class__ is ndarray)
        if d.itemsize > 2 or d.kind in "iub":
            return apply_in_blocks(function, operands)
        wide = [o.astype(np.float32) if o.__class__ is ndarray else o for o in operands]
        return run_in_context_copy(asarray(apply_in_blocks(function, tuple(wide))).astype, d)  # no overflow warning

    return kernel


def large_in_blocks(small: Kernel, function: Kernel) -> Kernel:
    """Return a kernel that calls ``small``, and for large floating-point arrays ``function`` in blocks."""

    def kernel(x: Any, *rest: Any) -> Any:
        like = x if x.__class__ is ndarray else rest[0]
        if like.size < LARGE or like.dtype.char not in "fdFD":
            return small(x, *rest)
        return apply_in_blocks(function, (x, *rest))

    return kernel


def large_in_blocks_inplace(small: Kernel, function: Kernel) -> Kernel:
    """Return the in-place form of :func:`large_in_blocks`."""

    def kernel(x: Any, *rest: Any) -> Any:
        if x.size < LARGE or x.dtype.char not in "fdFD":
            return small(x, *rest)
        return apply_in_blocks(function, (x, *rest), x)

    return kernel
