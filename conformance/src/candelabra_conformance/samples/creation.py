"""Samples of operators that create tensors from numbers, or copy a tensor to another dtype or device."""

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
    """Yield every shape, and numbers of the dtype's own kind and of lower ones."""
    own = True if t.is_bool else 3 if t.is_integer else 1.5 if t.is_floating else 1.5 - 2j
    for shape, kind in SHAPES:
        yield sample(shape, own, dtype=t.dtype, device=HERE, kind=kind)
    for value in (0, 1, False, True):
        yield sample((2, 3), value, dtype=t.dtype, device=HERE)
    yield sample([2, 3], own, dtype=t.dtype, device=HERE, note="a list")


@mistakes("full")
def no_such_shape(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are negative or not integers."""
    yield sample((2, -1), 1, dtype=t.dtype, device=HERE, note="negative")
    yield sample((2.5,), 1, dtype=t.dtype, device=HERE, note="a fraction")
    yield sample("2", 1, dtype=t.dtype, device=HERE, note="text")
    yield sample((2,), 1, dtype="float", device=HERE, note="no dtype")


@special("full")
def numbers_at_the_edge(t: Maker) -> Iterator[Sample]:
    """Yield infinities, NaN, -0.0, a number of many digits, and the limits of the dtype."""
    if t.is_floating or t.is_complex:
        for value in (float("inf"), -float("inf"), float("nan"), -0.0, 0.1):
            yield sample((3,), value, dtype=t.dtype, device=HERE)
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        for end in (int(limits.min), int(limits.max)):
            yield sample((3,), end, dtype=t.dtype, device=HERE)


@inputs("arange")
def ranges(t: Maker) -> Iterator[Sample]:
    """Yield ascending and descending ranges, fractions, sizes with and without a remainder of a block, one number, and
    none."""
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
    """Yield ascending, descending and constant numbers. The dtype's rounding is not defined if many steps cross 0."""
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
    """Yield square, wide, high and empty matrices."""
    for n, m, kind in (
        (3, 3, "ordinary"), (2, 5, "ordinary"), (5, 2, "ordinary"), (17, 9, "ordinary"), (0, 0, "zero-size"),
        (0, 3, "zero-size"), (3, 0, "zero-size"), (1, 1, "length-1"), (1, 4, "length-1"), (129, 257, "large"),
    ):  # fmt: skip
        yield sample(n, m, dtype=t.dtype, device=HERE, kind=kind)


@mistakes("arange", "linspace", "eye")
def no_such_dtype(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not dtypes, and devices that do not exist."""
    first = (3, 3) if t.operator == "eye" else (0, 1, 3)
    yield sample(*first, dtype="int", device=HERE, note="text for a dtype")
    yield sample(*first, dtype=t.dtype, device="no such device", note="no such device")


@inputs("new_full")
def filled_like_an_operand(t: Maker) -> Iterator[Sample]:
    """Yield the operand's dtype and another, for every kind of shape."""
    for shape, kind in SHAPES:
        yield sample(t(*shape[:1]), shape, 1, kind=kind)
    yield sample(t(2), (2, 3), True)
    yield sample(t(2), (2, 3), 3, dtype=t.of("int64").dtype)


@inputs("new_arange")
def ranges_like_an_operand(t: Maker) -> Iterator[Sample]:
    """Yield the operand's dtype and another."""
    own = {} if defined("arange", t.dtype) else {"dtype": t.of("int64").dtype}
    yield sample(t(2), 0, 1, 7, **own)
    yield sample(t(3), 3, 2, 5, dtype=t.of("int64").dtype)
    yield sample(t(), 5, 3, 1, kind="length-1", **own)
    yield sample(t(2), 5, 3, 0, kind="zero-size", **own)


@inputs("new_eye")
def identities_like_an_operand(t: Maker) -> Iterator[Sample]:
    """Yield the operand's dtype and another."""
    yield sample(t(2), 3, 3)
    yield sample(t(2), 2, 5, dtype=t.of("int64").dtype)
    yield sample(t(1), 1, 1, kind="length-1")
    yield sample(t(2), 0, 3, kind="zero-size")


def castable(t: Maker, target: dtype, *shape: int) -> Array:
    """Return numbers whose truncated value the target dtype represents, since C leaves all others undefined."""
    if target.category <= INTEGER and not target.is_signed and t.dtype.category >= FLOATING:
        return t(*shape, low=0.1, high=7.0)
    return t(*shape)


def loses_nothing(t: Maker, target: dtype) -> bool:
    """Return whether finite differences in float64 or complex128 are valid for the result."""
    return target is t.dtype or target is complex128 or (target is float64 and not t.is_complex)


@inputs("cast")
def to_each_dtype(t: Maker) -> Iterator[Sample]:
    """Yield casts between all dtypes: floats are truncated, integers wrap around, complex numbers lose a component."""
    for target in ALL:
        gradient = loses_nothing(t, target)
        yield sample(castable(t, target, 3, 5), dtype=target, note=target.name, gradient=gradient)
        yield sample(castable(t, target), dtype=target, kind="0-d", note=target.name, gradient=gradient)
        yield sample(t(2, 0), dtype=target, kind="zero-size", note=target.name, gradient=False)
        yield sample(castable(t, target, 1), dtype=target, kind="length-1", note=target.name, gradient=gradient)
        yield sample(castable(t, target, 1023), dtype=target, kind="large", note=target.name, gradient=False)


@mistakes("cast")
def to_no_dtype(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not dtypes."""
    yield sample(t(3), dtype="float32")
    yield sample(t(3), dtype=3)


@special("cast")
def at_the_edge(t: Maker) -> Iterator[Sample]:
    """Yield rounding to nearest even, overflow to infinity, NaN and -0.0 between floating dtypes, all of which but 0
    become True in bool, and integers, which keep their low bits. C and PyTorch do not define casts of floats that an
    integer dtype cannot represent."""
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
    """Yield the device itself, with the same dtype and another."""
    for shape, kind in SHAPES:
        yield sample(t(*shape), HERE, kind=kind)
    yield sample(t(3, 5), HERE, dtype=t.dtype)
    if not t.is_complex:
        yield sample(castable(t, float32, 2, 3), target=HERE, dtype=float32, gradient=t.dtype is float32)


@mistakes("moved")
def to_no_device(t: Maker) -> Iterator[Sample]:
    """Yield a device that does not exist, and an argument that is not a device."""
    yield sample(t(3), "no such device")
    yield sample(t(3), 1.5)
