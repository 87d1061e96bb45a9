"""Samples of complex numbers that are constructed from their components."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import mistakes, only, special
from candelabra_conformance.samples.sample import Sample, sample

PARTS = ("complex", "polar")
only(lambda d: d.name in ("float16", "float32", "float64"), *PARTS)


@special("complex")
def components(t: Maker) -> Iterator[Sample]:
    """Yield NaN, infinities and signed zeros, none of which may affect the other component."""
    if t.is_floating:
        yield sample(t.array([nan, inf, 1.0, -0.0]), t.array([1.0, nan, -inf, -0.0]))


@mistakes(*PARTS)
def unfit_parts(t: Maker) -> Iterator[Sample]:
    """Yield integers, two dtypes, and shapes that do not broadcast."""
    yield sample(t(2, 3), t(4), note="shapes")
    yield sample(t(3), t.of("float32" if t.dtype.name == "float64" else "float64")(3), note="dtypes")
    yield sample(t.of("int64")(3), t.of("int64")(3), note="integers")
    yield sample(t(3), 1.0, note="a number")
