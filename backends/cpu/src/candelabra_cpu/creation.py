"""Creation, copies and casts without NumPy's Python wrappers: ``numpy.full`` takes twice as long for small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.backend import TO_NUMPY, allocate, zeros
from candelabra_cpu.numpy_kernels import numpy_kernel, run, run_in_context_copy, wrap_scalars


def full(shape: tuple[int, ...], value: Any, dtype: Any, index: int) -> Any:
    """An array filled with ``value``. Integers wrap around to the range of the dtype."""
    if value == 0 and type(value) in (int, bool):  # new memory is zero; the bits of -0.0 are not
        return zeros(shape, dtype)
    out = allocate(shape, dtype)
    try:
        run(out.fill, value)
    except RuntimeError:  # another thread is inside the context
        run_in_context_copy(out.fill, value)
    except (OverflowError, ValueError, TypeError):  # an integer out of range, infinity as an integer, a complex value
        run_in_context_copy(
            out.fill, wrap_scalars(out, value)[1] if isinstance(value, int) else np.asarray(value).astype(out.dtype)
        )
    return out


def arange(start: Any, step: Any, length: int, dtype: Any, index: int) -> Any:
    """``start + step * i``, computed in int64 or float64 and cast."""
    integral = isinstance(start, int) and isinstance(step, int)
    out: Any = np.arange(length, dtype=np.int64 if integral else np.float64)
    if step != 1:
        out *= step
    if start != 0:
        out += start
    return out.astype(TO_NUMPY[dtype], copy=False)


def linspace(start: Any, end: Any, steps: int, dtype: Any, index: int) -> Any:
    """``start + i * (end - start) / (steps - 1)``, computed in float64 or complex128 and cast.

    Ends exactly at ``end``.
    """
    wide = np.complex128 if complex in (type(start), type(end)) else np.float64
    out: Any = np.arange(steps, dtype=wide)
    if steps > 1:
        out *= (end - start) / (steps - 1)
    out += start
    if steps > 1:
        out[-1] = end
    target = TO_NUMPY[dtype]
    return (out.real if target.kind != "c" and wide is np.complex128 else out).astype(target, copy=False)


def triangle_indices(row: int, col: int, offset: int, upper: bool, dtype: Any, index: int) -> Any:
    """The rows and columns of a matrix's triangle: each row of it is a range that ends or starts near the diagonal."""
    rows = np.arange(row)
    edge = np.clip(rows + (min(max(offset, -row), col) + (not upper)), 0, col)
    counts = col - edge if upper else edge
    ends = np.cumsum(counts)
    out = np.empty((2, int(ends[-1]) if row else 0), TO_NUMPY[dtype])
    out[0] = np.repeat(rows, counts)
    begins = np.repeat(ends - counts - (edge if upper else 0), counts)
    np.subtract(np.arange(out.shape[1]), begins, out=out[1], casting="unsafe")  # without a copy in int64
    return out


def clone(x: Any) -> Any:
    """A contiguous copy."""
    return x.copy()


def cast(x: Any, dtype: Any) -> Any:
    """A contiguous copy in another dtype. Values out of range wrap around or overflow without a warning."""
    target = TO_NUMPY[dtype]
    if x.dtype.kind == "c" and target.kind != "c":
        x = x != 0 if target.kind == "b" else x.real
    try:
        return run(x.astype, target, "C")
    except RuntimeError:  # another thread is inside the context
        return run_in_context_copy(x.astype, target, "C")


def filled_(x: Any, value: Any) -> Any:
    """Fill ``x`` with a value. An integer out of range wraps around."""
    try:
        run(x.fill, value)
    except RuntimeError:
        run_in_context_copy(x.fill, value)
    except OverflowError:
        x.fill(wrap_scalars(x, value)[1])
    except (TypeError, ValueError):  # an array of several elements
        x[...] = value
    return x


def copied_(x: Any, src: Any) -> Any:
    """Write ``src``, broadcast, into ``x``."""
    x[...] = src  # NumPy makes a copy first if the two overlap
    return x


KERNELS: dict[str, Any] = {
    "full": full, "arange": numpy_kernel(arange),
    "linspace": numpy_kernel(linspace), "triangle_indices": numpy_kernel(triangle_indices),
    "clone": clone, "cast": cast, "filled_": filled_, "copied_": copied_,
}  # fmt: skip
