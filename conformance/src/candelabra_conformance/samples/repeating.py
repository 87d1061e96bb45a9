"""Samples of repeating tensors, as a whole and slice by slice, and of padding."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("repeat", "tile")
def so_many_times(t: Maker) -> Iterator[Sample]:
    """Yield repeats along one dim, several, new ones, and 0 times. ``tile`` also accepts fewer counts than dims."""
    yield sample(t(3), (2,))
    yield sample(t(2, 3), (2, 3))
    yield sample(t(2, 3), (2, 1, 2), note="a new dim")
    yield sample(t(2, 1, 3), (1, 4, 1))
    if t.operator == "tile":
        yield sample(t(2, 3), (2,), note="fewer dims")
    yield sample(t(), (2, 2), kind="0-d")
    yield sample(t(2, 3), (0, 1), kind="zero-size")
    yield sample(t(1), (1,), kind="length-1")
    yield sample(t(33), (31,), kind="large")


@mistakes("repeat")
def fewer_times_than_dims(t: Maker) -> Iterator[Sample]:
    """Yield fewer counts than dims."""
    yield sample(t(2, 3), (2,), note="fewer")


@mistakes("repeat", "tile")
def negative_times(t: Maker) -> Iterator[Sample]:
    """Yield counts that are negative or not integers."""
    yield sample(t(2, 3), (1, -1), note="negative")
    yield sample(t(2, 3), (1, 0.5), note="no integer")


@inputs("repeat_interleave")
def each_so_often(t: Maker) -> Iterator[Sample]:
    """Yield one count that applies to all slices, the flattened tensor, and the count 0."""
    yield sample(t(2, 3), 2, 1)
    yield sample(t(2, 3), 3, 0, output_size=6)
    yield sample(t(2, 3), 2)
    yield sample(t(2, 3, 2), 1, -1)
    yield sample(t(), 2, kind="0-d")
    yield sample(t(2, 3), 0, 1, kind="zero-size")
    yield sample(t(1), 1, 0, kind="length-1")
    yield sample(t(257), 4, 0, kind="large")


@mistakes("repeat_interleave")
def no_number_of_times(t: Maker) -> Iterator[Sample]:
    """Yield a negative count, a wrong output size, and a dim out of range."""
    yield sample(t(2, 3), -1, note="negative")
    yield sample(t(2, 3), 2, 1, output_size=5, note="another size")
    yield sample(t(2, 3), 2, 2, note="out of range")
    yield sample(t(), 2, 0, note="no dims")


@inputs("repeat_interleave_tensor")
def each_as_often_as_its_count(t: Maker) -> Iterator[Sample]:
    """Yield a count for each slice, and one for all."""
    yield sample(t(3, 2), t.index(2, 0, 1), 0)
    yield sample(t(2, 3), t.index(1, 3, 2), 1, output_size=6)
    yield sample(t(2, 2), t.index(0, 1, 2, 3))
    yield sample(t(2, 3), t.index(2), -1)
    yield sample(t(), t.index(3), kind="0-d")
    yield sample(t(3), t.index(0, 0, 0), 0, kind="zero-size")
    yield sample(t(1), t.index(2), 0, kind="length-1")
    yield sample(t(500), t.indices(500, below=4), 0, kind="large")


@mistakes("repeat_interleave_tensor")
def counts_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield more and fewer counts than slices, negative ones, a wrong sum, and matrices."""
    yield sample(t(3), t.index(1, 2), 0, note="fewer")
    yield sample(t(2), t.index(1, -1), 0, note="negative")
    yield sample(t(2), t.index(1, 1), 0, output_size=3, note="another sum")
    yield sample(t(2), t.index([1, 1]), 0, note="a matrix")


@inputs("repeat_interleave_indices")
def indices_as_often(t: Maker) -> Iterator[Sample]:
    """Yield counts of several sizes."""
    yield sample(t(5, low=0, high=3), gradient=False)
    yield sample(t.array([2, 0, 1]), output_size=3, gradient=False)
    yield sample(t.array([0, 0]), kind="zero-size", gradient=False)
    yield sample(t.array([4]), kind="length-1", gradient=False)
    yield sample(t(500, low=0, high=3), kind="large", gradient=False)


@mistakes("repeat_interleave_indices")
def no_counts(t: Maker) -> Iterator[Sample]:
    """Yield matrices, negative counts, and a wrong sum."""
    yield sample(t.index([1, 2]), note="a matrix")
    yield sample(t.index(1, -1), note="negative")
    yield sample(t.index(1, 1), output_size=3, note="another sum")


@inputs("constant_pad_nd")
def borders(t: Maker) -> Iterator[Sample]:
    """Yield padding before and after, on several dims, and negative padding, which removes elements."""
    value = True if t.is_bool else 3 if t.is_integer else 1.5
    yield sample(t(3, 4), (1, 2))
    yield sample(t(3, 4), [0, 1, 2, 0], value)
    yield sample(t(3, 4), (-1, 0), value)
    yield sample(t(2, 3, 4), (1, -2, -1, 1))
    yield sample(t(3, 4), (), value, note="none")
    yield sample(t(), (), kind="0-d")
    yield sample(t(0, 2), (1, 1, 1, 0), value, kind="zero-size")
    yield sample(t(1), (0, 1), kind="length-1")
    yield sample(t(1023), (5, 7), value, kind="large")


@mistakes("constant_pad_nd")
def no_borders(t: Maker) -> Iterator[Sample]:
    """Yield an odd number of amounts, too many amounts, and a removal of more elements than exist."""
    yield sample(t(2, 3), (1,), note="odd")
    yield sample(t(3), (1, 1, 1, 1), note="more than dims")
    yield sample(t(3), (-2, -2), note="cut off")
