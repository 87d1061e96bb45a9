"""Samples of binary search, indices of nonzero elements, and indices per dim. ``order`` has those of
``sorted_place``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.conditioned import cast
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


def ascending(t: Maker, *shape: int) -> Array:
    """Return values in order along the last dim."""
    return cast(t, np.sort(t(*shape).astype(np.float64), -1))


def is_searched(t: Maker) -> bool:
    """Return whether the elements of a dtype have an order."""
    return not (t.is_complex or t.is_bool)


@inputs("searchsorted")
def searched(t: Maker) -> Iterator[Sample]:
    """Yield both sides, values of any shape, a number, a sequence each, a sorter, and both integer dtypes."""
    if not is_searched(t):
        return
    for right in (False, True):
        row = ascending(t, 5)
        yield sample(row, t(2, 3), right=right)
        yield sample(row, row.copy(), right=right, note="equal elements")
        yield sample(row, 1, right=right, note="a number")
    yield sample(ascending(t, 5), t(4), side="left", out_int32=True)
    yield sample(ascending(t, 5), t(4), side="right")
    yield sample(ascending(t, 2, 8), t(2, 3), note="a sequence each")
    given = t(7)
    yield sample(given, t(4), sorter=np.argsort(given.astype(np.float64), kind="stable").astype(np.int64))
    yield sample(ascending(t, 3), t(), kind=ZERO_DIM)
    yield sample(ascending(t, 1), t(1), kind=LENGTH_ONE)
    yield sample(ascending(t, 0), t(3), kind=ZERO_SIZE)
    yield sample(ascending(t, 4001), t(5000), kind=LARGE)


@mistakes("searchsorted")
def not_searched(t: Maker) -> Iterator[Sample]:
    """Yield shapes, sides and sorters that do not match."""
    if not is_searched(t):
        return
    yield sample(ascending(t, 2, 3), t(3, 3), note="other dims")
    yield sample(ascending(t, 2, 3), 1, note="a number in several sequences")
    yield sample(t(), t(3), note="no sequence")
    yield sample(ascending(t, 3), t(3), side="middle", note="no side")
    yield sample(ascending(t, 3), t(3), side="left", right=True, note="two sides")
    yield sample(ascending(t, 3), t(3), sorter=t.index(0, 1), note="a shorter sorter")
    yield sample(ascending(t, 3), t(3), sorter=t.index(0, 1, 3), note="a sorter that points outside")


@inputs("bucketize")
def buckets(t: Maker) -> Iterator[Sample]:
    """Yield values of any shape, a number, and both sides."""
    if not is_searched(t):
        return
    for right in (False, True):
        row = ascending(t, 5)
        yield sample(t(2, 3), row, right=right)
        yield sample(row.copy(), row, right=right, note="on the boundaries")
    yield sample(1, ascending(t, 5), note="a number")
    yield sample(t(4), ascending(t, 5), out_int32=True)
    yield sample(t(), ascending(t, 3), kind=ZERO_DIM)
    yield sample(t(1), ascending(t, 1), kind=LENGTH_ONE)
    yield sample(t(3), ascending(t, 0), kind=ZERO_SIZE)


@mistakes("bucketize")
def no_buckets(t: Maker) -> Iterator[Sample]:
    """Yield boundaries that are not a vector."""
    if is_searched(t):
        yield sample(t(3), ascending(t, 2, 3), note="a matrix")
        yield sample(t(3), t(), note="a number")


@inputs("nonzero_tuple")
def indices_by_dim(t: Maker) -> Iterator[Sample]:
    """Yield a vector for each dim, and rows."""
    x = t(3, 5)
    x[t.mask(3, 5)] = 0
    for apart in (True, False):
        yield sample(x, as_tuple=apart, gradient=False, note=f"{apart}")
    yield sample(np.ones((), t.numpy), as_tuple=True, gradient=False, kind=ZERO_DIM)
    yield sample(np.zeros((2, 3), t.numpy), as_tuple=True, gradient=False, note="none")
    yield sample(t(0, 3), as_tuple=True, gradient=False, kind=ZERO_SIZE)


@inputs("nonzero_static")
def so_many_rows(t: Maker) -> Iterator[Sample]:
    """Yield fewer rows than nonzero elements, as many, and more."""
    x = t(3, 5)
    x[t.mask(3, 5)] = 0
    count = int(np.count_nonzero(x))
    for size in (count // 2, count, count + 3):
        yield sample(x, size=size, note=f"{size}")
    yield sample(x, size=20, fill_value=7)
    yield sample(np.zeros((2, 3), t.numpy), size=2, note="none")
    yield sample(np.ones((), t.numpy), size=1, kind=ZERO_DIM)
    yield sample(np.ones(1, t.numpy), size=1, kind=LENGTH_ONE)
    yield sample(t(0, 3), size=2, kind=ZERO_SIZE)
    yield sample(t(3, 2), size=0, kind=ZERO_SIZE, note="no rows")
    yield sample(t(33, 31), size=700, kind=LARGE)


@mistakes("nonzero_static")
def no_number_of_rows(t: Maker) -> Iterator[Sample]:
    """Yield a negative number."""
    yield sample(t(3), size=-1, note="negative")


@inputs("unravel_index")
def per_dim(t: Maker) -> Iterator[Sample]:
    """Yield several dims, one dim, none, and sizes of 1."""
    if not t.is_integer:
        return
    for shape, below in (((3, 4), 12), ((2, 3, 4), 24), ((5,), 5), ((1, 3), 3)):
        yield sample(t.indices(2, 5, below=below).astype(t.numpy), shape)
    yield sample(t.index(3).reshape(()).astype(t.numpy), (2, 3), kind=ZERO_DIM)
    yield sample(t.index(7, 0).astype(t.numpy), 9, note="a size")
    yield sample(t.indices(0, below=1).astype(t.numpy), (2, 3), kind=ZERO_SIZE)


@mistakes("unravel_index")
def not_per_dim(t: Maker) -> Iterator[Sample]:
    """Yield indices that are not integers, and invalid shapes."""
    yield sample(t.of("float32")(3), (2, 3), note="floats")
    yield sample(t.index(1), (2, -3), note="a negative size")
    yield sample(t.index(1), "text", note="no shape")
