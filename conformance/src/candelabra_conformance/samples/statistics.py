"""Samples of sums and means without NaN, extremes in pairs, and counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
CHOICES: Final = (
    ((5,), 0), ((2, 3), -1), ((2, 8, 3), 1), ((2, 3, 5), (0, 2)), ((3, 4), None), ((2, 3, 5), (-1, 0)), ((17, 2), (0,)),
)  # fmt: skip
"""Shapes, and dims to reduce: first, middle, last, several, all."""


def _holed(t: Maker, *shape: int) -> Array:
    """Return values of which some are missing, as NaN if the dtype has it."""
    whole = t(*shape)
    if t.is_floating or t.is_complex:
        whole.reshape(-1)[1::5] = NAN  # never all elements of a reduction
    return whole


@inputs("nansum", "nanmean")
def without_nan(t: Maker) -> Iterator[Sample]:
    """Yield missing elements, each choice of dims, and another dtype of the sum."""
    for i, (shape, dim) in enumerate(CHOICES):
        yield sample(_holed(t, *shape), dim, i % 2 == 0, note=f"{shape} {dim}")
        yield sample(t(*shape), dim, i % 2 == 1, note=f"{shape} {dim}, none missing")
    yield sample(_holed(t, 3, 4), note="all dims")
    if t.operator == "nansum":
        yield sample(_holed(t, 3, 4), 1, dtype=cd.float64, note="another dtype")
        yield sample(_holed(t, 3, 4), 1, dtype=cd.float32, gradient=False, note="another dtype")
    elif not t.is_complex:
        yield sample(_holed(t, 3, 4), 0, dtype=cd.float32, gradient=False, note="another dtype")
        yield sample(_holed(t, 3, 4), 0, dtype=cd.float64, note="another dtype")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(1), 0, kind=LENGTH_ONE)
    yield sample(t(2, 0), 1, kind=ZERO_SIZE)
    yield sample(t(0, 3), 1, True, kind=ZERO_SIZE)
    yield sample(t(3, 20_001, low=0, high=1), 1, kind=LARGE)


@special("nansum", "nanmean")
def nothing_left(t: Maker) -> Iterator[Sample]:
    """Yield only NaN, for which the sum is 0 and the mean NaN, and infinities, which are not missing."""
    if t.is_floating:
        yield sample(t.array([[NAN, NAN], [NAN, 1.0], [INF, NAN], [INF, -INF], [-0.0, -0.0]]), 1)


@inputs("count_nonzero")
def counts(t: Maker) -> Iterator[Sample]:
    """Yield tensors with some zeros."""
    for shape, dim in CHOICES:
        whole = t(*shape)
        whole.reshape(-1)[::3] = 0
        yield sample(whole, dim, note=f"{shape} {dim}")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(1), 0, kind=LENGTH_ONE)
    yield sample(t(2, 0), 1, kind=ZERO_SIZE)
    yield sample(t(0), kind=ZERO_SIZE)
    yield sample(t(3, 20_001), kind=LARGE)


@special("count_nonzero")
def odd_zeros(t: Maker) -> Iterator[Sample]:
    """Yield both zeros, which count as zero, and NaN and the smallest numbers, which do not."""
    if t.is_floating:
        yield sample(t.array([0.0, -0.0, NAN, INF]))
    if t.is_complex:
        yield sample(t.array([0, 1j, -0.0, complex(NAN, 0)]))


@inputs("aminmax")
def both_extremes(t: Maker) -> Iterator[Sample]:
    """Yield all elements, and each dim, with and without ``keepdim``."""
    yield sample(t(3, 4))
    yield sample(t(3, 4), keepdim=True)
    for shape, dim in (((5,), 0), ((2, 17), -1), ((2, 8, 3), 1)):
        yield sample(t(*shape), dim=dim, note=f"{shape} {dim}")
        yield sample(t(*shape), dim=dim, keepdim=True, note=f"{shape} {dim}, kept")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(2, 1), dim=1, kind=LENGTH_ONE)
    yield sample(t(0, 3), dim=1, kind=ZERO_SIZE)
    yield sample(t(3, 20_001), dim=1, kind=LARGE)


@special("aminmax")
def extremes_of_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN at each position, which propagates."""
    if t.is_floating:
        yield sample(t.array([[NAN, 1.0, 2.0], [1.0, 2.0, NAN], [-INF, 0.0, INF]]), dim=1)
        yield sample(t.array([1.0, NAN]))


@mistakes("aminmax")
def no_extremes(t: Maker) -> Iterator[Sample]:
    """Yield no elements, which have no extremes."""
    x = t.of("float32")
    yield sample(x(0), note="no elements")
    yield sample(x(2, 0), dim=1, note="none along the dim")
    yield sample(x(2, 3), dim=2, note="dim out of range")


@mistakes("nansum", "nanmean", "count_nonzero")
def wrong_dims(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and duplicate dims."""
    x = t.of("float32")(2, 3)
    yield sample(x, 2, note="out of range")
    yield sample(x, (0, -3), note="out of range")
    yield sample(x, (1, -1), note="twice")


# -- repeat counts ----------------------------------------------------------------------------------------------------
@inputs("tally")
def tallies(t: Maker) -> Iterator[Sample]:
    """Yield numbers with many and with no occurrences, with weights and without."""
    options: dict[str, Any] = {"constant": ("weights",), "gradient": False}
    yield sample(t.indices(8, below=5), t(8), 5, **options)
    yield sample(t.indices(17, below=3), None, 4, note="counted")
    yield sample(t.index(2, 2, 2), t(3), 9, note="all at one place", **options)
    yield sample(t.index(0), t(1), 1, kind=LENGTH_ONE, **options)
    yield sample(np.zeros(0, np.int64), t(0), 3, kind=ZERO_SIZE, **options)
    yield sample(np.zeros(0, np.int64), None, 0, kind=ZERO_SIZE)
    yield sample(t.indices(20_001, below=33), t(20_001, low=0, high=1), 33, kind=LARGE, **options)
