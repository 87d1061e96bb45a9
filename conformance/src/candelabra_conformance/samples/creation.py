"""Operators that make tensors of numbers, and those that make a tensor anew in another dtype or place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from candelabra.dtypes import ALL, FLOATING, INTEGER, complex128, dtype, float32, float64

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import defined, inputs, mistakes, only, special
from candelabra_conformance.samples.sample import HERE, Sample, sample

only(lambda d: INTEGER <= d.category <= FLOATING, "arange")
only(lambda d: d.category >= INTEGER, "linspace")
SHAPES = (
    ((3, 5), "ordinary"),
    ((7,), "ordinary"),
    ((2, 3, 2, 2), "ordinary"),
    ((), "0-d"),
    ((0,), "zero-size"),
    ((2, 0, 3), "zero-size"),
    ((1, 1), "length-1"),
    ((1023,), "large"),
)


@inputs("full")
def filled_with_a_number(t: Maker) -> Iterator[Sample]:
    """Every shape; numbers of the dtype's own kind and of lower ones."""
    own = True if t.is_bool else 3 if t.is_integer else 1.5 if t.is_floating else 1.5 - 2j
    for shape, kind in SHAPES:
        yield sample(shape, own, dtype=t.dtype, device=HERE, kind=kind)
    for value in (0, 1, False, True):
        yield sample((2, 3), value, dtype=t.dtype, device=HERE)
    yield sample([2, 3], own, dtype=t.dtype, device=HERE, note="a list")


@mistakes("full")
def no_such_shape(t: Maker) -> Iterator[Sample]:
    """Sizes are integers from 0."""
    yield sample((2, -1), 1, dtype=t.dtype, device=HERE, note="negative")
    yield sample((2.5,), 1, dtype=t.dtype, device=HERE, note="a fraction")
    yield sample("2", 1, dtype=t.dtype, device=HERE, note="text")
    yield sample((2,), 1, dtype="float", device=HERE, note="no dtype")


@special("full")
def numbers_at_the_edge(t: Maker) -> Iterator[Sample]:
    """Infinities, NaN, -0.0, the ends of the range."""
    if t.is_floating or t.is_complex:
        for value in (float("inf"), -float("inf"), float("nan"), -0.0):
            yield sample((3,), value, dtype=t.dtype, device=HERE)
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        for end in (int(limits.min), int(limits.max)):
            yield sample((3,), end, dtype=t.dtype, device=HERE)


@inputs("arange")
def ranges(t: Maker) -> Iterator[Sample]:
    """Up, down, in fractions; blocks and what is left of them; none, one."""
    if not defined(t.operator, t.dtype):
        return
    yield sample(0, 1, 7, dtype=t.dtype, device=HERE)
    yield sample(3, 2, 17, dtype=t.dtype, device=HERE)
    yield sample(20, -1, 9, dtype=t.dtype, device=HERE)
    if t.is_floating:
        yield sample(0.5, 0.25, 33, dtype=t.dtype, device=HERE)
        yield sample(1, -0.1, 20, dtype=t.dtype, device=HERE)
    yield sample(5, 3, 0, dtype=t.dtype, device=HERE, kind="zero-size")
    yield sample(5, 3, 1, dtype=t.dtype, device=HERE, kind="length-1")
    if t.dtype.itemsize > 2:
        yield sample(0, 1, 10_001, dtype=t.dtype, device=HERE, kind="large")


@inputs("linspace")
def evenly_spaced(t: Maker) -> Iterator[Sample]:
    """Up, down, on one spot. (Rounding is to the larger end: where many steps cross 0 no digit is due.)"""
    if not defined(t.operator, t.dtype):
        return
    yield sample(0, 10, 11, dtype=t.dtype, device=HERE)
    yield sample(12, 3, 4, dtype=t.dtype, device=HERE)
    yield sample(2, 2, 5, dtype=t.dtype, device=HERE)
    if t.is_floating or t.is_complex:
        yield sample(-1.5, 2.0, 17, dtype=t.dtype, device=HERE)
        yield sample(0.1, 0.7, 33, dtype=t.dtype, device=HERE)
    if t.is_complex:
        yield sample(1j, 2 - 1j, 5, dtype=t.dtype, device=HERE)
    yield sample(0, 1, 0, dtype=t.dtype, device=HERE, kind="zero-size")
    yield sample(3, 9, 1, dtype=t.dtype, device=HERE, kind="length-1")
    if t.is_floating:
        yield sample(1, 3, 1023, dtype=t.dtype, device=HERE, kind="large")


@inputs("eye")
def identities(t: Maker) -> Iterator[Sample]:
    """Square, wide, high, empty ones."""
    for n, m, kind in (
        (3, 3, "ordinary"), (2, 5, "ordinary"), (5, 2, "ordinary"), (17, 9, "ordinary"), (0, 0, "zero-size"),
        (0, 3, "zero-size"), (3, 0, "zero-size"), (1, 1, "length-1"), (1, 4, "length-1"), (129, 257, "large"),
    ):  # fmt: skip
        yield sample(n, m, dtype=t.dtype, device=HERE, kind=kind)


@mistakes("arange", "linspace", "eye")
def no_such_dtype(t: Maker) -> Iterator[Sample]:
    """A dtype is a dtype, and a device is one that exists."""
    first = (3, 3) if t.operator == "eye" else (0, 1, 3)
    yield sample(*first, dtype="int", device=HERE, note="text for a dtype")
    yield sample(*first, dtype=t.dtype, device="no such device", note="no such device")


@inputs("new_full")
def filled_like_an_operand(t: Maker) -> Iterator[Sample]:
    """In the operand's dtype and in another, of every kind of shape."""
    for shape, kind in SHAPES:
        yield sample(t(*shape[:1]), shape, 1, kind=kind)
    yield sample(t(2), (2, 3), True)
    yield sample(t(2), (2, 3), 3, dtype=t.of("int64").dtype)


@inputs("new_arange")
def ranges_like_an_operand(t: Maker) -> Iterator[Sample]:
    """In the operand's dtype and in another."""
    own = {} if defined("arange", t.dtype) else {"dtype": t.of("int64").dtype}
    yield sample(t(2), 0, 1, 7, **own)
    yield sample(t(3), 3, 2, 5, dtype=t.of("int64").dtype)
    yield sample(t(), 5, 3, 1, kind="length-1", **own)
    yield sample(t(2), 5, 3, 0, kind="zero-size", **own)


@inputs("new_eye")
def identities_like_an_operand(t: Maker) -> Iterator[Sample]:
    """In the operand's dtype and in another."""
    yield sample(t(2), 3, 3)
    yield sample(t(2), 2, 5, dtype=t.of("int64").dtype)
    yield sample(t(1), 1, 1, kind="length-1")
    yield sample(t(2), 0, 3, kind="zero-size")


def castable(t: Maker, target: dtype, *shape: int) -> Array:
    """Numbers that the target holds after its fraction is cut off: C leaves all others open."""
    if target.category <= INTEGER and not target.is_signed and t.dtype.category >= FLOATING:
        return t(*shape, low=0.1, high=7.0)
    return t(*shape)


def loses_nothing(t: Maker, target: dtype) -> bool:
    """Whether finite differences of float64 or complex128 make sense of the result."""
    return target is t.dtype or target is complex128 or (target is float64 and not t.is_complex)


@inputs("cast")
def to_each_dtype(t: Maker) -> Iterator[Sample]:
    """Every dtype to every other one, and to itself: floats cut off, integers wrap around, complex lose a part."""
    for target in ALL:
        gradient = loses_nothing(t, target)
        yield sample(castable(t, target, 3, 5), dtype=target, note=target.name, gradient=gradient)
        yield sample(castable(t, target), dtype=target, kind="0-d", note=target.name, gradient=gradient)
        yield sample(t(2, 0), dtype=target, kind="zero-size", note=target.name, gradient=False)
        yield sample(castable(t, target, 1), dtype=target, kind="length-1", note=target.name, gradient=gradient)
        yield sample(castable(t, target, 1023), dtype=target, kind="large", note=target.name, gradient=False)


@mistakes("cast")
def to_no_dtype(t: Maker) -> Iterator[Sample]:
    """What is no dtype."""
    yield sample(t(3), dtype="float32")
    yield sample(t(3), dtype=3)


@special("cast")
def at_the_edge(t: Maker) -> Iterator[Sample]:
    """Rounding to nearest even, overflow to infinity, NaN and -0.0 between floating dtypes; to bool, all but 0 is True;
    integers keep their low bits. (Floats that an integer dtype cannot hold are left open by C and by PyTorch.)"""
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        ends = np.array([limits.min, limits.max, limits.max - 1, 0, 1], t.numpy)
        for target in ALL:
            yield sample(ends, dtype=target, note=target.name)
    if t.is_floating:
        inf, nan = float("inf"), float("nan")
        limit = 3.0e38 if t.dtype.itemsize >= 4 or t.dtype.name == "bfloat16" else 65504.0
        steps = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-24, 1 + 3 * 2.0**-24]
        values = t.array([0.0, -0.0, inf, -inf, nan, limit, -limit, 2.0**-14, 2.0**-24, *steps])
        for target in ALL:
            if target.category >= FLOATING or target.name == "bool":
                yield sample(values, dtype=target, note=target.name)


@inputs("moved")
def to_a_device(t: Maker) -> Iterator[Sample]:
    """To the device itself, in its own dtype and another."""
    for shape, kind in SHAPES:
        yield sample(t(*shape), HERE, kind=kind)
    yield sample(t(3, 5), HERE, dtype=t.dtype)
    if not t.is_complex:
        yield sample(castable(t, float32, 2, 3), target=HERE, dtype=float32, gradient=t.dtype is float32)


@mistakes("moved")
def to_no_device(t: Maker) -> Iterator[Sample]:
    """A device that does not exist, or is none."""
    yield sample(t(3), "no such device")
    yield sample(t(3), 1.5)
