"""Samples of draws of Poisson and binomial numbers. The results jump, so finite differences are meaningless."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
STATES = ((0, 0), (7, 3), (2**63 + 1, 2**40))
"""Seeds and offsets."""


@inputs("random_poisson")
def poisson(t: Maker) -> Iterator[Sample]:
    """Yield rates on both sides of the change of the method, for several states of the generator."""
    for seed, offset in STATES:
        yield sample(t(2, 3, low=0.1, high=4.0), seed, offset, gradient=False, note=f"{seed} {offset}")
    yield sample(t(17, low=10.0, high=60.0), 1, 2, gradient=False, note="larger rates")
    yield sample(t.array([12.0] * 9), 5, 0, gradient=False, note="one rate")
    yield sample(t(low=0.5, high=3.0), 1, 2, gradient=False, kind=ZERO_DIM)
    yield sample(t(1, low=0.5, high=3.0), 3, 4, gradient=False, kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, 2, gradient=False, kind=ZERO_SIZE)
    yield sample(t(10_001, low=0.1, high=20.0), 1, 0, gradient=False, kind=LARGE)


@inputs("random_binomial")
def binomial(t: Maker) -> Iterator[Sample]:
    """Yield few and many trials, rare successes and rare failures, for several states of the generator."""
    for seed, offset in STATES:
        count = t.array([[1.0, 5.0, 20.0], [3.5, 60.0, 100.0]])
        yield sample(count, t(2, 3, low=0.05, high=0.95), seed, offset, gradient=False, note=f"{seed} {offset}")
    yield sample(t.array([12.0] * 9), t.array([0.25] * 9), 5, 0, gradient=False, note="one distribution")
    yield sample(t.array(10.0), t.array(0.5), 1, 2, gradient=False, kind=ZERO_DIM)
    yield sample(t.array([10.0]), t.array([0.75]), 3, 4, gradient=False, kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 3), 1, 2, gradient=False, kind=ZERO_SIZE)
    yield sample(t.array([20.0] * 10_001), t(10_001, low=0.05, high=0.95), 1, 0, gradient=False, kind=LARGE)


@special("random_poisson")
def certain_rates(t: Maker) -> Iterator[Sample]:
    """Yield rates with only one possible result, and rates whose last digits
    decide between two."""
    if t.is_floating:
        yield sample(t.array([0.0, INF, NAN, 0.0]), 1, 0)
    if t.dtype.name == "float64":
        drawn = (np.random.Philox(key=1, counter=0).random_raw(8) >> np.uint64(11)) * 2.0**-53
        rates = -np.log(drawn) * np.where(np.arange(8) % 2, 1 + 2.0**-40, 1 - 2.0**-40)
        yield sample(rates, 1, 0, note="barely 0 and barely 1")


@special("random_binomial")
def certain_outcomes(t: Maker) -> Iterator[Sample]:
    """Yield trials with only one possible result: none, never, always, and NaN."""
    count, prob = [0.0, 5.0, 5.0, -1.0, NAN, 5.0, 7.5], [0.5, 0.0, 1.0, 0.5, 0.5, NAN, 2.0]
    if t.is_floating:
        yield sample(t.array(count), t.array(prob), 1, 0)
    if t.dtype.name == "float64":
        yield sample(t.array([2.0**25 + 1]), t.array([1.0]), 1, 0, note="many")


@mistakes("random_poisson")
def negative_rates(t: Maker) -> Iterator[Sample]:
    """Yield negative rates."""
    yield sample(t.of("float32").array([1.0, -0.5]), 1, 0)
