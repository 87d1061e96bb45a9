"""What pointwise operators refuse for what the values are, and for numbers of the wrong kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pointwise import QUOTIENTS
from candelabra_conformance.samples.registry import mistakes
from candelabra_conformance.samples.sample import Sample, sample


@mistakes(*QUOTIENTS)
def by_zero(t: Maker) -> Iterator[Sample]:
    """Integers by 0: one among others, a number, a tensor without dims."""
    if t.is_integer:
        x = t(2, 3)
        yield sample(x, t.array([1, 0, 2]), note="a divisor of 0")
        yield sample(x, 0, note="the number 0")
        yield sample(x, t.array(0), note="a 0-d divisor of 0")
        yield sample(np.zeros_like(x), np.zeros_like(x), note="0 by 0")


@mistakes("pow")
def to_a_negative_number(t: Maker) -> Iterator[Sample]:
    """An integer tensor to a negative whole number has no integer result."""
    if t.is_integer:
        yield sample(t(3), -1, note="exponent -1")


@mistakes("heaviside")
def of_two_dtypes(t: Maker) -> Iterator[Sample]:
    """The step's values have the dtype of the argument."""
    yield sample(t(3), t.of("int16" if t.dtype.name != "int16" else "int32")(3), note="values of another dtype")


@mistakes("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
def beside_a_float(t: Maker) -> Iterator[Sample]:
    """Numbers with a fraction have no bits to combine."""
    yield sample(t(3), 1.5, note="the number 1.5")
    yield sample(t(3), t.of("float32")(3), note="a float32 tensor")
