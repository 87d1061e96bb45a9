"""Samples of reading and writing by index tensors along one dim."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

ALONG = (((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((7,), 0), ((2, 3, 2, 4), -4))
"""A shape, and the dim that is indexed."""


def distinct(t: Maker, shape: tuple[int, ...], dim: int, below: int) -> Array:
    """Return indices along a dim without duplicates."""
    rows = np.moveaxis(np.empty(shape, np.int64), dim, -1)
    for place in np.ndindex(rows.shape[:-1]):
        rows[place] = t.random.permutation(below)[: rows.shape[-1]]
    return np.moveaxis(rows, -1, dim)


def resized(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    """Return the shape with another size of one dim."""
    at = dim % len(shape)
    return (*shape[:at], size, *shape[at + 1 :])


@inputs("gather")
def picked(t: Maker) -> Iterator[Sample]:
    """Yield more, fewer and as many indices as elements, with duplicates, and fewer elements of the other dims."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(*resized(shape, dim, 6), below=shape[dim]))
        yield sample(t(*shape), dim, distinct(t, resized(shape, dim, 2), dim, shape[dim]))
    yield sample(t(4, 5), 0, t.index([3, 3], [0, 3]), note="a corner")
    yield sample(t(), 0, t.index(0).reshape(()), kind="0-d")
    yield sample(t(), -1, t.index(0, 0), kind="0-d", note="a number by a vector")
    yield sample(t(3, 4), 1, t.indices(3, 0, below=1), kind="zero-size")
    yield sample(t(0, 3), 1, t.indices(0, 2, below=3), kind="zero-size")
    yield sample(t(1, 3), 0, t.indices(2, 3, below=1), kind="length-1")
    yield sample(t(1023), 0, t.indices(5000, below=1023), kind="large")


@inputs("scatter_add", "scatter_src")
def scattered(t: Maker) -> Iterator[Sample]:
    """Yield duplicates, for which sums accumulate and the last write wins, and sources larger than the index. A write
    that a later one replaces has no derivative, so those samples have no duplicates."""
    adds = t.operator == "scatter_add"
    for shape, dim in ALONG:
        more = resized(shape, dim, shape[dim] + 2)
        yield sample(t(*shape), dim, t.indices(*more, below=shape[dim]), t(*more), gradient=adds)
        fewer = resized(shape, dim, 2)
        yield sample(t(*shape), dim, distinct(t, fewer, dim, shape[dim]), t(*fewer))
    yield sample(t(4, 5), 0, t.index([3, 1], [0, 2]), t(3, 4), note="the corner of a larger source")
    yield sample(t(5), 0, t.index(2, 2, 2, 2), t(4), note="one place", gradient=adds)
    yield sample(t(), 0, t.index(0).reshape(()), t(), kind="0-d")
    yield sample(t(3, 4), 1, t.indices(3, 0, below=1), t(3, 4), kind="zero-size")
    yield sample(t(0, 3), 1, t.indices(0, 2, below=3), t(0, 2), kind="zero-size")
    yield sample(t(1, 3), 0, t.index([0, 0, 0]).reshape(1, 3), t(1, 3), kind="length-1")
    yield sample(t(33), 0, t.indices(5000, below=33), t(5000), kind="large", gradient=False)


@mistakes("gather", "scatter_add", "scatter_src")
def out_of_bounds(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds or negative, other ranks, larger shapes, and dims out of range."""
    source = () if t.operator == "gather" else (t(2, 3),)
    yield sample(t(2, 3), 1, t.index([0, 3, 0], [0, 0, 0]), *source, note="beyond")
    yield sample(t(2, 3), 0, t.index([0, -1, 0], [0, 0, 0]), *source, note="negative")
    yield sample(t(2, 3), 1, t.index(0, 1), *source, note="ranks")
    yield sample(t(2, 3), 1, t.index([0], [0], [0]), *source, note="larger than the input")
    yield sample(t(2, 3), 2, t.index([0], [0]), *source, note="out of range")
    yield sample(t(2, 3), 1, t.of("float32")(2, 3), *source, note="floating indices")
    if source:
        yield sample(t(5, 3), 0, t.indices(3, 3, below=2), t(2, 3), note="larger than the source")
        yield sample(t(2, 3), 0, t.index([0, 1, 0]), 2.0, note="a number")


@inputs("index_select")
def selected(t: Maker) -> Iterator[Sample]:
    """Yield slices in any order, of which some occur twice and some do not."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(5, below=shape[dim]))
    yield sample(t(4, 3), 0, t.index(2, 0, 2))
    yield sample(t(4, 3), 0, t.index(3).reshape(()), note="one, without dims")
    yield sample(t(), 0, t.index(0), kind="0-d")
    yield sample(t(3, 4), 1, t.indices(0, below=1), kind="zero-size")
    yield sample(t(0, 3), 1, t.index(2, 2), kind="zero-size")
    yield sample(t(3, 1), 1, t.index(0, 0), kind="length-1")
    yield sample(t(1023, 3), 0, t.indices(3000, below=1023), kind="large", gradient=False)


@mistakes("index_select")
def slices_out_of_bounds(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds or negative, a matrix of indices, and several indices of a 0-d tensor."""
    yield sample(t(2, 3), 1, t.index(0, 3), note="beyond")
    yield sample(t(2, 3), 0, t.index(-1), note="negative")
    yield sample(t(2, 3), 0, t.index([0], [1]), note="a matrix")
    yield sample(t(), 0, t.index(0, 0), note="several of a number")
    yield sample(t(2, 3), 2, t.index(0), note="out of range")
    yield sample(t(2, 3), 0, t.mask(2), note="a mask")


@inputs("index_add")
def slices_added(t: Maker) -> Iterator[Sample]:
    """Yield duplicates, whose slices accumulate."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(5, below=shape[dim]), t(*resized(shape, dim, 5)))
    yield sample(t(4, 3), 0, t.index(1, 1, 1), t(3, 3), note="one place")
    yield sample(t(), 0, t.index(0), t(), kind="0-d")
    yield sample(t(3, 4), 1, t.indices(0, below=1), t(3, 0), kind="zero-size")
    yield sample(t(0, 3), 1, t.index(2, 2), t(0, 2), kind="zero-size")
    yield sample(t(1, 2), 0, t.index(0, 0, 0), t(3, 2), kind="length-1")
    yield sample(t(33), 0, t.indices(5000, below=33), t(5000), kind="large", gradient=False)


@mistakes("index_add")
def slices_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield numbers and shapes of slices that do not match the indices, and indices out of bounds."""
    yield sample(t(3, 4), 0, t.index(0, 1), t(3, 4), note="more slices")
    yield sample(t(3, 4), 0, t.index(0, 1), t(2, 3), note="other sizes")
    yield sample(t(3, 4), 0, t.index(0, 3), t(2, 4), note="beyond")
    yield sample(t(3, 4), 0, t.index(-1, 0), t(2, 4), note="negative")
    yield sample(t(3, 4), 0, t.index([0], [1]), t(2, 4), note="a matrix")


@special("gather", "index_select")
def picked_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN, infinities and signed zeros, which must be copied exactly."""
    if t.is_floating:
        values = t.array([float("nan"), -0.0, float("inf"), 0.0, -float("inf")])
        yield sample(values, 0, t.index(1, 0, 4, 3, 2, 1))


@special("scatter_add", "index_add")
def added_beyond_the_range(t: Maker) -> Iterator[Sample]:
    """Yield integers that wrap around, infinities of both signs, whose sum is NaN, and NaN, which must not affect other
    elements."""
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        ends = np.array([limits.max, limits.min, 0], t.numpy)
        yield sample(ends, 0, t.index(0, 0, 1, 2), np.array([1, 5, limits.min, limits.max], t.numpy))
    elif t.is_floating:
        inf, nan = float("inf"), float("nan")
        yield sample(t.array([inf, 0, 0, nan]), 0, t.index(0, 1, 1, 2), t.array([-inf, inf, 1, 2]))
    elif t.is_bool:
        yield sample(t.array([False, False, True]), 0, t.index(0, 0, 2), t.array([True, False, False]))
