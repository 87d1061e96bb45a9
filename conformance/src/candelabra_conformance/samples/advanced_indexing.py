"""Samples of indexing with several index tensors and masks, and of operators whose result depends on values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

Indices = tuple[Array | None, ...]


def patterns(t: Maker) -> Iterator[tuple[tuple[int, ...], Indices]]:
    """Yield shapes and indices: one index, several that broadcast, adjacent and separated ones, negative ones."""
    yield (4, 3), (t.index(2, 0, 2),)
    yield (4, 3), (None, t.index(2, -1))
    yield (4, 3), (t.index(3, 0), t.index(1, -3))
    yield (4, 3), (t.index([0], [3]), t.index(1, 2, 0))
    yield (2, 3, 4), (None, t.index(1, 0), t.index(3, 3))
    yield (2, 3, 4), (t.index(1, 0), None, t.index(2, -4))
    yield (2, 3, 4), (None, t.index([0, 2], [1, -1]), None)
    yield (3, 2, 4, 2), (None, t.index(0, 1, 0), None, t.index(1))
    yield (17,), (t.index(-17, 16, 3, 3),)
    yield (4, 3), (t.index(2).reshape(()),)


def scarce(t: Maker) -> Iterator[tuple[tuple[int, ...], Indices]]:
    """Yield no indices, and indices of tensors without elements."""
    yield (4, 3), (t.indices(0, below=1),)
    yield (0, 3), (None, t.index(2, 0))
    yield (2, 0), (t.index(1, 1, 0),)


def free_of_duplicates(shape: tuple[int, ...], indices: Indices) -> bool:
    """Return whether every element is indexed at most once."""
    numbered = np.arange(int(np.prod(shape))).reshape(shape)
    selected = numbered[tuple(slice(None) if i is None else i for i in indices)]
    return len(np.unique(selected)) == selected.size


@inputs("index")
def by_tensors(t: Maker) -> Iterator[Sample]:
    """Yield every pattern."""
    for shape, indices in patterns(t):
        yield sample(t(*shape), indices)
    for shape, indices in scarce(t):
        yield sample(t(*shape), indices, kind="zero-size")
    yield sample(t(2, 3), [None, t.index(1)], note="a list")
    yield sample(t(1, 3), (t.index(0, 0, -1),), kind="length-1")
    yield sample(t(1023, 3), (t.indices(3000, below=1023), t.indices(3000, below=3)), kind="large", gradient=False)


@inputs("index_put")
def put_by_tensors(t: Maker) -> Iterator[Sample]:
    """Yield every pattern, with and without accumulation, and values that broadcast. Duplicates have no derivative if
    later writes replace earlier ones."""
    for shape, indices in patterns(t):
        wanted = t(*shape)[tuple(slice(None) if i is None else i for i in indices)].shape
        single = free_of_duplicates(shape, indices)
        yield sample(t(*shape), indices, t(*wanted), gradient=single)
        yield sample(t(*shape), indices, t(*wanted), True)
        yield sample(t(*shape), indices, t(*wanted[-1:]), accumulate=True, note="broadcast")
        yield sample(t(*shape), indices, t(), False, note="one value", gradient=single)
    for shape, indices in scarce(t):
        yield sample(t(*shape), indices, t(), True, kind="zero-size")
        yield sample(t(*shape), indices, t(), kind="zero-size")
    yield sample(t(1, 3), (t.index(0),), t(1, 3), kind="length-1")
    yield sample(t(33), (t.indices(3000, below=33),), t(3000), True, kind="large", gradient=False)


@mistakes("index")
def beyond(t: Maker) -> Iterator[Sample]:
    """Yield indices beyond either end, indices that do not broadcast, no indices, and floating indices."""
    yield sample(t(2, 3), (t.index(0, 2),), note="beyond")
    yield sample(t(2, 3), (None, t.index(-4)), note="beyond the start")
    yield sample(t(2, 3), (t.index(0, 1), t.index(0, 1, 2)), note="shapes")
    yield sample(t(2, 3), (t.of("float32")(2),), note="floating indices")
    yield sample(t(0, 3), (t.index(0),), note="of nothing")


@mistakes("index_put")
def put_beyond(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and values that do not broadcast."""
    yield sample(t(2, 3), (t.index(0, 2),), t(2, 3), note="beyond")
    yield sample(t(2, 3), (t.index(0, -3),), t(2, 3), True, note="beyond the start")
    yield sample(t(2, 3), (t.index(0, 1),), t(4), note="values")
    yield sample(t(2, 3), (t.index(0, 1),), t(1, 2, 3), True, note="values of a higher rank")
    yield sample(t(2, 3), (t.index(0, 1), t.index(0, 1, 2)), t(), note="shapes")


@inputs("nonzero")
def not_zero(t: Maker) -> Iterator[Sample]:
    """Yield tensors with some, all and no nonzero elements."""
    for shape in ((7,), (3, 5), (2, 3, 4), (2, 2, 3, 2)):
        x = t(*shape)
        x[t.mask(*shape)] = 0
        yield sample(x)
    yield sample(np.zeros((3, 2), t.numpy), note="none")
    yield sample(np.ones((3, 2), t.numpy), note="all")
    yield sample(np.ones((), t.numpy), kind="0-d")
    yield sample(np.zeros((), t.numpy), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t.array([1]), kind="length-1")
    yield sample(t(33, 31), kind="large")


@special("nonzero")
def zeros_of_all_kinds(t: Maker) -> Iterator[Sample]:
    """Yield NaN and the smallest number, which are not zero, and -0.0, which is."""
    if t.is_floating:
        tiny = 2.0**-24 if t.dtype.name == "float16" else 2.0**-126
        yield sample(t.array([0.0, -0.0, float("nan"), float("inf"), -float("inf"), tiny]))
    if t.is_complex:
        yield sample(t.array([0j, complex(0, -0.0), complex(0, 1), complex(float("nan"), 0), complex(1, 0)]))


@inputs("masked_select")
def where_a_mask_holds(t: Maker) -> Iterator[Sample]:
    """Yield masks that broadcast with the input in either direction."""
    yield sample(t(3, 5), t.mask(3, 5))
    yield sample(t(17), t.mask(17))
    yield sample(t(3, 5), t.mask(5))
    yield sample(t(5), t.mask(3, 5))
    yield sample(t(2, 3, 1), t.mask(3, 4))
    yield sample(t(2, 3), np.zeros((2, 3), bool), note="none")
    yield sample(t(2, 3), np.ones((2, 3), bool), note="all")
    yield sample(t(), np.array(True), kind="0-d")
    yield sample(t(), np.array(False), kind="0-d")
    yield sample(t(0, 3), t.mask(0, 3), kind="zero-size")
    yield sample(t(1), np.array([True]), kind="length-1")
    yield sample(t(1023, 3), t.mask(1023, 3), kind="large", gradient=False)


@mistakes("masked_select")
def masks_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast, and masks that are not bool."""
    yield sample(t(2, 3), t.mask(2), note="shapes")
    yield sample(t(2, 3), t.index([0, 1, 0]), note="integers")
    yield sample(t(2, 3), True, note="a bool")
