"""Samples of functions that check values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

TEXT: Final = "{element}code {code}"


@inputs("raise_if_nonzero")
def zeros(t: Maker) -> Iterator[Sample]:
    """Yield codes that are all 0."""
    yield sample(t.array([[0, 0], [0, 0], [0, 0]]), TEXT, RuntimeError)
    yield sample(t.array([0, 0, 0]), "no code", ValueError)
    yield sample(t.array(0), TEXT, RuntimeError, kind=ZERO_DIM)
    yield sample(t.array([0]), TEXT, RuntimeError, kind=LENGTH_ONE)
    yield sample(t.array([]), TEXT, RuntimeError, kind=ZERO_SIZE)


@mistakes("raise_if_nonzero")
def codes(t: Maker) -> Iterator[Sample]:
    """Yield one nonzero code, and several, of which the first is reported."""
    whole = t.of("int32")
    yield sample(whole.array(3), TEXT, RuntimeError, note="one")
    yield sample(whole.array([[0, 2], [0, 1]]), TEXT, ValueError, note="the second")
