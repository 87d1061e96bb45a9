"""Samples of evenly spaced numbers that are created like an operand."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra.dtypes import INTEGER, float32, float64

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

only(lambda d: d.category >= INTEGER, "new_linspace")


@inputs("new_uniform")
def drawn_like(t: Maker) -> Iterator[Sample]:
    """Yield shapes, seeds and offsets, with numbers in another dtype than the operand's."""
    yield sample(t(2, 3), 5, 7, dtype=float32)
    yield sample(t(17), (3 << 32) + 5, (1 << 32) + 7, dtype=float64)
    yield sample(t(), 1, 0, dtype=float32, kind=ZERO_DIM)
    yield sample(t(1, 1), 1, 2, dtype=float32, kind=LENGTH_ONE)
    yield sample(t(0, 2), 1, 2, dtype=float32, kind=ZERO_SIZE)


@inputs("new_linspace")
def spaced_like(t: Maker) -> Iterator[Sample]:
    """Yield ascending and descending numbers, in the operand's dtype and in another."""
    yield sample(t(2, 3), 0, 4, 5)
    yield sample(t(3), 7.0, -1.0, 9)
    yield sample(t(3), -3, 3, 7, dtype=float64)
    yield sample(t(3), -3, 3, 7, dtype=float32)
    yield sample(t(), 0, 1, 2, kind=ZERO_DIM)
    yield sample(t(1), 3, 5, 1, kind=LENGTH_ONE)
    yield sample(t(0), 0, 1, 0, kind=ZERO_SIZE)
    yield sample(t(2), 0, 100, 1001, dtype=float64, kind=LARGE)
