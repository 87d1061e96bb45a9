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
_SHORT = {"f": 32, "d": 16}
"""The length of the rows that are scanned by a product of matrices."""
_BATCH = 128
"""How many rows make one product: so few that BLAS does it in this thread (its threads are slow to wake)."""
_LONG = 1 << 12
_BLOCK = 1024
"""Elements among which a new extreme is looked for before each of them is looked at."""
_WIDE = 256
"""The least size of the rows that are worth a call each."""


def _is_half(x: Any) -> bool:
    return bool(x.dtype.itemsize == 2 and x.dtype.kind not in "iu")


def _inner(x: Any, dim: int) -> int:
    """How many elements lie behind one place along ``dim``."""
    return prod(x.shape[dim + 1 :])


def _summed_in_rows(x: Any) -> Any:
    """Running sums along the last axis, a multiple of the short rows; None where an infinity or a NaN is in the way."""
    short = _SHORT[x.dtype.char]
    rows = x.reshape(-1, short)
    triangle = np.triu(np.ones((short, short), x.dtype))
    out = np.empty(rows.shape, x.dtype)
    batches = len(rows) // _BATCH

    def part(start: int, stop: int) -> None:
        piece = slice(start * _BATCH, stop * _BATCH)
        np.matmul(rows[piece].reshape(-1, _BATCH, short), triangle, out[piece].reshape(-1, _BATCH, short))

    split(batches, x.size, part)
    np.matmul(rows[batches * _BATCH :], triangle, out[batches * _BATCH :])
    out = out.reshape(-1, x.shape[-1] // short, short)
    before = np.add.accumulate(out[:, :-1, -1], axis=1, dtype=np.float64)
    if not np.isfinite(before).all() or not np.isfinite(out[:, -1]).all():
        return None
    out[:, 1:] += before[:, :, None].astype(x.dtype)
    return out.reshape(x.shape)


def _cumsum(x: Any, dim: int) -> Any:
    size = x.shape[dim]
    if x.dtype.char not in _SHORT or dim != x.ndim - 1 or size < _LONG // 8 or x.size < _LONG:
        return _accumulated(np.add, x, dim)
    whole = size - size % _SHORT[x.dtype.char]
    out = _summed_in_rows(np.ascontiguousarray(x[..., :whole]))
    if out is None:
        return _accumulated(np.add, x, dim)
    if whole == size:
        return out
    rest = np.add.accumulate(x[..., whole:], -1, np.float64) + out[..., -1:]
    return np.concatenate([out, rest.astype(x.dtype)], -1)


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
    size = source.shape[-1]
    whole = size - size % _BLOCK
    if whole >= 4 * _BLOCK:
        _extremes_of_blocks(extreme, *(a[..., :whole] for a in (source, values, places)))
        if whole == size:
            return
    else:
        whole = 0
    rest = slice(whole, size)
    extreme.accumulate(source[..., rest], -1, None, values[..., rest])
    if whole:
        extreme(values[..., rest], values[..., whole - 1 : whole], out=values[..., rest])
    np.multiply(_stands(source[..., rest], values[..., rest]), np.arange(whole, size), out=places[..., rest])
    if whole:
        places[..., whole] = np.maximum(places[..., whole], places[..., whole - 1])
    np.maximum.accumulate(places[..., rest], -1, None, places[..., rest])


def _stands(source: Any, values: Any) -> Any:
    """Where the extreme so far stands."""
    hits = source == values
    if source.dtype.kind == "f":
        hits |= source != source
    return hits


def _extremes_of_blocks(extreme: Any, source: Any, values: Any, places: Any) -> None:
    """Block by block: most have no new extreme, and are filled with the last one."""
    count = source.shape[-1] // _BLOCK
    shape = (source.size // max(source.shape[-1], 1), count, _BLOCK)
    blocks = np.ascontiguousarray(source).reshape(shape)
    best = extreme.reduce(blocks, axis=-1)
    so_far = extreme.accumulate(best, axis=1)
    fresh = _stands(best, so_far)
    row, block = np.nonzero(fresh)
    pieces = blocks[row, block]
    found = extreme.accumulate(pieces, -1)
    later = block > 0
    found[later] = extreme(found[later], so_far[row[later], block[later] - 1][:, None])
    spots = np.maximum.accumulate(_stands(pieces, found) * (np.arange(_BLOCK) + block[:, None] * _BLOCK), -1)
    last = np.zeros(fresh.shape, np.int64)
    last[row, block] = spots[:, -1]
    np.maximum.accumulate(last, 1, None, last)
    spots[later] = np.maximum(spots[later], last[row[later], block[later] - 1][:, None])
    for into, before, pieces in ((values, so_far, found), (places, last, spots)):
        filled = np.empty(shape, into.dtype)
        filled[:, 1:] = before[:, :-1, None]
        filled[row, block] = pieces
        into[...] = filled.reshape(into.shape)


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


TOGETHER = 1024
"""Exponentials that are summed between two looks at how large they get."""


def logcumsumexp(x: Any, dim: int) -> Any:
    """Running log-sum-exps, of all but float64 by ``logaddexp`` in a wider dtype; complex ones are the body's."""
    if x.dtype.kind == "c":
        return _complex_logcumsumexp(x, dim)
    if not x.ndim or not x.size:
        return x.copy()
    return _sums_of_powers(x, dim) if x.dtype == np.float64 else _accumulated(np.logaddexp, x, dim)


def _sums_of_powers(x: Any, dim: int) -> Any:
    """Block by block: sums of exponentials over that of the largest finite element so far, and their logarithms.

    A logarithm for every term, as ``logaddexp`` takes it, would round once more each: 60 units after 20,000 terms.
    """
    out = np.empty(x.shape, x.dtype)
    source, into = np.moveaxis(x, dim, -1), np.moveaxis(out, dim, -1)
    high, total = np.full(source.shape[:-1], -np.inf), np.zeros(source.shape[:-1])
    for start in range(0, source.shape[-1], TOGETHER):
        part, to = source[..., start : start + TOGETHER], into[..., start : start + TOGETHER]
        top = np.fmax(high, np.where(np.isfinite(part), part, -np.inf).max(-1))
        shift = np.where(np.isfinite(top), top, 0.0)
        carried = total * np.exp(high - shift)
        sums = np.cumsum(np.exp(part - shift[..., None]), -1)
        sums += carried[..., None]
        np.log(sums, out=to)
        to += shift[..., None]
        lost = (sums < 1e-280).any(-1)  # so far below the block's largest element that little or nothing is left
        if lost.any():
            before = np.log(total[lost]) + high[lost]
            to[lost] = np.logaddexp.accumulate(np.concatenate([before[..., None], part[lost]], -1), -1)[..., 1:]
        high, total = top, sums[..., -1]
    return out


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
