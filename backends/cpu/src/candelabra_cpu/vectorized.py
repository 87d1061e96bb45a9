"""Elementwise float32 functions in passes over blocks that stay in the cache: the mechanism.

NumPy has SIMD code for arithmetic, square roots and, without AVX-512, a handful of functions. The others take 10 to 20
ns per element. A sequence of twenty vectorised passes over a block in the cache takes 5 ns. Such a sequence is a
function ``function(*operands, out, *scratch)``. All arrays are contiguous blocks of float32, ``out`` is none of the
operands, and the scratch arrays are uninitialised. Half types use the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final

import numpy as np

from candelabra_cpu.half_precision import is_half
from candelabra_cpu.numpy_kernels import ndarray, run_in_context_copy
from candelabra_cpu.parallel import parallel_for

BLOCK: Final = 1 << 16
"""Elements in a block. With smaller blocks, the threads would contend more often for the interpreter lock between
passes."""
LARGE: Final = 1 << 15
"""The number of elements from which the passes are faster than one NumPy call; functions of few passes need four times
more."""
HALVES: Final = "eE"
"""The dtype characters of float16 and bfloat16."""
WEIGHT: Final = 4
"""The cost of one element relative to an addition."""
Kernel = Callable[..., Any]
f32: Final = np.float32


def vectorized(small: Kernel, function: Kernel, inplace: bool = False, dtypes: str = HALVES + "f") -> Kernel:
    """Return a kernel that calls ``small``, and ``function`` for large arrays of float32 and half types.

    With ``inplace`` the result is written into the first array. Several operands must be arrays of one dtype and shape;
    other combinations (numbers, broadcasting) are passed to ``small``.
    """
    operands = function.__code__.co_varnames.index("out")
    scratch = len(signature(function).parameters) - operands - 1
    least = LARGE if scratch else 4 * LARGE

    def unary(x: Any) -> Any:
        if x.size < least or x.dtype.char not in dtypes:
            return small(x)
        return run_passes(function, scratch, (x,), x if inplace else None)

    def binary(x: Any, y: Any) -> Any:
        if (
            x.__class__ is not ndarray
            or x.size < least
            or x.dtype.char not in dtypes
            or y.__class__ is not ndarray
            or y.dtype != x.dtype
            or y.shape != x.shape
        ):
            return small(x, y)
        return run_passes(function, scratch, (x, y), x if inplace else None)

    return unary if operands == 1 else binary


def run_passes(function: Kernel, scratch: int, operands: tuple[Any, ...], out: Any = None) -> Any:
    """Apply ``function`` to blocks of ``operands``, arrays of one shape and dtype, on several threads."""
    first = operands[0]
    output = np.empty_like(first, subok=False) if out is None else out
    if all(a.flags.c_contiguous for a in (output, *operands)):
        flat, result = [a.reshape(-1) for a in operands], output.reshape(-1)
    elif all(a.flags.f_contiguous for a in (output, *operands)):
        flat, result = [a.T.reshape(-1) for a in operands], output.T.reshape(-1)
    else:
        flat, result = [np.ascontiguousarray(a).reshape(-1) for a in operands], np.empty(first.size, first.dtype)
    half = is_half(first)
    needs_copy = half or out is not None

    def compute(start: int, stop: int) -> None:
        length = min(BLOCK, stop - start)
        workspace = np.empty((scratch + needs_copy + half * len(flat), length), f32)
        for a in range(start, stop, length):
            b = min(a + length, stop)
            rows = iter(workspace[:, : b - a])
            blocks = [f[a:b] for f in flat]
            if half:
                wide = [next(rows) for _ in blocks]
                for row, block in zip(wide, blocks, strict=True):
                    np.copyto(row, block)
                blocks = wide
            target = next(rows) if needs_copy else result[a:b]
            function(*blocks, target, *rows)
            if needs_copy:
                np.copyto(result[a:b], target, casting="same_kind")

    parallel_for(first.size, first.size * WEIGHT, lambda start, stop: run_in_context_copy(compute, start, stop))
    if not np.may_share_memory(result, output):
        np.copyto(output, result.reshape(first.shape))
    return output
