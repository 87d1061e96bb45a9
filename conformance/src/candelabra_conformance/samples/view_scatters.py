"""Samples of copies of a tensor in which a view is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample
from candelabra_conformance.samples.strided import contiguous_origin

SLICES: Final[tuple[tuple[tuple[int, ...], Any, tuple[int, ...]], ...]] = (
    ((3, 5), (0, 1, 3), (2, 5)), ((3, 5), (1, None, None, 2), (3, 3)), ((2, 7, 3), (-2, -4, -1, 2), (2, 2, 3)),
    ((7,), (0, 2, 100), (5,)), ((3, 4), (0, 2, 1), (0, 4)),
)  # fmt: skip
"""The shape of a tensor; dim, start, end and step; the shape of that slice."""


@inputs("select_scatter")
def one_slice(t: Maker) -> Iterator[Sample]:
    """Yield any dim, counted from either end."""
    for shape, dim, index in (((3, 5), 0, 1), ((3, 5), -1, -5), ((2, 3, 4), 1, 2), ((7,), 0, -1)):
        part = (*shape[: dim % len(shape)], *shape[dim % len(shape) + 1 :])
        yield sample(t(*shape), t(*part), dim, index)
    yield sample(t(1, 3), t(3), 0, 0, kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0), 1, 2, kind=ZERO_SIZE)
    yield sample(t(333, 65), t(333), 1, 7, kind=LARGE)


@mistakes("select_scatter")
def no_such_slice(t: Maker) -> Iterator[Sample]:
    """Yield an index out of range, another shape, and a 0-d tensor."""
    yield sample(t(3, 5), t(5), 0, 3, note="beyond")
    yield sample(t(3, 5), t(5), 0, -4, note="before")
    yield sample(t(3, 5), t(3), 0, 1, note="another shape")
    yield sample(t(), t(), 0, 0, note="a tensor without dims")


@inputs("slice_scatter")
def some_slices(t: Maker) -> Iterator[Sample]:
    """Yield a step, default ends, ends beyond the size, and no slices."""
    for shape, place, part in SLICES:
        yield sample(t(*shape), t(*part), *place)
    yield sample(t(3, 5), t(2, 5), end=2, note="by keyword")
    yield sample(t(1, 3), t(1, 3), 0, kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 2), 1, 1, kind=ZERO_SIZE)
    yield sample(t(333, 65), t(333, 13), 1, 0, 65, 5, kind=LARGE)


@mistakes("slice_scatter")
def no_such_slices(t: Maker) -> Iterator[Sample]:
    """Yield steps that are not positive, another shape, and a 0-d tensor."""
    yield sample(t(3, 5), t(3, 5), 0, 0, 3, 0, note="no step")
    yield sample(t(3, 5), t(3, 5), 0, 0, 3, -1, note="backwards")
    yield sample(t(3, 5), t(1, 5), 0, 0, 2, note="another shape")
    yield sample(t(), t(), 0, 0, 1, note="a tensor without dims")


@inputs("as_strided_scatter")
def strided(t: Maker) -> Iterator[Sample]:
    """Yield a diagonal, a transposed part, every second element, an offset, and elements without gaps."""
    only = ("contiguous",)
    yield sample(t(3, 4), t(3), (3,), (5,), layouts=only, note="a diagonal")
    yield sample(t(3, 4), t(2, 3), (2, 3), (1, 4), 1, layouts=only, note="transposed")
    yield sample(t(8), t(4), (4,), (2,), 1, layouts=only, note="every second one")
    yield sample(t(3, 4), t(), (), (), 5, contiguous_origin(3, 4), layouts=only, note="one element")
    yield sample(t(3, 4), t(2, 3), (2, 3), (3, 1), 5, layouts=only, note="without gaps")
    yield sample(t(1), t(1), (1,), (1,), kind=LENGTH_ONE)
    yield sample(t(3), t(0, 2), (0, 2), (2, 1), kind=ZERO_SIZE)
    yield sample(t(129, 129), t(129), (129,), (130,), kind=LARGE)


@mistakes("as_strided_scatter")
def not_strided(t: Maker) -> Iterator[Sample]:
    """Yield elements outside of the memory, another shape, and negative strides."""
    yield sample(t(4), t(3), (3,), (2,), note="outside")
    yield sample(t(4), t(3), (2,), (2,), note="another shape")
    yield sample(t(4), t(2), (2,), (-1,), 1, note="backwards")
    yield sample(t(4), t(2), (2,), (1, 1), note="more strides than sizes")
