"""Samples of scattering along a dim: numbers, sums and products, reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from candelabra_conformance.samples.indexing import ALONG, distinct, resized
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

REDUCTIONS: Final = ("sum", "prod", "mean", "amax", "amin")


def value_of(t: Maker) -> complex:
    """Return a number that the dtype represents."""
    return 1.5 - 0.5j if t.is_complex else 1.5 if t.is_floating else 1


@inputs("gather_sparse_grad")
def picked(t: Maker) -> Iterator[Sample]:
    """Yield both values of the hint, which has no effect."""
    for shape, dim in ALONG[:3]:
        for hint in (True, False):
            yield sample(t(*shape), dim, t.indices(*resized(shape, dim, 6), below=shape[dim]), sparse_grad=hint)
    yield sample(t(), 0, t.index(0).reshape(()), sparse_grad=True, kind=ZERO_DIM)
    yield sample(t(1), 0, t.index(0, 0), sparse_grad=False, kind=LENGTH_ONE)


@inputs("scatter_value")
def scattered_number(t: Maker) -> Iterator[Sample]:
    """Yield a number, and indices with duplicates."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, t.indices(*resized(shape, dim, 4), below=shape[dim]), value_of(t))
    yield sample(t(4, 5), 0, t.index([3, 3], [0, 3]), 1, note="a corner")
    yield sample(t(), 0, t.index(0).reshape(()), 1, kind=ZERO_DIM)
    yield sample(t(1, 3), 0, t.index([0, 0, 0]), 1, kind=LENGTH_ONE)
    yield sample(t(3, 4), 1, t.indices(3, 0, below=1), 1, kind=ZERO_SIZE)
    yield sample(t(3000), 0, t.indices(2000, below=3000), 1, kind=LARGE)


@inputs("scatter_value_reduced")
def scattered_number_combined(t: Maker) -> Iterator[Sample]:
    """Yield a number that is added, multiplied, and written."""
    for reduce in ("add", "multiply", None):
        for shape, dim in ALONG[:4]:
            index = t.indices(*resized(shape, dim, 3), below=shape[dim])
            yield sample(t(*shape), dim, index, value_of(t), reduce=reduce, note=f"{reduce}")
    yield sample(t(), 0, t.index(0).reshape(()), 1, reduce="add", kind=ZERO_DIM)
    yield sample(t(3, 4), 1, t.indices(3, 0, below=1), 1, reduce="multiply", kind=ZERO_SIZE)


@inputs("scatter_reduced")
def scattered_and_combined(t: Maker) -> Iterator[Sample]:
    """Yield addition, multiplication and writing, and sources larger than the index."""
    for reduce in ("add", "multiply"):
        for shape, dim in ALONG[:4]:
            index = t.indices(*resized(shape, dim, 3), below=shape[dim])
            yield sample(t(*shape), dim, index, t(*resized(shape, dim, 3)), reduce=reduce, note=reduce)
        yield sample(t(4, 5), 0, t.index([3, 3], [0, 3]), t(3, 4), reduce=reduce, note=f"{reduce}, a corner")
    yield sample(t(3, 5), 1, distinct(t, (3, 2), 1, 5), t(3, 2), reduce=None, note="put")
    yield sample(t(), 0, t.index(0), t(1), reduce="multiply", kind=ZERO_DIM)
    yield sample(t(1), 0, t.index(0), t(1), reduce="add", kind=LENGTH_ONE)
    yield sample(t(3), 0, t.indices(0, below=1), t(0), reduce="multiply", kind=ZERO_SIZE)


@inputs("scatter_reduce")
def scattered_and_reduced(t: Maker) -> Iterator[Sample]:
    """Yield every reduction, with and without the old values."""
    for reduce in REDUCTIONS[:3] if t.is_complex else REDUCTIONS:
        if t.is_bool and reduce == "mean":
            continue
        for own in (True, False):
            note = f"{reduce} {own}"
            for shape, dim in ALONG[:4]:
                index = t.indices(*resized(shape, dim, 5), below=shape[dim])
                yield sample(t(*shape), dim, index, t(*index.shape), reduce, include_self=own, note=note)
        yield sample(t(4, 5), 0, t.index([3, 3], [0, 3]), t(3, 4), reduce, note=f"{reduce}, a corner")
    yield sample(t(), 0, t.index(0), t(1), "prod", kind=ZERO_DIM)
    yield sample(t(1), 0, t.index(0), t(1), "sum", kind=LENGTH_ONE)
    yield sample(t(3), 0, t.indices(0, below=1), t(0), "sum", kind=ZERO_SIZE)
    yield sample(t(17, 33), 0, t.indices(301, 33, below=17), t(301, 33), "sum", kind=LARGE, gradient=False)


@mistakes("scatter_reduced", "scatter_reduce")
def unfit_source(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, wrong ranks and sizes, and unknown reductions."""
    reduce = "add" if t.operator == "scatter_reduced" else "sum"
    yield sample(t(3), 0, t.index(0, 3), t(2), reduce=reduce, note="beyond")
    yield sample(t(3), 0, t.index(0, -1), t(2), reduce=reduce, note="negative")
    yield sample(t(3, 2), 0, t.index(0, 1), t(2), reduce=reduce, note="ranks")
    yield sample(t(3, 2), 0, t.indices(2, 2, below=3), t(1, 2), reduce=reduce, note="a smaller source")
    yield sample(t(3), 0, t.index(0, 1), t(2), reduce="no such reduction", note="no such reduction")


@mistakes("scatter_value", "scatter_value_reduced")
def unfit_indices(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and wrong ranks and sizes."""
    more = {"reduce": "add"} if t.operator == "scatter_value_reduced" else {}
    yield sample(t(3), 0, t.index(0, 3), 1, note="beyond", **more)
    yield sample(t(3, 2), 0, t.index(0, 1), 1, note="ranks", **more)
    yield sample(t(3, 2), 0, t.indices(2, 3, below=2), 1, note="wider than the tensor", **more)
