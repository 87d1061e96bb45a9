"""Samples of functions that create tensors of a shape: constants, ranges, triangle indices, and those like another
tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.literals import host_list
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import HERE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


def chosen(t: Maker) -> dict[str, Any]:
    """Return the keyword that requests the dtype, or none for the default dtype."""
    return {} if t.dtype.name == "float32" else {"dtype": t.dtype}


def number(t: Maker) -> Any:
    """Return a number of the dtype's own kind."""
    return True if t.is_bool else 3 if t.is_integer else 1.5 if t.is_floating else 1.5 - 2j


# -- filled tensors ---------------------------------------------------------------------------------------------------
@inputs("zeros", "ones")
def filled(t: Maker) -> Iterator[Sample]:
    """Yield separate sizes, a sequence, and no sizes."""
    yield sample(2, 3, **chosen(t))
    yield sample((4, 1, 2), dtype=t.dtype)
    yield sample([5], dtype=t.dtype)
    yield sample((), kind=ZERO_DIM, **chosen(t))
    yield sample(2, 0, 3, kind=ZERO_SIZE, dtype=t.dtype)


@mistakes("zeros", "ones", "empty")
def no_shape(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are negative or not integers."""
    yield sample(2, -1, note="negative")
    yield sample((2.5,), note="a fraction")
    yield sample("2", note="text")


def unspecified_in(t: Maker) -> bool:
    """Return whether uninitialised memory may have any content; a byte of a bool must be 0 or 1."""
    return not t.is_bool


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Return the shape, the only defined value of a tensor with unspecified content."""
    return tuple(tensor.shape)


@inputs("empty")
def unspecified(t: Maker) -> Iterator[Sample]:
    """Yield separate sizes, a sequence, and no sizes."""
    if unspecified_in(t):
        yield sample(2, 3, of=shape_of, **chosen(t))
        yield sample((4, 1), dtype=t.dtype, of=shape_of)
        yield sample((), kind=ZERO_DIM, of=shape_of, **chosen(t))


@inputs("empty_strided")
def unspecified_with_steps(t: Maker) -> Iterator[Sample]:
    """Yield strides in C order, in another order, and with gaps."""
    if unspecified_in(t):
        for stride in ((3, 1), (1, 2), (7, 2)):
            yield sample((2, 3), stride, of=shape_of, **chosen(t))


@mistakes("empty_strided")
def no_steps(t: Maker) -> Iterator[Sample]:
    """Yield a number of strides other than that of sizes, and negative strides."""
    yield sample((2, 3), (1,), note="too few")
    yield sample((2, 3), (3, -1), note="negative")


@inputs("empty_permuted")
def unspecified_in_an_order(t: Maker) -> Iterator[Sample]:
    """Yield each order of the dims."""
    if unspecified_in(t):
        for order in ((0, 1, 2), (2, 0, 1)):
            yield sample((2, 3, 4), order, of=shape_of, **chosen(t))


@mistakes("empty_permuted")
def no_order(t: Maker) -> Iterator[Sample]:
    """Yield orders in which a dim is missing, out of range or duplicate."""
    yield sample((2, 3), (0,), note="too few")
    yield sample((2, 3), (0, 2), note="no such dim")
    yield sample((2, 3), (0, 0), note="twice")


@inputs("zeros_like", "ones_like")
def like_another(t: Maker) -> Iterator[Sample]:
    """Yield tensors whose dtype is used."""
    yield sample(t(2, 3))
    yield sample(t(4, 1, 2))
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(2, 0), kind=ZERO_SIZE)


@inputs("empty_like")
def unspecified_like_another(t: Maker) -> Iterator[Sample]:
    """Yield tensors whose shape is used."""
    if unspecified_in(t):
        yield sample(t(2, 3), of=shape_of, gradient=False)
        yield sample(t(), kind=ZERO_DIM, of=shape_of, gradient=False)


@inputs("full_like")
def filled_like_another(t: Maker) -> Iterator[Sample]:
    """Yield a number of the dtype's kind, and one that is cast."""
    yield sample(t(2, 3), number(t))
    yield sample(t(4), 1)
    yield sample(t(), number(t), kind=ZERO_DIM)
    yield sample(t(2, 0), True, kind=ZERO_SIZE)


# -- methods that make a tensor like this one -------------------------------------------------------------------------
@inputs("Tensor.new_zeros", "Tensor.new_ones")
def new_filled(t: Maker) -> Iterator[Sample]:
    """Yield separate sizes and a sequence, with the tensor's dtype and another."""
    yield sample(t(2), 3, 4, gradient=False)
    yield sample(t(2), (3, 4), gradient=False)
    yield sample(t(2), (), kind=ZERO_DIM, gradient=False)
    yield sample(t(2), (3,), dtype=t.of("int64").dtype, note="another dtype", gradient=False)


@inputs("Tensor.new_empty")
def new_unspecified(t: Maker) -> Iterator[Sample]:
    """Yield separate sizes and a sequence."""
    if unspecified_in(t):
        yield sample(t(2), 3, 4, of=shape_of, gradient=False)
        yield sample(t(2), (3, 4), of=shape_of, gradient=False)


@inputs("Tensor.new_empty_strided")
def new_unspecified_with_steps(t: Maker) -> Iterator[Sample]:
    """Yield strides in C order and in another order."""
    if unspecified_in(t):
        for stride in ((3, 1), (1, 2)):
            yield sample(t(2), (2, 3), stride, of=shape_of, gradient=False)


@inputs("new_full_on_device")
def new_of_one_number(t: Maker) -> Iterator[Sample]:
    """Yield the tensor's dtype and another."""
    yield sample(t(2), (3, 4), number(t), gradient=False)
    yield sample(t(2), (), number(t), kind=ZERO_DIM, gradient=False)
    yield sample(t(2), (3,), 2, dtype=t.of("int64").dtype, note="another dtype", gradient=False)
    yield sample(t(2), (3,), number(t), device=HERE, gradient=False)


@inputs("Tensor.new")
def new_of_values(t: Maker) -> Iterator[Sample]:
    """Yield values in nested lists, and sizes, whose content is unspecified."""
    yield sample(t(2), host_list(t(2, 3)), gradient=False)
    if unspecified_in(t):
        yield sample(t(2), 2, 3, of=shape_of, gradient=False)


# -- with an inferred dtype -------------------------------------------------------------------------------------------
@inputs("full_inferred")
def filled_with_its_kind(t: Maker) -> Iterator[Sample]:
    """Yield the dtype of the number, and another."""
    if t.dtype.name in ("bool", "int64", "float32", "complex64"):
        yield sample((2, 3), number(t))
        yield sample((), number(t), kind=ZERO_DIM)
        yield sample([2, 0], number(t), kind=ZERO_SIZE)
    yield sample((4,), 1, dtype=t.dtype)
    yield sample((4,), fill_value=number(t), dtype=t.dtype, device=HERE)


@mistakes("full_inferred")
def not_filled(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are negative or not integers."""
    yield sample((2, -1), 1, note="negative")
    yield sample("2", 1, note="text")


@inputs("arange_to_end")
def ranges_to_their_end(t: Maker) -> Iterator[Sample]:
    """Yield ascending and descending ranges, the end only, and an end that is a multiple of the step."""
    if t.is_bool or t.is_complex:
        return
    yield sample(5, **({} if t.dtype.name == "int64" else {"dtype": t.dtype}))
    yield sample(2, 7, dtype=t.dtype)
    yield sample(0, 6, 2, dtype=t.dtype)
    yield sample(3, 3, kind=ZERO_SIZE, dtype=t.dtype)
    yield sample(0, 3, 5, kind=LENGTH_ONE, dtype=t.dtype)
    if t.dtype.is_signed:
        yield sample(3, -4, -2, dtype=t.dtype)
    if t.is_floating:
        yield sample(0.5, 2.0, 0.25, **chosen(t))


@mistakes("arange_to_end")
def no_range_to_its_end(t: Maker) -> Iterator[Sample]:
    """Yield a step in the wrong direction, infinite limits, bools and complex numbers."""
    yield sample(0, 5, 0, note="no step")
    yield sample(0, 5, -1, note="away from the end")
    yield sample(0, float("inf"), note="no end")
    yield sample(0, 5, dtype=t.of("bool").dtype, note="bools")
    yield sample(0, 2j, note="complex")


@inputs("linspace_inferred")
def evenly_spaced(t: Maker) -> Iterator[Sample]:
    """Yield ascending, descending and constant numbers, none and one."""
    if t.is_bool:
        return
    yield sample(0, 10, 11, **chosen(t))
    yield sample(12, 3, 4, dtype=t.dtype)
    yield sample(0, 1, 0, kind=ZERO_SIZE, dtype=t.dtype)
    yield sample(3, 9, 1, kind=LENGTH_ONE, dtype=t.dtype)
    if t.is_complex:
        yield sample(1j, 2 - 1j, 5, dtype=t.dtype)
    if t.is_floating:
        yield sample(-1.5, 2.0, 17, **chosen(t))


@mistakes("linspace_inferred")
def not_evenly_spaced(t: Maker) -> Iterator[Sample]:
    """Yield a negative number of steps, and limits with dims."""
    yield sample(0, 1, -1, note="negative")
    yield sample(0, 1, 2.5, note="a fraction")
    yield sample(0, t.of("float32")(2), 3, note="an end with dims")


@inputs("eye_inferred")
def identities(t: Maker) -> Iterator[Sample]:
    """Yield square, wide, high and empty matrices."""
    yield sample(3, **chosen(t))
    yield sample(2, 4, dtype=t.dtype)
    yield sample(4, 2, **chosen(t))
    yield sample(0, 3, kind=ZERO_SIZE, dtype=t.dtype)


@mistakes("eye_inferred")
def no_identity(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are negative or not integers."""
    yield sample(-1, note="negative")
    yield sample(2.5, note="a fraction")


# -- ranges and triangles ---------------------------------------------------------------------------------------------
@inputs("range")
def ranges_with_their_end(t: Maker) -> Iterator[Sample]:
    """Yield ascending and descending ranges, ends that are multiples of the step and ends that are not, and the end
    only."""
    if t.is_bool or t.is_complex:
        return
    yield sample(0, 6, 2, dtype=t.dtype)
    yield sample(0, 5, 2, dtype=t.dtype)
    yield sample(4, **chosen(t))
    if t.dtype.is_signed:
        yield sample(3, -3, -2, dtype=t.dtype)
    if t.is_floating:
        yield sample(0.5, 2.0, 0.25, **chosen(t))


@mistakes("range")
def no_range(t: Maker) -> Iterator[Sample]:
    """Yield a step in the wrong direction, and infinite limits."""
    yield sample(0, 5, 0, note="no step")
    yield sample(0, 5, -1, note="away from the end")
    yield sample(0, float("inf"), note="no end")


@inputs("logspace")
def powers(t: Maker) -> Iterator[Sample]:
    """Yield powers of 10 and of 2, one and none. Integers have powers of 2, which every device computes exactly."""
    if t.is_bool or (t.is_integer and t.dtype.itemsize == 1):
        return
    yield sample(0, 5, 6, 2.0, dtype=t.dtype)
    yield sample(0, 1, 0, kind=ZERO_SIZE, dtype=t.dtype)
    if t.is_floating or t.is_complex:
        yield sample(-1.0, 2.0, 7, **chosen(t))
        yield sample(0.5, 3.0, 1, 3.0, dtype=t.dtype, note="one")


@mistakes("logspace")
def no_steps_between(t: Maker) -> Iterator[Sample]:
    """Yield a negative number of steps, and limits with dims."""
    yield sample(0, 1, -1, note="negative")
    yield sample(t.of("float32")(2), 1, 3, note="a start with dims")


@inputs("tril_indices", "triu_indices")
def triangles(t: Maker) -> Iterator[Sample]:
    """Yield wide and high triangles, several diagonals, and no elements."""
    if t.dtype.name in ("int64", "int32"):
        kind = {} if t.dtype.name == "int64" else {"dtype": t.dtype}
        for rows, columns, offset in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 5, -2)):
            yield sample(rows, columns, offset, **kind)
        yield sample(4, 3, **kind)
        yield sample(0, 3, kind=ZERO_SIZE, **kind)


@mistakes("tril_indices", "triu_indices")
def no_triangle(t: Maker) -> Iterator[Sample]:
    """Yield a negative size, and a floating dtype."""
    yield sample(-1, 3, note="negative")
    yield sample(3, 3, dtype=t.of("float32").dtype, note="floating indices")
