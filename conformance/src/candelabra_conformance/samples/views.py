"""Samples of views with other shapes and orders, and of their copies."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("detach", "alias", "clone", "alias_copy", "detach_copy")
def as_it_is(t: Maker) -> Iterator[Sample]:
    """Yield any shape."""
    yield sample(t(3, 5))
    yield sample(t(7))
    yield sample(t(2, 3, 1, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(2, 0, 3), kind="zero-size")
    yield sample(t(1, 1), kind="length-1")
    yield sample(t(1023), kind="large")


@inputs("permute", "permute_copy")
def in_another_order(t: Maker) -> Iterator[Sample]:
    """Yield every permutation of three dims except the identity, and some of other ranks."""
    yield sample(t(3, 5), (1, 0))
    for dims in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        yield sample(t(2, 3, 4), dims)
    yield sample(t(2, 3, 2, 5), (3, 0, 2, 1))
    yield sample(t(), (), kind="0-d")
    yield sample(t(2, 0, 3), (2, 0, 1), kind="zero-size")
    yield sample(t(1, 3), (1, 0), kind="length-1")
    yield sample(t(129, 65), (1, 0), kind="large")


@inputs("transpose", "swapaxes", "transpose_copy")
def two_dims_swapped(t: Maker) -> Iterator[Sample]:
    """Yield adjacent dims, distant dims, and equal dims, counted from either end."""
    yield sample(t(3, 5), 0, 1)
    yield sample(t(2, 3, 4), 0, -1)
    yield sample(t(2, 3, 4), -2, 2)
    yield sample(t(2, 3, 4, 2), 1, 3)
    yield sample(t(3, 5), 1, 1)
    yield sample(t(7), -1, 0)
    yield sample(t(), 0, -1, kind="0-d")
    yield sample(t(2, 0), 1, 0, kind="zero-size")
    yield sample(t(3, 1), 0, 1, kind="length-1")


@mistakes("transpose", "swapaxes", "transpose_copy")
def dims_out_of_range(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and dims that are not integers."""
    yield sample(t(2, 3), 0, 2, note="out of range")
    yield sample(t(2, 3), -3, 0, note="out of range")
    yield sample(t(), 0, 1, note="out of range")
    yield sample(t(2, 3), 0, None, note="no integer")


@inputs("t", "t_copy")
def transposed_matrices(t: Maker) -> Iterator[Sample]:
    """Yield matrices, and vectors and 0-d tensors, which do not change."""
    yield sample(t(3, 5))
    yield sample(t(7))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1, 4), kind="length-1")


@mistakes("t", "t_copy")
def more_than_a_matrix(t: Maker) -> Iterator[Sample]:
    """Yield tensors with more than two dims, which ``t`` does not accept."""
    yield sample(t(2, 3, 4))
    yield sample(t(1, 1, 2, 2))


@inputs("expand", "broadcast_to", "expand_copy")
def repeated(t: Maker) -> Iterator[Sample]:
    """Yield dims of size 1, new leading dims, both, neither, and expansion to no elements."""
    yield sample(t(3, 1), (3, 4))
    yield sample(t(3), (2, 3))
    yield sample(t(2, 1, 3, 1), (2, 5, 3, 2))
    yield sample(t(1, 3), (2, 4, 3))
    yield sample(t(2, 3), (2, 3))
    yield sample(t(), (2, 3), kind="0-d")
    yield sample(t(), (), kind="0-d")
    yield sample(t(2, 1), (2, 0), kind="zero-size")
    yield sample(t(0, 1), (0, 3), kind="zero-size")
    yield sample(t(1), (1,), kind="length-1")
    yield sample(t(1), (1023,), kind="large")


@inputs("expand_copy")
def repeated_implicitly(t: Maker) -> Iterator[Sample]:
    """Yield ``implicit``, which has no effect."""
    yield sample(t(3, 1), (3, 4), implicit=True)


@mistakes("expand", "broadcast_to", "expand_copy")
def sizes_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield sizes other than 1 to expand, and fewer dims."""
    yield sample(t(2, 3), (3, 3), note="not 1")
    yield sample(t(2, 3), (3,), note="fewer dims")
    yield sample(t(3), (3, 2), note="the last dim")
    yield sample(t(2, 3), (2, 0), note="nothing of something")
    yield sample(t(2), "3", note="no shape")


@inputs("view", "view_copy")
def another_shape(t: Maker) -> Iterator[Sample]:
    """Yield dims to split, in any layout, and dims to join, in contiguous memory."""
    yield sample(t(4, 6), (2, 2, 3, 2))
    yield sample(t(12), (3, 4))
    yield sample(t(3, 5), (3, 1, 5))
    yield sample(t(2, 3), (2, 3))
    yield sample(t(), (1, 1), kind="0-d")
    yield sample(t(), (), kind="0-d")
    yield sample(t(2, 0, 3), (0, 7), kind="zero-size")
    yield sample(t(1), (), kind="length-1")
    yield sample(t(1, 3, 1), (3,), kind="length-1")
    yield sample(t(4, 6), (2, 12), layouts=("contiguous",), note="across dims")
    yield sample(t(2, 3, 2), (12,), layouts=("contiguous",), note="flattened")
    yield sample(t(33, 31), (1023,), kind="large", note="flattened")


@mistakes("view", "view_copy")
def another_count(t: Maker) -> Iterator[Sample]:
    """Yield shapes with another number of elements."""
    yield sample(t(2, 3), (4, 2), note="more elements")
    yield sample(t(2, 3), (5,), note="fewer elements")
    yield sample(t(2, 3), (), note="a number of six")
    yield sample(t(2, 3), (2.0, 3), note="no integer")


@inputs("unsqueeze", "unsqueeze_copy")
def one_dim_more(t: Maker) -> Iterator[Sample]:
    """Yield the new dim at the start, in the middle, and at the end."""
    yield sample(t(3, 5), 0)
    yield sample(t(3, 5), 1)
    yield sample(t(3, 5), -1)
    yield sample(t(2, 3, 4), 3)
    yield sample(t(), 0, kind="0-d")
    yield sample(t(2, 0), 1, kind="zero-size")
    yield sample(t(1), 1, kind="length-1")


@inputs("squeeze", "squeeze_copy")
def dims_less(t: Maker) -> Iterator[Sample]:
    """Yield one dim of size 1, several, and none."""
    yield sample(t(3, 1, 5), 1)
    yield sample(t(1, 3, 1, 2))
    yield sample(t(1, 3, 1, 2), (0, -2))
    yield sample(t(1, 3, 1, 2), 2)
    yield sample(t(2, 1, 3), (0, 1), note="one of another size")
    yield sample(t(1, 3), (0,))
    yield sample(t(3, 1), (1,))
    yield sample(t(2, 3), ())
    yield sample(t(), (), kind="0-d")
    yield sample(t(0, 1), (1,), kind="zero-size")
    yield sample(t(1, 1), (0, 1), kind="length-1")


@mistakes("unsqueeze", "unsqueeze_copy", "squeeze", "squeeze_copy")
def dims_out_of_bounds(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and dims that are not integers."""
    yield sample(t(2, 1), 3, note="out of range")
    yield sample(t(2, 1), -4, note="out of range")
    yield sample(t(2, 1), 0.5, note="no integer")


@mistakes("permute", "permute_copy")
def no_permutation(t: Maker) -> Iterator[Sample]:
    """Yield a duplicate dim, a missing dim, and a dim out of range."""
    yield sample(t(2, 3), (0, 0), note="twice")
    yield sample(t(2, 3), (0,), note="too few")
    yield sample(t(2, 3), (0, 2), note="out of range")


INDICES = (
    ((4, 5), (1,)),
    ((4, 5), (slice(1, 3, 1),)),
    ((4, 5), (slice(0, 4, 2), 2)),
    ((4, 5), (slice(0, 4, 1), slice(1, 5, 3))),
    ((3, 4, 5), (2, slice(0, 4, 1), 1)),
    ((3, 4), (None, 1, None, slice(1, 4, 2))),
    ((3, 2, 4, 2), (slice(1, 3, 1), 0, slice(0, 3, 2))),
    ((7,), (slice(0, 7, 1),)),
)
"""Shapes and canonical indices: non-negative integers, slices with start, stop and a positive step."""
EMPTY = (((3, 4), (slice(2, 2, 1),)), ((0, 3), (slice(0, 0, 1), 1)), ((2, 0), (1,)))


@inputs("basic_index")
def by_integers_and_slices(t: Maker) -> Iterator[Sample]:
    """Yield ints, slices and None."""
    for shape, index in INDICES:
        yield sample(t(*shape), index)
    for shape, index in EMPTY:
        yield sample(t(*shape), index, kind="zero-size")
    yield sample(t(), (), kind="0-d")
    yield sample(t(), (None,), kind="0-d")
    yield sample(t(1, 3), (0,), kind="length-1")
    yield sample(t(1023, 3), (slice(5, 1000, 7), 2), kind="large")


@mistakes("basic_index")
def out_of_bounds(t: Maker) -> Iterator[Sample]:
    """Yield integers out of bounds, and indices of a 0-d tensor."""
    yield sample(t(2, 3), (2,))
    yield sample(t(2, 3), (0, -4))
    yield sample(t(0), (0,))
    yield sample(t(), (0,))
    yield sample(t(), (slice(0, 1, 1),))


@inputs("basic_index_adjoint", "basic_index_scatter")
def written_by_index(t: Maker) -> Iterator[Sample]:
    """Yield the same indices, to write to."""
    for table, kind in ((INDICES, "ordinary"), (EMPTY, "zero-size")):
        for shape, index in table:
            base = t(*shape)
            part = t(*base[index].shape)
            first = part if t.operator == "basic_index_adjoint" else base
            yield sample(first, shape if first is part else part, index, kind=kind)
    first, second = (t(3), (2, 3)) if t.operator == "basic_index_adjoint" else (t(2, 3), t(3))
    yield sample(first, second, (slice(0, 1, 1),), kind="length-1", note="broadcast", gradient=False)
    number = t()
    yield sample(number, () if t.operator == "basic_index_adjoint" else t(), (), kind="0-d")


@inputs("copied")
def copied_from(t: Maker) -> Iterator[Sample]:
    """Yield sources of the same shape, and sources that broadcast."""
    yield sample(t(3, 5), t(3, 5))
    yield sample(t(3, 5), t(5))
    yield sample(t(2, 3, 4), t(3, 1))
    yield sample(t(2, 3), t())
    yield sample(t(), t(), kind="0-d")
    yield sample(t(2, 0), t(2, 1), kind="zero-size")
    yield sample(t(1), t(1), kind="length-1")
    yield sample(t(33, 31), t(33, 1), kind="large")


@mistakes("copied")
def larger_source(t: Maker) -> Iterator[Sample]:
    """Yield sources that do not broadcast to the target."""
    yield sample(t(2, 3), t(4))
    yield sample(t(3), t(2, 3))
    yield sample(t(), t(2))
    yield sample(t(3), 1.0, note="a number")


@inputs("filled")
def filled_with(t: Maker) -> Iterator[Sample]:
    """Yield a number of the dtype's kind, and a 0-d tensor."""
    number = True if t.is_bool else 3 if t.is_integer else 1.5 if t.is_floating else 1.5 - 2j
    yield sample(t(3, 5), number)
    yield sample(t(3, 5), t())
    yield sample(t(2, 3, 2), 0)
    yield sample(t(7), t())
    yield sample(t(), number, kind="0-d")
    yield sample(t(), t(), kind="0-d")
    yield sample(t(0, 3), number, kind="zero-size")
    yield sample(t(1), t(), kind="length-1")
    yield sample(t(1023), number, kind="large")


@mistakes("filled")
def filled_with_many(t: Maker) -> Iterator[Sample]:
    """Yield several values, and a string."""
    yield sample(t(2, 3), t(2), note="several")
    yield sample(t(2, 3), "1", note="text")
