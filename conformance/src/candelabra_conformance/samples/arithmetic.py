"""Samples of arithmetic with options: factors, rounding modes, double precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples.blending import number
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.pointwise import DIVIDENDS, RANGES, shapes_for
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample

SCALED = ("add_scaled", "sub_scaled", "rsub")


@inputs(*SCALED)
def scaled(t: Maker) -> Iterator[Sample]:
    """Yield a factor of the dtype's own kind, an integer factor, and numbers in place of tensors."""
    factors: tuple[Any, ...] = (True,) if t.is_bool else (number(t), -2 if t.dtype.is_signed else 2)
    for position, (kind, (first, second)) in enumerate(shapes_for(2)):
        yield sample(t(*first), t(*second), alpha=factors[position % len(factors)], kind=kind)
    yield sample(t(3, 5), number(t), alpha=factors[0], note="a number")
    if t.operator != "rsub":
        yield sample(number(t), t(3, 5), alpha=factors[0], note="a number first")
    else:
        yield sample(t(3, 5), t(5), note="without a factor")


@mistakes(*SCALED)
def unfit_factors(t: Maker) -> Iterator[Sample]:
    """Yield floating factors for integers, and shapes that do not broadcast."""
    if t.is_integer:
        yield sample(t(3), t(3), alpha=1.5, note="a fraction")
    yield sample(t(2, 3), t(4), alpha=2, note="shapes")


@inputs("Tensor.__rdiv__")
def divided(t: Maker) -> Iterator[Sample]:
    """Yield numbers and tensors, divided by tensors without values near 0."""
    if t.is_bool or t.is_integer:
        return
    divisor = t.array(t(3, 5, low=0.5, high=3.0))
    yield sample(divisor, number(t))
    yield sample(divisor, t(5))


@inputs("Tensor.float_power_")
def powers(t: Maker) -> Iterator[Sample]:
    """Yield tensors in double precision."""
    if t.dtype.name == "float64":
        yield sample(t(3, 5, low=0.2, high=2.0), t(5), gradient=False)
        yield sample(t(3, 5, low=0.2, high=2.0), 2, gradient=False)


@mistakes("Tensor.float_power_")
def not_in_double_precision(t: Maker) -> Iterator[Sample]:
    """Yield other dtypes, which cannot store the result."""
    if t.dtype.name in ("float32", "int64", "complex64"):
        yield sample(t(3), 2, note="dtype")


def dividend(t: Maker, *shape: int) -> Array:
    """Return dividends whose quotients by numbers near 1.5 are not close to an integer."""
    if not t.is_floating:
        return t(*shape)
    whole = t.of("int64")(*shape, low=-3, high=2)
    return t.array(1.5 * (whole + DIVIDENDS.drawn(t.of("float64"), *shape)))


@inputs("div_rounded")
def rounded(t: Maker) -> Iterator[Sample]:
    """Yield both rounding modes."""
    divisor = RANGES["floor_divide"]["other"]
    for mode in ("floor", "trunc"):
        for kind, (first, second) in shapes_for(2):
            yield sample(dividend(t, *first), divisor.drawn(t, *second), rounding_mode=mode, kind=kind, note=mode)
        yield sample(dividend(t, 3, 5), 2 if t.is_integer else 1.5, rounding_mode=mode, note=f"{mode}, a number")


@mistakes("div_rounded")
def no_rounding(t: Maker) -> Iterator[Sample]:
    """Yield an unknown rounding mode, shapes that do not broadcast, and integers divided by 0."""
    yield sample(t(3), t.array([1, 2, 3]), rounding_mode="up", note="mode")
    yield sample(t(2, 3), t.array([1, 2, 3, 4]), rounding_mode="floor", note="shapes")
    if t.is_integer:
        yield sample(t(3), t.array([1, 0, 2]), rounding_mode="trunc", note="by 0")
