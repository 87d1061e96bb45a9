"""Samples of subscripts, ``x[index]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


def subscripts(t: Maker) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield shapes and indices: ints, slices, None, Ellipsis, index tensors, masks, lists, bools, and mixtures of
    these."""
    yield (4, 3), 1
    yield (4, 3), -1
    yield (4, 3), slice(1, 3)
    yield (4, 3), slice(-3, None, 2)
    yield (4, 3), (0, -1)
    yield (4, 3), (slice(None), slice(None, 2))
    yield (4, 3), None
    yield (2, 3, 4), (Ellipsis, 1)
    yield (2, 3, 4), (1, None, Ellipsis, slice(0, 4, 3), None)
    yield (4, 3), t.index(2, 0, -1)
    yield (4, 3), (slice(None), t.index([1, 0], [2, 2]))
    yield (4, 3), (t.index(2, 0), t.index(1, -3))
    yield (2, 3, 4), (t.index(1, 0), slice(1, 3), t.index(0, -1))
    yield (2, 3, 4), (0, Ellipsis, t.index(2, 1))
    yield (4, 3), t.of("int32").index(2, 0).astype(np.int32)
    yield (4, 3), [2, 0]
    yield (4,), [True, False, False, True]
    yield (4, 3), t.mask(4, 3)
    yield (4, 3), t.mask(4)
    yield (2, 4, 3), (1, t.mask(4), slice(0, 2))
    yield (4, 3), (True, 1)
    yield (4, 3), False


def applied(x: Array, index: Any) -> Array:
    """Return ``x[index]`` by NumPy's rules, except that ints are applied before index arrays, as in PyTorch."""
    if isinstance(index, list) and not index:
        index = np.zeros(0, np.int64)
    if not isinstance(index, tuple) or not any(isinstance(item, np.ndarray) for item in index):
        return np.asarray(x[index])
    ints: list[Any] = []
    for item in index:
        if isinstance(item, np.ndarray):
            ints += [slice(None)] * (item.ndim if item.dtype == bool else 1)
        elif item is Ellipsis or is_int(item):
            ints.append(item)
        elif isinstance(item, slice):
            ints.append(slice(None))
    rest = tuple(item for item in index if not is_int(item))
    return np.asarray(x[tuple(ints)][rest])


def is_int(item: Any) -> bool:
    """Return whether an element of an index selects one slice of a dim."""
    return isinstance(item, int) and not isinstance(item, bool)


@inputs("Tensor.__setitem__")
def written(t: Maker) -> Iterator[Sample]:
    """Yield every kind of index, with numbers, tensors of the same shape and tensors that broadcast.

    If later writes replace earlier ones, there is no derivative.
    """
    number = 1.5 if t.is_floating else 1
    for shape, index in subscripts(t):
        note, size = type(index).__name__, int(np.prod(shape))
        selected = applied(np.arange(size).reshape(shape), index)
        once = len(np.unique(selected)) == selected.size
        yield sample(t(*shape), index, number, note=f"{note}, a number")
        yield sample(t(*shape), index, t(*selected.shape), gradient=once, note=note)
        yield sample(t(*shape), index, t(1, *selected.shape[1:]), gradient=once, note=f"{note}, broadcast")
    yield sample(t(), (), t(), kind=ZERO_DIM)
    yield sample(t(1, 3), 0, t(3), kind=LENGTH_ONE)
    yield sample(t(3), slice(2, 1), number, kind=ZERO_SIZE)
    yield sample(t(3, 2), t.indices(0, below=1), t(2), kind=ZERO_SIZE, gradient=False)
    yield sample(t(2001, 3), (slice(1, None), 1), t(2000), kind=LARGE)


@mistakes("Tensor.__setitem__")
def not_written(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, values of another shape, and arguments that are not values."""
    yield sample(t(2, 3), 2, 1, note="beyond")
    yield sample(t(2, 3), t.index(0, 2), t(3), note="an index beyond")
    yield sample(t(2, 3), 0, t(2), note="another shape")
    yield sample(t(2, 3), t.index(0, 1), t(3, 3), note="another number")
    yield sample(t(2, 3), 0, "text", note="a word")


@inputs("Tensor.__getitem__")
def read(t: Maker) -> Iterator[Sample]:
    """Yield every kind of index."""
    for shape, index in subscripts(t):
        yield sample(t(*shape), index, note=f"{type(index).__name__}")
    yield sample(t(), (), kind=ZERO_DIM)
    yield sample(t(), None, kind=ZERO_DIM)
    yield sample(t(), True, kind=ZERO_DIM)
    yield sample(t(1, 3), 0, kind=LENGTH_ONE)
    yield sample(t(3), slice(2, 1), kind=ZERO_SIZE)
    yield sample(t(3, 2), t.indices(0, below=1), kind=ZERO_SIZE)
    yield sample(t(3, 2), [], kind=ZERO_SIZE)
    yield sample(t(2001, 3), (t.indices(3000, below=2001), slice(1, None)), kind=LARGE)


@mistakes("Tensor.__getitem__")
def not_read(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, too many indices, masks of another shape, and arguments that are not indices."""
    yield sample(t(2, 3), 2, note="beyond")
    yield sample(t(2, 3), (0, -4), note="before")
    yield sample(t(2, 3), t.index(0, 2), note="an index beyond")
    yield sample(t(2, 3), (t.index(0, 1), t.index(0, 1, 2)), note="shapes")
    yield sample(t(2, 3), (0, 0, 0), note="too many")
    yield sample(t(2, 3), np.array([True, False, True]), note="a mask of another shape")
    yield sample(t(2, 3), slice(None, None, -1), note="backwards")
    yield sample(t(2, 3), 1.5, note="a float")
    yield sample(t(2, 3), "text", note="a word")
    yield sample(t(), 0, note="no dims")
