"""Elementwise functions of float32 in passes over blocks that stay in the cache: the mechanism.

NumPy has vector code for arithmetic, for square roots and (without AVX-512) for a handful of functions; the others cost
10 to 20 ns an element. A sequence of twenty vectorised passes over a block in the cache costs 5. Such a sequence is
written as ``function(*operands, out, *scratch)``: all arrays are contiguous blocks of float32, ``out`` is none of the
operands, and scratch arrays hold anything. Half types go through the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final

import numpy as np

from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import ndarray, run_in_copy

BLOCK: Final = 1 << 16
"""Elements in a block. Between two passes the threads take turns at the interpreter's lock: of smaller ones oftener."""
LARGE: Final = 1 << 15
"""Elements from which on the passes are quicker than one call of NumPy's; of few passes four times as many."""
HALVES: Final = "eE"
"""The characters of float16 and bfloat16."""
WEIGHT: Final = 4
"""What one element costs, in elements of an addition."""
Kernel = Callable[..., Any]
f32: Final = np.float32


def vectored(small: Kernel, function: Kernel, into: bool = False, dtypes: str = HALVES + "f") -> Kernel:
    """``small``, but for large arrays of float32 and of the half types ``function``; ``into`` the first of them.

    Several operands have to be arrays of one dtype and one shape; what else comes (numbers, broadcasting) is for
    ``small``.
    """
    operands = function.__code__.co_varnames.index("out")
    scratch = len(signature(function).parameters) - operands - 1
    least = LARGE if scratch else 4 * LARGE

    def unary(x: Any) -> Any:
        if x.size < least or x.dtype.char not in dtypes:
            return small(x)
        return in_passes(function, scratch, (x,), x if into else None)

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
        return in_passes(function, scratch, (x, y), x if into else None)

    return unary if operands == 1 else binary


def in_passes(function: Kernel, scratch: int, operands: tuple[Any, ...], out: Any = None) -> Any:
    """``function`` on blocks of ``operands``, arrays of one shape and dtype, shared among the cores."""
    first = operands[0]
    made = np.empty_like(first, subok=False) if out is None else out
    if all(a.flags.c_contiguous for a in (made, *operands)):
        flat, result = [a.reshape(-1) for a in operands], made.reshape(-1)
    elif all(a.flags.f_contiguous for a in (made, *operands)):
        flat, result = [a.T.reshape(-1) for a in operands], made.T.reshape(-1)
    else:
        flat, result = [np.ascontiguousarray(a).reshape(-1) for a in operands], np.empty(first.size, first.dtype)
    half = first.dtype.itemsize == 2
    aside = half or out is not None

    def part(start: int, stop: int) -> None:
        length = min(BLOCK, stop - start)
        room = np.empty((scratch + aside + half * len(flat), length), f32)
        for a in range(start, stop, length):
            b = min(a + length, stop)
            rows = iter(room[:, : b - a])
            blocks = [f[a:b] for f in flat]
            if half:
                wide = [next(rows) for _ in blocks]
                for row, block in zip(wide, blocks, strict=True):
                    np.copyto(row, block)
                blocks = wide
            target = next(rows) if aside else result[a:b]
            function(*blocks, target, *rows)
            if aside:
                np.copyto(result[a:b], target, casting="same_kind")

    split(first.size, first.size * WEIGHT, lambda start, stop: run_in_copy(part, start, stop))
    if not np.may_share_memory(result, made):
        np.copyto(made, result.reshape(first.shape))
    return made
