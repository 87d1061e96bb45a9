"""Samples of splitting tensors along a dim."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("select", "select_copy")
def one_slice(t: Maker) -> Iterator[Sample]:
    """Yield any dim, counted from either end."""
    yield sample(t(3, 5), 0, 1)
    yield sample(t(3, 5), 1, -2)
    yield sample(t(2, 3, 4), -1, 3)
    yield sample(t(7), 0, -7)
    yield sample(t(0, 3), 1, 2, kind="zero-size")
    yield sample(t(1, 3), 0, 0, kind="length-1")
    yield sample(t(1023, 3), 1, 1, kind="large")


@mistakes("select", "select_copy")
def no_slice(t: Maker) -> Iterator[Sample]:
    """Yield indices and dims out of range, and a 0-d tensor."""
    yield sample(t(2, 3), 0, 2, note="out of range")
    yield sample(t(2, 3), 1, -4, note="out of range")
    yield sample(t(2, 3), 2, 0, note="no such dim")
    yield sample(t(), 0, 0, note="no dims")
    yield sample(t(2, 3), 0, 0.5, note="no integer")


@inputs("narrow", "narrow_copy")
def some_slices(t: Maker) -> Iterator[Sample]:
    """Yield slices from the start, from the end, none, and all."""
    yield sample(t(5, 3), 0, 1, 2)
    yield sample(t(3, 5), 1, -3, 3)
    yield sample(t(2, 3, 4), -1, 0, 4)
    yield sample(t(7), 0, 6, 1)
    yield sample(t(4), 0, 4, 0, kind="zero-size")
    yield sample(t(1, 3), 0, 0, 1, kind="length-1")
    yield sample(t(1023), 0, 5, 1000, kind="large")


@mistakes("narrow", "narrow_copy")
def slices_out_of_range(t: Maker) -> Iterator[Sample]:
    """Yield starts and ends out of range, a negative length, and a 0-d tensor."""
    yield sample(t(3), 0, 4, 0, note="start")
    yield sample(t(3), 0, -4, 1, note="start")
    yield sample(t(3), 0, 2, 2, note="end")
    yield sample(t(3), 0, 0, -1, note="length")
    yield sample(t(), 0, 0, 1, note="no dims")


@inputs("slice_copy")
def every_so_many(t: Maker) -> Iterator[Sample]:
    """Yield default ends, ends beyond the size, and steps."""
    yield sample(t(5, 3))
    yield sample(t(5, 3), 0, 1, 4)
    yield sample(t(3, 7), 1, None, -1, 2)
    yield sample(t(2, 3, 4), -1, -3, 100)
    yield sample(t(4), 0, 3, 1, kind="zero-size")
    yield sample(t(1), 0, kind="length-1")
    yield sample(t(1023), 0, 5, None, 7, kind="large")


@mistakes("slice_copy")
def no_such_slices(t: Maker) -> Iterator[Sample]:
    """Yield the step 0, a negative step, and a 0-d tensor."""
    yield sample(t(3), 0, 0, 2, 0, note="no step")
    yield sample(t(3), 0, 2, 0, -1, note="a step back")
    yield sample(t(), note="no dims")


@inputs("unbind", "unbind_copy")
def all_slices(t: Maker) -> Iterator[Sample]:
    """Yield any dim."""
    yield sample(t(3, 2))
    yield sample(t(2, 3, 4), -1)
    yield sample(t(4), dim=0)
    yield sample(t(0, 3), 1, kind="zero-size")


@mistakes("unbind", "unbind_copy")
def nothing_to_unbind(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, and a dim out of range."""
    yield sample(t(), note="no dims")
    yield sample(t(2, 3), 2, note="out of range")


@inputs("split", "split_copy")
def parts_of_a_size_or_of_sizes(t: Maker) -> Iterator[Sample]:
    """Yield one size for all chunks, of which the last may be smaller, and a size for each chunk."""
    yield sample(t(5, 2), 2)
    yield sample(t(2, 6), 3, 1)
    yield sample(t(5), [2, 0, 3])
    yield sample(t(2, 4), (1, 3), -1)
    yield sample(t(0, 3), 2, kind="zero-size")


@mistakes("split", "split_copy")
def sizes_that_do_not_split(t: Maker) -> Iterator[Sample]:
    """Yield negative sizes, sizes with a wrong sum, and a 0-d tensor."""
    yield sample(t(3), -1, note="negative")
    yield sample(t(3), 0, note="parts of nothing")
    yield sample(t(3), [1, 1], note="sum")
    yield sample(t(), 1, note="no dims")


@inputs("split_with_sizes", "split_with_sizes_copy")
def parts_of_sizes(t: Maker) -> Iterator[Sample]:
    """Yield sizes with the correct sum."""
    yield sample(t(5, 2), [2, 0, 3])
    yield sample(t(2, 4), (1, 3), -1)
    yield sample(t(0, 3), [1, 2], 1, kind="zero-size")


@mistakes("split_with_sizes", "split_with_sizes_copy")
def sizes_that_do_not_sum_up(t: Maker) -> Iterator[Sample]:
    """Yield larger, smaller and negative sizes, and a 0-d tensor."""
    yield sample(t(3), [2, 2], note="more")
    yield sample(t(3), [4, -1], note="negative")
    yield sample(t(), [1], note="no dims")


@inputs("unsafe_split")
def parts_of_a_size(t: Maker) -> Iterator[Sample]:
    """Yield the calls of ``split`` with one size."""
    yield sample(t(5, 2), 2)
    yield sample(t(2, 6), 3, 1)
    yield sample(t(0, 3), 2, kind="zero-size")


@inputs("chunk")
def so_many_parts(t: Maker) -> Iterator[Sample]:
    """Yield the requested number of chunks, and fewer."""
    yield sample(t(6, 2), 3)
    yield sample(t(2, 5), 3, -1)
    yield sample(t(5), 4)
    yield sample(t(0, 3), 2, kind="zero-size")


@mistakes("chunk")
def no_parts(t: Maker) -> Iterator[Sample]:
    """Yield the number 0, and a 0-d tensor."""
    yield sample(t(3), 0, note="none")
    yield sample(t(), 1, note="no dims")


@inputs("tensor_split")
def cut_at(t: Maker) -> Iterator[Sample]:
    """Yield a number of chunks, and indices, also negative ones and beyond the end."""
    yield sample(t(7, 2), 3)
    yield sample(t(2, 5), 2, -1)
    yield sample(t(6), [1, 4])
    yield sample(t(6), (2, 2, 9))
    yield sample(t(5), [-2])
    yield sample(t(0, 3), 2, kind="zero-size")


@mistakes("tensor_split")
def not_cut(t: Maker) -> Iterator[Sample]:
    """Yield no chunks, a floating number, and a 0-d tensor."""
    yield sample(t(3), 0, note="no parts")
    yield sample(t(3), 1.5, note="a float")
    yield sample(t(), 1, note="no dims")


@inputs("hsplit", "vsplit", "dsplit")
def cut_as_numpy_cuts(t: Maker) -> Iterator[Sample]:
    """Yield equal chunks, and indices."""
    yield sample(t(2, 4, 6), 2)
    yield sample(t(4, 2, 2), [1])
    if t.operator != "dsplit":
        yield sample(t(4, 6), 2)
    if t.operator == "hsplit":
        yield sample(t(4), 2)
    yield sample(t(2, 2, 0), 1, kind="zero-size")


@mistakes("hsplit", "vsplit", "dsplit")
def not_cut_in_equal_parts(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not divide equally, and too few dims."""
    yield sample(t(3, 3, 3), 2, note="unequal")
    yield sample(t(), 1, note="no dims")
