"""Scans: running sums, products, extremes and log-sum-exps.

NumPy's accumulate waits for each sum before it begins the next, four times as long as reading the memory takes. Long
real sums are therefore done by a small product of matrices: ``rows @ triangle`` is the scan of each short row, and what
the rows before sum up to is added. That product would spread infinities, so they take the slow way. Scans along another
axis than the last go row by row, whole rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet

_WIDER = {"e": np.float32, "f": np.float64, "F": np.complex128}
_SHORT = 32
"""The length of the rows that are scanned by a product of matrices."""
_LONG = 1 << 12
_WIDE = 256
"""The least size of the rows that are worth a call each."""


def _is_half(x: Any) -> bool:
    return bool(x.dtype.itemsize == 2 and x.dtype.kind not in "iu")


def _inner(x: Any, dim: int) -> int:
    """How many elements lie behind one place along ``dim``."""
    return prod(x.shape[dim + 1 :])


def _summed_in_rows(x: Any) -> Any:
    """Running sums along the last axis, a multiple of ``_SHORT``; None where an infinity or a NaN is in the way."""
    size = x.shape[-1]
    triangle = np.triu(np.ones((_SHORT, _SHORT), x.dtype))
    out = (x.reshape(-1, _SHORT) @ triangle).reshape(-1, size // _SHORT, _SHORT)
    before = np.add.accumulate(out[:, :-1, -1], axis=1, dtype=np.float64)
    if not np.isfinite(before).all() or not np.isfinite(out[:, -1]).all():
        return None
    out[:, 1:] += before[:, :, None].astype(x.dtype)
    return out.reshape(x.shape)


def _cumsum(x: Any, dim: int) -> Any:
    size = x.shape[dim]
    if x.dtype.char in "fd" and dim == x.ndim - 1 and size >= _LONG // 8 and x.size >= _LONG and not size % _SHORT:
        out = _summed_in_rows(np.ascontiguousarray(x))
        if out is not None:
            return out
    return _accumulated(np.add, x, dim)


def _accumulated(ufunc: Any, x: Any, dim: int) -> Any:
    """One after the other in the next wider dtype."""
    wide = np.dtype(np.float32 if _is_half(x) else _WIDER.get(x.dtype.char, x.dtype))
    if _inner(x, dim) < _WIDE:
        return ufunc.accumulate(x, dim, wide).astype(x.dtype, copy=False)
    out = np.empty(x.shape, x.dtype)
    source, into = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    running = source[0].astype(wide)
    into[0] = running
    for i in range(1, len(source)):
        ufunc(running, source[i], running)
        into[i] = running
    return out


def _scan(along: Callable[[Any, int], Any]) -> Callable[..., Any]:
    def scan(x: Any, dim: int, dtype: Any) -> Any:
        if dtype is not None:
            x = x.astype(TO_NUMPY[dtype], copy=False)
        elif x.dtype.kind in "biu":
            x = x.astype(np.int64, copy=False)
        return along(x, dim) if x.ndim and x.size else x.copy()

    return scan


def _running_extreme(extreme: Any) -> Callable[..., Any]:
    """The largest (smallest) so far and the last place where it stands; after a NaN, NaN and the last one's place."""

    def kernel(x: Any, dim: int) -> tuple[Any, Any]:
        if not x.ndim or not x.size:
            return x.copy(), np.zeros(x.shape, np.int64)
        work = x.astype(np.float32) if _is_half(x) else x
        values = np.empty(work.shape, work.dtype)
        places = np.zeros(x.shape, np.int64)
        source, running, found = (np.moveaxis(a, dim, -1) for a in (work, values, places))

        def part(start: int, stop: int) -> None:
            _extremes_of_rows(extreme, source[start:stop], running[start:stop], found[start:stop])

        if _inner(x, dim) >= _WIDE:
            _extremes_of_columns(extreme, work, values, places, dim)
        elif x.ndim == 1:
            _extremes_of_rows(extreme, source, running, found)
        else:
            split(len(source), x.size, part)
        return values.astype(x.dtype, copy=False), places

    return kernel


def _extremes_of_rows(extreme: Any, source: Any, values: Any, places: Any) -> None:
    extreme.accumulate(source, -1, None, values)
    hits = source == values
    if source.dtype.kind == "f":
        hits |= np.isnan(source)
    np.multiply(hits, np.arange(source.shape[-1]), out=places)
    np.maximum.accumulate(places, -1, None, places)


def _extremes_of_columns(extreme: Any, source: Any, values: Any, places: Any, dim: int) -> None:
    source, values, places = (np.moveaxis(a, dim, 0) for a in (source, values, places))
    values[0] = source[0]
    floating = source.dtype.kind == "f"
    for i in range(1, len(source)):
        extreme(values[i - 1], source[i], out=values[i])
        hit = source[i] == values[i]
        if floating:
            hit |= source[i] != source[i]
        places[i] = places[i - 1]
        places[i][hit] = i


def logcumsumexp(x: Any, dim: int) -> Any:
    """Running log-sum-exps by NumPy's ``logaddexp``; complex ones are the body's."""
    if x.dtype.kind == "c":
        return _complex_logcumsumexp(x, dim)
    return _accumulated(np.logaddexp, x, dim) if x.ndim and x.size else x.copy()


def _complex_logcumsumexp(x: Any, dim: int) -> Any:
    if not x.ndim or not x.size:
        return x.copy()
    out = np.empty(x.shape, x.dtype)
    source, into = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    running = source[0].astype(np.complex128)
    into[0] = running
    for i in range(1, len(source)):
        term = source[i].astype(np.complex128)
        first = running.real >= term.real
        high, low = np.where(first, running, term), np.where(first, term, running)
        running = np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high)))
        into[i] = running
    return out


KERNELS: dict[str, Any] = {
    "cumsum": quiet(_scan(_cumsum)),
    "cumprod": quiet(_scan(lambda x, dim: _accumulated(np.multiply, x, dim))),
    "cummax": quiet(_running_extreme(np.maximum)),
    "cummin": quiet(_running_extreme(np.minimum)),
    "logcumsumexp": quiet(logcumsumexp),
}
