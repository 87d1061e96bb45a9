"""Samples of equality and closeness."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.pointwise import shapes_for
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample


def near(t: Maker, values: Array, step: float) -> Array:
    """Return the values with every second one changed by much more than the tolerances."""
    if not (t.is_floating or t.is_complex):
        return values
    moved = values.astype("complex128" if t.is_complex else "float64").ravel()
    moved[::2] *= 1 + step
    return t.array(moved.reshape(values.shape))


@inputs("isclose", "allclose")
def close(t: Maker) -> Iterator[Sample]:
    """Yield equal numbers, different numbers, and tolerances that make them close."""
    for kind, (first, second) in shapes_for(2):
        yield sample(t(*first), t(*second), kind=kind)
    x = t(3, 5)
    yield sample(x, x.copy(), note="equal")
    yield sample(x, near(t, x, 0.25), 0.5, note="within rtol")
    yield sample(x, near(t, x, 0.25), 0.0, 0.0, note="no tolerance")
    yield sample(x, t(3, 5), rtol=0.0, atol=100.0, note="within atol")


@special("isclose", "allclose")
def close_special_values(t: Maker) -> Iterator[Sample]:
    """Yield infinities of one sign, which are close, and NaN, which is close to NaN on request."""
    if t.is_floating:
        x, y = t.array([nan, inf, inf, -inf, 0.0, 1.0]), t.array([nan, inf, -inf, 1.0, -0.0, inf])
        yield sample(x, y)
        yield sample(x, y, equal_nan=True)


@mistakes("isclose", "allclose")
def not_comparable(t: Maker) -> Iterator[Sample]:
    """Yield two dtypes, shapes that do not broadcast, and negative tolerances."""
    other = "int16" if t.dtype.name != "int16" else "int32"
    yield sample(t(3), t.of(other)(3), note="dtypes")
    yield sample(t(2, 3), t(4), note="shapes")
    yield sample(t(3), t(3), -1.0, note="rtol")
    yield sample(t(3), t(3), atol=-1.0, note="atol")


@inputs("equal")
def whole_tensors(t: Maker) -> Iterator[Sample]:
    """Yield equal elements, different elements, different shapes, and no elements."""
    x = t(3, 5)
    yield sample(x, x.copy(), note="equal")
    yield sample(x, t(3, 5))
    yield sample(x, t(5), note="shapes")
    yield sample(t(0, 2), t(0, 2), kind="zero-size")
    yield sample(t(), t(), kind="0-d")


@mistakes("equal")
def no_tensors(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not tensors."""
    yield sample(t(3), 1.0, note="a number")
