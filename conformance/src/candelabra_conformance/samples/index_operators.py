"""Samples of operators on whole slices along one dim by a vector of indices, and on elements of the flattened
tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.indexing import ALONG, distinct, resized
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

REDUCTIONS: Final = ("prod", "mean", "amax", "amin")


def once(t: Maker, size: int, count: int) -> Array:
    """Return a vector of distinct indices."""
    return t.random.permutation(size)[:count].astype("int64")


def factors(t: Maker, *shape: int) -> Array:
    """Return values whose products, and the derivatives of these, keep their digits."""
    return t(*shape, low=0.5, high=1.5) if t.is_floating or t.is_complex else t(*shape)


@inputs("index_add_scaled")
def added_times_a_number(t: Maker) -> Iterator[Sample]:
    """Yield duplicates, and any dim."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(4, below=shape[dim]), t(*resized(shape, dim, 4)), alpha=2)
    yield sample(t(), 0, t.index(0), t(), alpha=3, kind=ZERO_DIM)
    yield sample(t(0, 3), 1, t.index(2, 0), t(0, 2), alpha=2, kind=ZERO_SIZE)
    yield sample(t(33), 0, t.indices(3000, below=33), t(3000), alpha=1, kind=LARGE, gradient=False)


@mistakes("index_add_scaled", "index_copy", "index_reduce")
def slices_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield numbers and shapes of slices that do not match the indices, and indices out of bounds."""
    required: dict[str, dict[str, Any]] = {"index_add_scaled": {"alpha": 2}, "index_reduce": {"reduce": "prod"}}
    more = required.get(t.operator, {})
    yield sample(t(3, 4), 0, t.index(0, 1), t(3, 4), note="more slices", **more)
    yield sample(t(3, 4), 0, t.index(0, 1), t(2, 3), note="other sizes", **more)
    yield sample(t(3, 4), 0, t.index(0, 3), t(2, 4), note="beyond", **more)
    yield sample(t(3, 4), 0, t.index([0], [1]), t(2, 4), note="a matrix", **more)


@inputs("index_copy")
def copied_slices(t: Maker) -> Iterator[Sample]:
    """Yield negative indices, and duplicates, for which the last write wins and which have no derivative."""
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
    """Yield a number and a tensor of one element, duplicates, and negative indices."""
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
    """Yield indices out of bounds, a matrix of indices, and values with dims."""
    yield sample(t(3, 4), 0, t.index(3), 1, note="beyond")
    yield sample(t(3, 4), 0, t.index(-4), 1, note="before")
    yield sample(t(3, 4), 0, t.index([0], [1]), 1, note="a matrix")
    yield sample(t(3, 4), 0, t.index(0), t(1), note="a vector of values")


@inputs("index_reduce")
def reduced_slices(t: Maker) -> Iterator[Sample]:
    """Yield every reduction, with and without the old values."""
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
    """Yield an unknown reduction."""
    yield sample(t(3, 4), 0, t.index(0, 1), t(2, 4), "sum", note="sum")


# -- elements of the flattened tensor ---------------------------------------------------------------------------------
@inputs("take")
def gathered(t: Maker) -> Iterator[Sample]:
    """Yield indices of any shape, duplicates, and negative indices."""
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
    """Yield both modes, and sources of another shape than the index."""
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
    """Yield indices beyond either end."""
    yield sample(t(2, 3), t.index(6), note="beyond")
    yield sample(t(2, 3), t.index(-7), note="before")
    yield sample(t(0), t.index(0), note="of nothing")


@mistakes("put")
def put_outside(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and another number of elements than indices."""
    yield sample(t(2, 3), t.index(6), t(1), note="beyond")
    yield sample(t(2, 3), t.index(-7), t(1), True, note="before")
    yield sample(t(2, 3), t.index(0, 1), t(3), note="more elements")


@inputs("take_along_dim")
def taken_along_a_dim(t: Maker) -> Iterator[Sample]:
    """Yield any dim, other dims that broadcast in either direction, no dim, and negative indices."""
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
    """Yield indices out of bounds, and shapes that do not broadcast."""
    yield sample(t(3, 4), t.index([4]), 1, note="beyond")
    yield sample(t(3, 4), t.index([-5]), 1, note="before")
    yield sample(t(3, 4), t.index(0), 1, note="ranks")
    yield sample(t(3, 4), t.indices(2, 2, below=4), 1, note="shapes")
