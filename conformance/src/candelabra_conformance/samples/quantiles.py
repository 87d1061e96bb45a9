"""Samples of quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, Sample, sample

NAN, INF = math.nan, math.inf
NUMBERS = ("quantile_number", "nanquantile_number")
TENSORS = ("quantile_tensor", "nanquantile_tensor")
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
only(lambda d: d.name in ("float32", "float64"), *NUMBERS, *TENSORS)


def _fractions(t: Maker) -> Any:
    """Return one fraction, or several, without a tie between two elements."""
    return t.array([0.0, 0.12, 0.55, 0.81, 1.0]) if t.operator in TENSORS else 0.37


@inputs(*NUMBERS, *TENSORS)
def quantiles(t: Maker) -> Iterator[Sample]:
    """Yield each dim and all elements, ``keepdim``, and each interpolation."""
    options: dict[str, Any] = {"constant": ("q",)} if t.operator in TENSORS else {}
    for method in METHODS:
        yield sample(t(3, 7), _fractions(t), 1, interpolation=method, note=method, **options)
    yield sample(t(7), _fractions(t), **options)
    yield sample(t(2, 5, 3), _fractions(t), 1, True, **options)
    yield sample(t(2, 3), _fractions(t), keepdim=True, **options)
    if t.operator in NUMBERS:
        yield sample(t(3, 7), 0, 0, note="the smallest")
        yield sample(t(3, 7), 1.0, 1, note="the largest")
    else:
        yield sample(t(3, 7), t.array(0.3), -1, note="one fraction", **options)
        yield sample(t(3, 7), t.array(np.zeros(0)), 1, note="no fractions", gradient=False)
        yield sample(t(7), t.array([0.12, 0.55]), note="by the fractions too")
    yield sample(t(), _fractions(t), 0, kind=ZERO_DIM, **options)
    yield sample(t(1), _fractions(t), 0, kind=LENGTH_ONE, **options)
    yield sample(t(10_001), _fractions(t), kind="large", gradient=False)


@special(*NUMBERS, *TENSORS)
def with_nan(t: Maker) -> Iterator[Sample]:
    """Yield one NaN in a row, several, only NaN, and infinities."""
    rows = t.array([[1, NAN, 3, 2], [NAN, 4, NAN, 1], [NAN] * 4, [-INF, 1, 2, 3]])
    yield sample(rows, _fractions(t), 1, interpolation="lower")
    yield sample(rows, _fractions(t), 1, interpolation="nearest")
    yield sample(rows[:3], _fractions(t), 1)


@mistakes(*NUMBERS, *TENSORS)
def no_quantile(t: Maker) -> Iterator[Sample]:
    """Yield no elements, fractions outside [0, 1], unknown interpolations, and dims out of range."""
    yield sample(t(0), _fractions(t), note="no elements")
    yield sample(t(2, 3), _fractions(t), 2, note="dim out of range")
    yield sample(t(3), _fractions(t), interpolation="cubic", note="interpolation")
    for q in (1.5, -0.1, NAN):
        yield sample(t(3), t.array([0.5, q]) if t.operator in TENSORS else q, note=f"q={q}")
    if t.operator in TENSORS:
        yield sample(t(3), t.array([[0.5]]), note="a matrix of fractions")
        other = "float64" if t.dtype.name == "float32" else "float32"
        yield sample(t(3), t.of(other).array([0.5]), note="another dtype")
