"""Samples of sorting and of the sorting permutation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

SORTS = ("sort", "argsort")


@inputs(*SORTS)
def in_order(t: Maker) -> Iterator[Sample]:
    """Yield each dim, ascending and descending; equal elements keep their order in both."""
    yield sample(t(7))
    yield sample(t(3, 5), 1)
    yield sample(t(3, 5), 0, True)
    yield sample(t(2, 3, 4), 1, descending=True, stable=True)
    yield sample(t(2, 3, 4), -1, False, True)
    yield sample(t(5, 2, 2, 3), dim=-4)
    yield sample(t(17), descending=True)
    tied = t(3, 8)
    tied[:, 4:] = tied[:, :4]
    yield sample(tied, 1, note="ties", gradient=False)
    yield sample(tied, 1, True, note="ties", gradient=False)
    yield sample(t(), 0, kind="0-d")
    yield sample(t(), -1, True, kind="0-d")
    yield sample(t(0), kind="zero-size")
    yield sample(t(3, 0), 0, kind="zero-size")
    yield sample(t(3, 0), 1, True, kind="zero-size")
    yield sample(t(1), kind="length-1")
    yield sample(t(3, 1), 1, True, kind="length-1")
    yield sample(t(50_000), kind="large", gradient=False)
    yield sample(t(1023, 9), 0, True, kind="large", gradient=False)
    yield sample(t(9, 1023), 1, stable=True, kind="large", gradient=False)
    yield sample(t(3, 2, 4, 2), 2)


@inputs("msort")
def along_the_first_dim(t: Maker) -> Iterator[Sample]:
    """Yield vectors and more dims, with ties."""
    yield sample(t(7))
    yield sample(t(5, 3))
    yield sample(t(3, 2, 4))
    tied = t(8, 3)
    tied[4:] = tied[:4]
    yield sample(tied, note="ties", gradient=False)
    yield sample(t(), kind="0-d")
    yield sample(t(0, 2), kind="zero-size")
    yield sample(t(1), kind="length-1")
    yield sample(t(1023, 9), kind="large", gradient=False)


@mistakes(*SORTS)
def wrong_dim(t: Maker) -> Iterator[Sample]:
    """Yield a dim out of range, and arguments that are not dims."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), -3, note="out of range")
    yield sample(t(), 1, note="out of range")
    yield sample(t(2, 3), (0, 1), note="several")


@special(*SORTS)
def not_numbers(t: Maker) -> Iterator[Sample]:
    """Yield NaN, which is larger than infinity, and both zeros, which are equal and keep their order."""
    if not t.is_floating:
        return
    inf, nan = float("inf"), float("nan")
    rows = t.array([[nan, 1, inf, -inf, 0, nan], [3, nan, 2, nan, inf, inf], [-0.0, 0.0, -0.0, 1, -1, 0.0]])
    yield sample(rows, 1)
    yield sample(rows, 1, True)
    yield sample(rows, 0, stable=True)


@special(*SORTS)
def ends_of_the_range(t: Maker) -> Iterator[Sample]:
    """Yield the least and the largest integers, whose difference overflows."""
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        ends = np.array([0, limits.max, limits.min, 1, limits.max, limits.min], t.numpy)
        yield sample(ends)
        yield sample(ends, 0, True)
    if t.is_bool:
        yield sample(t.array([True, False, True, False, False]), 0, True)
