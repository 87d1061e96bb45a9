"""Samples of draws of gamma and Dirichlet numbers, and of their derivative in the concentration.

The numbers are smooth functions of the concentration at a given seed and offset, so finite differences hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.draws import GENERATOR
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
STATES = ((0, 0), (7, 3), (2**63 + 1, 2**40))
"""Seeds and offsets."""

only(lambda d: d.category == FLOATING, "random_log_gamma", "log_gamma_slope")


@inputs("random_log_gamma")
def logarithms(t: Maker) -> Iterator[Sample]:
    """Yield concentrations on both sides of 1, for several states of the generator."""
    for seed, offset in STATES:
        yield sample(t(2, 3, low=0.5, high=6.0), seed, offset, note=f"{seed} {offset}")
    yield sample(t(5, low=20.0, high=60.0), 1, 2, note="larger")
    yield sample(t.array([0.125, 0.25, 0.03125]), 5, 0, note="small")
    yield sample(t(low=0.5, high=3.0), 1, 2, kind=ZERO_DIM)
    yield sample(t(1, low=0.5, high=3.0), 3, 4, kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, 2, kind=ZERO_SIZE)
    yield sample(t(66_001, low=0.05, high=90.0), 1, 0, gradient=False, kind=LARGE)


@special("random_log_gamma")
def certain_logarithms(t: Maker) -> Iterator[Sample]:
    """Yield concentrations with only one possible result."""
    if t.is_floating:
        yield sample(t.array([0.0, INF, NAN, -1.0]), 1, 0)


@inputs("log_gamma_slope")
def slopes(t: Maker) -> Iterator[Sample]:
    """Yield numbers in both tails, for concentrations on both sides of 1."""
    yield sample(t(2, 3, low=0.5, high=6.0), t(2, 3, low=0.25, high=2.0), note="near the mean")
    yield sample(t.array([0.25, 0.5, 0.75]), t.array([0.5, 0.25, 1.0]), note="small concentrations")
    yield sample(t.array([6.0, 5.0]), t.array([1.0, 2.5]), note="both tails")
    yield sample(t(low=0.5, high=3.0), t(low=-1.0, high=1.0), kind=ZERO_DIM)
    yield sample(t(1, low=0.5, high=3.0), t(1, low=-1.0, high=1.0), kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 3), kind=ZERO_SIZE)


@inputs("_standard_gamma")
def gamma_numbers(t: Maker) -> Iterator[Sample]:
    """Yield concentrations, with the default generator and with another one."""
    if t.is_floating:
        yield sample(t(2, 3, low=0.5, high=6.0))
        yield sample(t.array([0.25, 30.0]), GENERATOR)


@inputs("_sample_dirichlet")
def dirichlet_numbers(t: Maker) -> Iterator[Sample]:
    """Yield rows of concentrations, with the default generator and with another one."""
    if t.is_floating:
        yield sample(t(2, 3, low=0.5, high=6.0))
        yield sample(t.array([0.25, 3.0, 1.0]), GENERATOR)


@mistakes("_standard_gamma", "_sample_dirichlet")
def no_concentrations(t: Maker) -> Iterator[Sample]:
    """Yield concentrations that are not real floating numbers."""
    yield sample(t.of("int64")(3), note="integers")
