"""Order statistics, running extremes and binary search, with Python's own sorting, row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _key(value: Any) -> tuple[bool, Any]:
    """Return a sort key with NaN after all numbers."""
    missing = value != value
    return missing, 0 if missing else value


def _order(row: Array, descending: bool = False) -> list[int]:
    """Return the indices of a row's elements in sorted order. The sort is stable."""
    values = row.tolist()
    return sorted(range(len(values)), key=lambda i: _key(values[i]), reverse=descending)


def _by_rows(input: Array, dim: int, choose: Callable[[Array], Any]) -> Array:
    """Apply ``choose(row)``, which returns a list of indices or one index, along ``dim``."""
    moved = np.moveaxis(np.atleast_1d(input), dim, -1)
    lead = moved.shape[:-1]
    found = [choose(moved[i]) for i in np.ndindex(*lead)]
    width = np.shape(found[0]) if found else np.shape(choose(np.zeros(moved.shape[-1])))
    return np.array(found, np.int64).reshape((*lead, *width))


def _picked(input: Array, dim: int, indices: Array, keepdim: bool) -> tuple[Array, Array]:
    """Return the elements at one index of each row, and the indices."""
    if not input.ndim:
        return input, indices.reshape(())
    values = np.take_along_axis(np.moveaxis(input, dim, -1), indices[..., None], -1)
    values, kept = np.moveaxis(values, -1, dim), np.moveaxis(indices[..., None], -1, dim)
    return (values, kept) if keepdim else (values.squeeze(dim), kept.squeeze(dim))


@reference("kthvalue")
def kthvalue(input: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """Return the k-th element in sorted order."""
    return _picked(input, dim, _by_rows(input, dim, lambda row: _order(row)[k - 1]), keepdim)


def _middle(row: Array, without_nan: bool) -> int:
    order, present = _order(row), int((row == row).sum())
    if without_nan:
        return order[max(present - 1, 0) // 2]
    return order[present] if present < len(row) else order[(len(row) - 1) // 2]


@reference("median_dim")
def median(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """Return the lower median, or the first NaN."""
    return _picked(input, dim, _by_rows(input, dim, lambda row: _middle(row, False)), keepdim)


@reference("nanmedian_dim")
def nanmedian(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """Return the lower median of the elements that are not NaN."""
    return _picked(input, dim, _by_rows(input, dim, lambda row: _middle(row, True)), keepdim)


@reference("median_all")
def median_all(input: Array) -> Array:
    """Return the median of all elements, NaN without elements."""
    return median(input.reshape(-1), 0, False)[0] if input.size else np.asarray(np.nan, input.dtype)


@reference("nanmedian_all")
def nanmedian_all(input: Array) -> Array:
    """Return the median of all elements that are not NaN, or NaN without such elements."""
    return nanmedian(input.reshape(-1), 0, False)[0] if input.size else np.asarray(np.nan, input.dtype)


def _most_frequent(row: Array) -> int:
    values = row.tolist()
    counts = Counter(v for v in values if v == v)
    best = min(counts, key=lambda v: (-counts[v], v))
    return max(i for i, v in enumerate(values) if v == best)


@reference("mode")
def mode(input: Array, dim: int, keepdim: bool) -> tuple[Array, ...]:
    """Count the elements; of the most frequent ones return the smallest, at its last index."""
    return _picked(input, dim, _by_rows(input, dim, _most_frequent), keepdim)


def _gathered(input: Array, dim: int, indices: Array) -> Array:
    if not input.ndim:
        return input
    return np.moveaxis(np.take_along_axis(np.moveaxis(input, dim, -1), indices, -1), -1, dim)


@reference("topk")
def topk(input: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, ...]:
    """Return the first ``k`` in sorted order."""
    indices = _by_rows(input, dim, lambda row: np.array(_order(row, largest)[:k], np.int64))
    if not input.ndim:
        return input, indices.reshape(())
    return _gathered(input, dim, indices), np.moveaxis(indices, -1, dim)


@reference("ordered")
def ordered(input: Array, dim: int) -> Array:
    """Return the elements in sorted order."""
    return _gathered(input, dim, _by_rows(input, dim, _order))


# -- running ----------------------------------------------------------------------------------------------------------
def _running(better: Callable[[Any, Any], bool]) -> Callable[[Array, int], tuple[Array, ...]]:
    def indices(row: Array) -> list[int]:
        out, best = [], 0
        values = row.tolist()
        for i, value in enumerate(values):
            held = values[best]
            if value != value or (held == held and (value == held or better(value, held))):
                best = i
            out.append(best)
        return out

    def run(input: Array, dim: int) -> tuple[Array, ...]:
        if not input.ndim:
            return input, np.asarray(0)
        found = _by_rows(input, dim, lambda row: np.array(indices(row), np.int64))
        return _gathered(input, dim, found), np.moveaxis(found, -1, dim)

    return run


cummax = reference("cummax")(_running(lambda a, b: a > b))
cummin = reference("cummin")(_running(lambda a, b: a < b))


def _log_sums(row: Array) -> Any:
    """Add term by term. Complex numbers are shifted by the largest term of the whole row."""
    if np.iscomplexobj(row):
        shift = row.real.max(initial=-math.inf)
        return np.log(np.cumsum(np.exp(row - shift))) + shift
    return np.logaddexp.accumulate(row) if row.size else row


@reference("logcumsumexp", extended=True)
def logcumsumexp(input: Array, dim: int) -> Array:
    """Return running sums of the exponentials."""
    whole = input.astype(np.result_type(input.dtype, np.float32)) if input.dtype.kind in "biu" else input
    if not whole.ndim:
        return whole
    return np.asarray(np.apply_along_axis(_log_sums, dim, whole)) if whole.size else whole


@reference("sorted_place")
def sorted_place(sequence: Array, values: Array, right: bool) -> Array:
    """Return the number of elements before each value."""
    side: Any = "right" if right else "left"
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, side))
    out = np.zeros(values.shape, np.int64)
    for i in np.ndindex(*sequence.shape[:-1]):
        out[i] = np.searchsorted(sequence[i], values[i], side)
    return out
