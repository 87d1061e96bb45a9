"""Whole slices along one dim by a vector of indices; elements of the flattened tensor: samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.indexing import ALONG, distinct, resized
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

REDUCTIONS: Final = ("prod", "mean", "amax", "amin")


def once(t: Maker, size: int, count: int) -> Array:
    """A vector of different indices."""
    return t.random.permutation(size)[:count].astype("int64")


def factors(t: Maker, *shape: int) -> Array:
    """Values whose products keep their digits, as do the derivatives of these."""
    return t(*shape, low=0.5, high=1.5) if t.is_floating or t.is_complex else t(*shape)


@inputs("index_add_scaled")
def added_times_a_number(t: Maker) -> Iterator[Sample]:
    """With duplicates, along any dim."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(4, below=shape[dim]), t(*resized(shape, dim, 4)), alpha=2)
    yield sample(t(), 0, t.index(0), t(), alpha=3, kind=ZERO_DIM)
    yield sample(t(0, 3), 1, t.index(2, 0), t(0, 2), alpha=2, kind=ZERO_SIZE)
    yield sample(t(33), 0, t.indices(3000, below=33), t(3000), alpha=1, kind=LARGE, gradient=False)


@mistakes("index_add_scaled", "index_copy", "index_reduce")
def slices_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """As many slices as indices, of the input's shape, within bounds."""
    required: dict[str, dict[str, Any]] = {"index_add_scaled": {"alpha": 2}, "index_reduce": {"reduce": "prod"}}
    more = required.get(t.operator, {})
    yield sample(t(3, 4), 0, t.index(0, 1), t(3, 4), note="more slices", **more)
    yield sample(t(3, 4), 0, t.index(0, 1), t(2, 3), note="other sizes", **more)
    yield sample(t(3, 4), 0, t.index(0, 3), t(2, 4), note="beyond", **more)
    yield sample(t(3, 4), 0, t.index([0], [1]), t(2, 4), note="a matrix", **more)


@inputs("index_copy")
def copied_slices(t: Maker) -> Iterator[Sample]:
    """Negative indices count back; of duplicates, which have no derivative, the last write wins."""
    for shape, dim in ALONG:
        size = shape[dim]
        yield sample(t(*shape), dim, once(t, size, 2), t(*resized(shape, dim, 2)))
        yield sample(t(*shape), dim, t.indices(4, below=size) - size, t(*resized(shape, dim, 4)), gradient=False)
    yield sample(t(), 0, t.index(0), t(), kind=ZERO_DIM)
    yield sample(t(1, 2), 0, t.index(0), t(1, 2), kind=LENGTH_ONE)
    yield sample(t(3, 2), 0, t.indices(0, below=1), t(0, 2), kind=ZERO_SIZE)
    yield sample(t(3000), 0, once(t, 3000, 2000), t(2000), kind=LARGE)


@inputs("index_fill")
def filled_slices(t: Maker) -> Iterator[Sample]:
    """By a number and by a tensor of one element; duplicates, negative indices."""
    for shape, dim in ALONG:
        size = shape[dim]
        yield sample(t(*shape), dim, t.indices(4, below=size), 1)
        yield sample(t(*shape), dim, t.indices(3, below=size) - size, t())
    yield sample(t(3, 2), 1, t.index(1).reshape(()), 0, note="a 0-d index")
    yield sample(t(), 0, t.index(0), 1, kind=ZERO_DIM)
    yield sample(t(1, 2), 0, t.index(0), t(), kind=LENGTH_ONE)
    yield sample(t(3, 2), 0, t.indices(0, below=1), 1, kind=ZERO_SIZE)
    yield sample(t(1023, 3), 0, t.indices(300, below=1023), 1, kind=LARGE)


@mistakes("index_fill")
def unfit_filling(t: Maker) -> Iterator[Sample]:
    """Bounds, a matrix of indices, values with dims."""
    yield sample(t(3, 4), 0, t.index(3), 1, note="beyond")
    yield sample(t(3, 4), 0, t.index(-4), 1, note="before")
    yield sample(t(3, 4), 0, t.index([0], [1]), 1, note="a matrix")
    yield sample(t(3, 4), 0, t.index(0), t(1), note="a vector of values")


@inputs("index_reduce")
def reduced_slices(t: Maker) -> Iterator[Sample]:
    """Every reduction, with the slices that are there and without them."""
    for reduce in REDUCTIONS:
        for own in (True, False):
            note = f"{reduce} {own}"
            for shape, dim in ALONG[:4]:
                index, source = t.indices(5, below=shape[dim]), factors(t, *resized(shape, dim, 5))
                yield sample(t(*shape), dim, index, source, reduce, include_self=own, note=note)
    yield sample(t(), 0, t.index(0), t(), "prod", kind=ZERO_DIM)
    yield sample(t(1, 2), 0, t.index(0), t(1, 2), "amax", kind=LENGTH_ONE)
    yield sample(t(3, 2), 0, t.indices(0, below=1), t(0, 2), "mean", kind=ZERO_SIZE)
    yield sample(t(17, 33), 0, t.indices(301, below=17), t(301, 33), "amin", kind=LARGE, gradient=False)


@mistakes("index_reduce")
def no_reduction_of_slices(t: Maker) -> Iterator[Sample]:
    """A reduction that there is not."""
    yield sample(t(3, 4), 0, t.index(0, 1), t(2, 4), "sum", note="sum")


# -- elements of the flattened tensor ---------------------------------------------------------------------------------
@inputs("take")
def taken(t: Maker) -> Iterator[Sample]:
    """Indices of any shape, duplicates, negative ones."""
    yield sample(t(7), t.indices(5, below=7))
    yield sample(t(3, 5), t.indices(2, 4, below=15) - t.index(15, 0, 15, 0))
    yield sample(t(2, 3, 4), t.index(23, -24, 0, 0))
    yield sample(t(3, 5), t.index(4).reshape(()), note="one")
    yield sample(t(), t.index(0, -1), kind=ZERO_DIM)
    yield sample(t(1), t.index(0), kind=LENGTH_ONE)
    yield sample(t(3, 2), t.indices(0, 2, below=1), kind=ZERO_SIZE)
    yield sample(t(1023), t.indices(5000, below=1023), kind=LARGE)


@inputs("put")
def put(t: Maker) -> Iterator[Sample]:
    """Written and added; sources of another shape than the index."""
    for shape in ((7,), (3, 5), (2, 3, 4)):
        size = t(*shape).size
        yield sample(t(*shape), once(t, size, 4).reshape(2, 2), t(4))
        yield sample(t(*shape), t.indices(6, below=size) - size, t(2, 3), True)
        yield sample(t(*shape), t.index(1, 1, 0), t(3), False, gradient=False, note="the last write wins")
    yield sample(t(), t.index(0), t(), kind=ZERO_DIM)
    yield sample(t(1), t.index(-1), t(1), True, kind=LENGTH_ONE)
    yield sample(t(3), t.indices(0, below=1), t(0), kind=ZERO_SIZE)
    yield sample(t(33), t.indices(3000, below=33), t(3000), True, kind=LARGE, gradient=False)


@mistakes("take")
def taken_from_outside(t: Maker) -> Iterator[Sample]:
    """Beyond either end."""
    yield sample(t(2, 3), t.index(6), note="beyond")
    yield sample(t(2, 3), t.index(-7), note="before")
    yield sample(t(0), t.index(0), note="of nothing")


@mistakes("put")
def put_outside(t: Maker) -> Iterator[Sample]:
    """Bounds, and as many elements as indices."""
    yield sample(t(2, 3), t.index(6), t(1), note="beyond")
    yield sample(t(2, 3), t.index(-7), t(1), True, note="before")
    yield sample(t(2, 3), t.index(0, 1), t(3), note="more elements")


@inputs("take_along_dim")
def taken_along_a_dim(t: Maker) -> Iterator[Sample]:
    """Along any dim, the other dims broadcast either way; flattened; negative indices."""
    for shape, dim in ALONG:
        yield sample(t(*shape), t.indices(*resized(shape, dim, 6), below=shape[dim]), dim)
        yield sample(t(*shape), distinct(t, resized(shape, dim, 2), dim, shape[dim]) - shape[dim], dim)
    yield sample(t(3, 4), t.indices(1, 2, below=4), 1, note="indices broadcast")
    yield sample(t(1, 4), t.indices(3, 2, below=4), 1, note="the input broadcasts")
    yield sample(t(3, 4), t.indices(2, 5, below=12), note="flattened")
    yield sample(t(), t.index(0).reshape(()), 0, kind=ZERO_DIM)
    yield sample(t(1, 3), t.index([0, 0, 0]), 0, kind=LENGTH_ONE)
    yield sample(t(3, 4), t.indices(3, 0, below=1), 1, kind=ZERO_SIZE)
    yield sample(t(1023), t.indices(5000, below=1023), 0, kind=LARGE)


@mistakes("take_along_dim")
def not_along_a_dim(t: Maker) -> Iterator[Sample]:
    """Bounds, and shapes that broadcast."""
    yield sample(t(3, 4), t.index([4]), 1, note="beyond")
    yield sample(t(3, 4), t.index([-5]), 1, note="before")
    yield sample(t(3, 4), t.index(0), 1, note="ranks")
    yield sample(t(3, 4), t.indices(2, 2, below=4), 1, note="shapes")
