"""Making arrays without NumPy's wrappers: half the time of ``numpy.full`` on small ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from candelabra_cpu.backend import TO_NUMPY, allocate, zeros
from candelabra_cpu.quiet import quiet, run, run_in_copy, wrapped


def full(shape: tuple[int, ...], value: Any, dtype: Any, index: int) -> Any:
    """``value`` everywhere; integers wrap to the dtype's range."""
    if value == 0 and type(value) in (int, bool):  # free of charge, since fresh memory is zero; -0.0 would not be
        return zeros(shape, dtype)
    out = allocate(shape, dtype)
    try:
        run(out.fill, value)
    except RuntimeError:  # another thread is inside the context
        run_in_copy(out.fill, value)
    except (OverflowError, ValueError, TypeError):  # too wide an integer, infinity as an integer, a complex value
        run_in_copy(out.fill, wrapped(out, value)[1] if isinstance(value, int) else np.asarray(value).astype(out.dtype))
    return out


def arange(start: Any, step: Any, length: int, dtype: Any, index: int) -> Any:
    """``start + step * i`` in int64 or float64, then cast."""
    whole = isinstance(start, int) and isinstance(step, int)
    out: Any = np.arange(length, dtype=np.int64 if whole else np.float64)
    if step != 1:
        out *= step
    if start != 0:
        out += start
    return out.astype(TO_NUMPY[dtype], copy=False)


def linspace(start: Any, end: Any, steps: int, dtype: Any, index: int) -> Any:
    """``start + i * (end - start) / (steps - 1)`` in float64 or complex128, then cast; the last is ``end`` itself."""
    wide = np.complex128 if complex in (type(start), type(end)) else np.float64
    out: Any = np.arange(steps, dtype=wide)
    if steps > 1:
        out *= (end - start) / (steps - 1)
    out += start
    if steps > 1:
        out[-1] = end
    wanted = TO_NUMPY[dtype]
    return (out.real if wanted.kind != "c" and wide is np.complex128 else out).astype(wanted, copy=False)


def triangle_indices(row: int, col: int, offset: int, upper: bool, dtype: Any, index: int) -> Any:
    """Rows and columns of the places of a triangle, a few rows at a time: fresh memory costs more than the work."""
    rows = np.arange(row)
    firsts = np.clip(rows + offset, 0, col) if upper else np.zeros_like(rows)
    counts = col - firsts if upper else np.clip(rows + (offset + 1), 0, col)
    ends = counts.cumsum()
    out = allocate((2, int(ends[-1]) if row else 0), dtype)
    step = max(1, TOGETHER // max(col, 1))
    for some in range(0, row, step):
        block = slice(some, some + step)
        first, last = int(ends[some] - counts[some]), int(ends[block][-1])
        out[0, first:last] = np.repeat(rows[block], counts[block])
        shift = np.repeat((firsts - ends + counts)[block], counts[block])
        shift += np.arange(first, last)
        out[1, first:last] = shift
    return out


TOGETHER: Final = 1 << 15
"""Places of a triangle that are found together."""


def clone(x: Any) -> Any:
    """A contiguous copy."""
    return x.copy()


def cast(x: Any, dtype: Any) -> Any:
    """A contiguous copy in another dtype; what it cannot hold wraps or overflows without a word."""
    wanted = TO_NUMPY[dtype]
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = x != 0 if wanted.kind == "b" else x.real
    try:
        return run(x.astype, wanted, "C")
    except RuntimeError:  # another thread is inside the context
        return run_in_copy(x.astype, wanted, "C")


def filled_(x: Any, value: Any) -> Any:
    """One value everywhere; an integer out of range wraps."""
    try:
        run(x.fill, value)
    except RuntimeError:
        run_in_copy(x.fill, value)
    except OverflowError:
        x.fill(wrapped(x, value)[1])
    except (TypeError, ValueError):  # an array of several
        x[...] = value
    return x


def copied_(x: Any, src: Any) -> Any:
    """``src``, broadcast."""
    x[...] = src  # NumPy copies first where the two overlap
    return x


KERNELS: dict[str, Any] = {
    "full": full, "triangle_indices": quiet(triangle_indices), "arange": quiet(arange), "linspace": quiet(linspace),
    "clone": clone, "cast": cast, "filled_": filled_, "copied_": copied_,
}  # fmt: skip
