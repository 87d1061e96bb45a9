"""Calls that pointwise operators refuse because of the values, or of numbers of the wrong kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pointwise import QUOTIENTS
from candelabra_conformance.samples.registry import mistakes
from candelabra_conformance.samples.sample import Sample, sample


@mistakes(*QUOTIENTS)
def by_zero(t: Maker) -> Iterator[Sample]:
    """Yield integers divided by 0: by one element of a tensor, by a number, by a 0-d tensor."""
    if t.is_integer:
        x = t(2, 3)
        yield sample(x, t.array([1, 0, 2]), note="a divisor of 0")
        yield sample(x, 0, note="the number 0")
        yield sample(x, t.array(0), note="a 0-d divisor of 0")
        yield sample(np.zeros_like(x), np.zeros_like(x), note="0 by 0")


@mistakes("pow")
def to_a_negative_number(t: Maker) -> Iterator[Sample]:
    """Yield negative integer exponents of an integer tensor, which have no integer result."""
    if t.is_integer:
        yield sample(t(3), -1, note="exponent -1")


@mistakes("heaviside")
def of_two_dtypes(t: Maker) -> Iterator[Sample]:
    """Yield a step of two dtypes."""
    yield sample(t(3), t.of("int16" if t.dtype.name != "int16" else "int32")(3), note="values of another dtype")


@mistakes("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
def with_a_float(t: Maker) -> Iterator[Sample]:
    """Yield floating numbers, which have no bits to combine."""
    yield sample(t(3), 1.5, note="the number 1.5")
    yield sample(t(3), t.of("float32")(3), note="a float32 tensor")
