"""Samples of clamping."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


@inputs("clamp")
def limited(t: Maker) -> Iterator[Sample]:
    """Yield one bound and two, numbers and tensors that broadcast, and a lower bound above the upper one."""
    if t.is_bool:
        yield sample(t(3, 5), False, True)
        return
    low, high = (1, 5) if t.is_integer else (-0.53, 0.78)
    yield sample(t(3, 5), low, high)
    yield sample(t(2, 3, 4), low, None, note="from below")
    yield sample(t(17), max=high, note="from above")
    yield sample(t(3, 5), t(5), high, note="a tensor and a number")
    yield sample(t(5), t(3, 1), t(5), note="tensors that broadcast")
    yield sample(t(3, 5), high, low, note="the wrong way round")
    yield sample(t(), low, t(), kind=ZERO_DIM)
    yield sample(t(1), low, high, kind=LENGTH_ONE)
    yield sample(t(0, 3), low, t(3), kind=ZERO_SIZE)
    yield sample(t(20_001), low, high, kind=LARGE)


@special("clamp")
def limited_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN, bounds of NaN, which return NaN, and infinities."""
    if t.is_floating:
        values = t.array([nan, inf, -inf, 1.5, 0.25])
        yield sample(values, -1.0, 1.0)
        yield sample(values, t.array(nan), 1.0, note="a bound of NaN")


@mistakes("clamp")
def unlimited(t: Maker) -> Iterator[Sample]:
    """Yield no bound, and bounds that do not broadcast."""
    yield sample(t(3), note="no bounds")
    yield sample(t(2, 3), t(2), t(4), note="shapes")
    yield sample(t(3), "1", note="a string")
