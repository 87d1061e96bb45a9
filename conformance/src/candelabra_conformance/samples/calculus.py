"""Samples of differences, derivatives and integrals along a dim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from candelabra.dtypes import BOOL

from candelabra_conformance.layouts import MEMORY, REPEATING
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

INTEGRALS = ("trapezoid", "cumulative_trapezoid")
only(lambda d: d.category != BOOL, *INTEGRALS)


@inputs("diff")
def differences(t: Maker) -> Iterator[Sample]:
    """Yield any order, any dim, and values to prepend and append."""
    yield sample(t(7))
    yield sample(t(3, 5), 2)
    yield sample(t(3, 5), 1, 0)
    yield sample(t(2, 3, 4), dim=1)
    yield sample(t(3, 5), 3, -1)
    yield sample(t(3, 5), 0, note="not at all")
    yield sample(t(3, 2), 5, note="more often than there are elements")
    yield sample(t(3, 5), prepend=t(3, 1), append=t(3, 2))
    yield sample(t(3, 5), 2, 0, t(2, 5))
    yield sample(t(1), kind=LENGTH_ONE)
    yield sample(t(3, 0), kind=ZERO_SIZE)
    yield sample(t(0, 3), kind=ZERO_SIZE)
    yield sample(t(20_001), kind=LARGE)


@mistakes("diff")
def no_differences(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, a negative order, and shapes of ``prepend`` and ``append`` that do not match."""
    x = t.of("float32")
    yield sample(x(), note="0-d")
    yield sample(x(3), -1, note="negative")
    yield sample(x(3), "1", note="a text")
    yield sample(x(3), 1, 1, note="dim out of range")
    yield sample(x(2, 3), prepend=x(3), note="fewer dims")
    yield sample(x(2, 3), append=x(1, 3), note="other sizes")


def rising(t: Maker, *shape: int) -> Array:
    """Return ascending coordinates along the last dim, at least 0.5 apart."""
    steps = np.abs(t.of("float64")(*shape, low=0.5, high=1.5))
    return np.asarray(t.array(np.cumsum(steps, -1)))


@inputs(*INTEGRALS)
def integrals(t: Maker) -> Iterator[Sample]:
    """Yield the default distance, ``dx``, and coordinates in a vector or in each row, along any dim."""
    yield sample(t(7))
    yield sample(t(3, 5), dim=0)
    yield sample(t(2, 3, 4), dx=0.5, dim=1)
    yield sample(t(3, 5), dx=2)
    yield sample(t(3, 5), rising(t, 5))
    yield sample(t(5, 3), rising(t, 5), dim=0)
    yield sample(t(3, 5), rising(t, 3, 5))
    yield sample(t(2, 3, 5), rising(t, 3, 5), note="points with fewer dims")
    yield sample(t(5), rising(t, 2, 5), note="points with more dims")
    yield sample(t(1), kind=LENGTH_ONE)
    yield sample(t(3, 1), dim=0, kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)
    yield sample(t(2, 0), kind=ZERO_SIZE)
    yield sample(t(20_001, low=0, high=1), kind=LARGE)


@mistakes(*INTEGRALS)
def no_integrals(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, bools, coordinates that do not match, and coordinates together with a distance."""
    x = t.of("float32")
    yield sample(x(), note="0-d")
    yield sample(t.of("bool")(3), note="bools")
    yield sample(x(3), t.of("bool")(3), note="bools as points")
    yield sample(x(3), x(4), note="too many points")
    yield sample(x(2, 3), x(4, 3), note="rows of points")
    yield sample(x(3), x(3), dx=1, note="both")
    yield sample(x(3), dim=1, note="dim out of range")


UNREPEATED: Final = tuple(layout for layout in MEMORY if layout not in REPEATING)
"""The layouts that do not repeat values, since coordinates must differ."""


@inputs("gradient")
def derivatives(t: Maker) -> Iterator[Sample]:
    """Yield all dims and some, both edge orders, equal distances and coordinates."""
    if not (t.is_floating or t.is_complex):
        return
    yield sample(t(7))
    yield sample(t(4, 5), edge_order=2)
    yield sample(t(3, 4, 3), dim=1)
    yield sample(t(4, 5), spacing=0.5, dim=(1, 0))
    yield sample(t(4, 5), spacing=[2.0, 0.25])
    if t.is_floating:
        yield sample(t(4, 5), spacing=[rising(t, 4), rising(t, 5)], layouts=UNREPEATED)
        yield sample(t(4, 5), spacing=[rising(t, 5)], dim=1, edge_order=2, layouts=UNREPEATED)
        yield sample(t(2), spacing=[rising(t, 2)], kind=LENGTH_ONE, note="two samples")
    yield sample(t(2), kind=LENGTH_ONE, note="two samples")
    yield sample(t(0, 2), dim=1, kind=ZERO_SIZE)


@mistakes("gradient")
def no_derivatives(t: Maker) -> Iterator[Sample]:
    """Yield too few samples, duplicate dims, and a number of spacings other than the number of dims."""
    x = t.of("float32")
    yield sample(x(1), note="one sample")
    yield sample(x(2), edge_order=2, note="two samples")
    yield sample(x(3), edge_order=3, note="third order")
    yield sample(x(3, 3), dim=(0, 0), note="a dim twice")
    yield sample(x(3, 3), spacing=[1.0] * 3, note="spacings")
    yield sample(x(3), spacing=[x(2)], note="coordinates")
    yield sample(t.of("uint8")(3), note="uint8")
