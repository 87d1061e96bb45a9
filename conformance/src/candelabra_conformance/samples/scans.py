"""Samples of running sums and products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from candelabra.dtypes import float32

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.reductions import factors, narrow_dtype
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

SCANS = ("cumsum", "cumprod")


@inputs(*SCANS)
def along_each_dim(t: Maker) -> Iterator[Sample]:
    """Yield first, middle and last dims, counted from either end."""
    make = factors if t.operator == "cumprod" else (lambda t, *shape: t(*shape))
    few = t if t.is_floating or t.is_complex else partial(make, t)  # products are within int8, for in-place forms
    yield sample(few(5), 0)
    yield sample(make(t, 17), -1)
    yield sample(few(3, 4), 0)
    yield sample(few(2, 3, 4), 1)
    yield sample(make(t, 2, 3, 5), dim=-1)
    yield sample(make(t, 3, 2, 2, 3), -4)
    yield sample(t(), 0, kind="0-d")
    yield sample(t(), -1, kind="0-d")
    yield sample(t(0), 0, kind="zero-size")
    yield sample(t(3, 0, 2), 0, kind="zero-size")
    yield sample(t(3, 0, 2), 1, kind="zero-size")
    yield sample(t(1), 0, kind="length-1")
    yield sample(t(3, 1, 2), 1, kind="length-1")
    yield sample(make(t, 1023), 0, kind="large", gradient=False)
    yield sample(make(t, 1023, 3), 0, kind="large", gradient=False)


@inputs("cumsum")
def along_a_long_row(t: Maker) -> Iterator[Sample]:
    """Yield a row of a hundred thousand elements."""
    yield sample(t(100_000), 0, kind="large", gradient=False)


@inputs(*SCANS)
def in_another_dtype(t: Maker) -> Iterator[Sample]:
    """Yield ``dtype``, to which the input is cast first, without derivatives: finite differences would be those of the
    narrow dtype."""
    if not t.is_bool:
        yield sample(t(2, 3), 1, dtype=t.dtype)
    yield sample(t(2, 3), 0, dtype=narrow_dtype(t), gradient=False)
    if t.is_integer or t.is_bool:
        yield sample(t(2, 3), 1, dtype=float32)


@inputs("cumprod")
def through_zeros(t: Maker) -> Iterator[Sample]:
    """Yield a zero at the start, in the middle, and twice: a derivative that divides by the elements is wrong there."""
    x = t(4, 4) if t.is_floating or t.is_complex else factors(t, 4, 4)
    x[0, 0] = x[1, 2] = x[2, 1] = x[2, 3] = 0
    yield sample(x, 1, note="zeros")
    yield sample(x, 0, note="zeros")


@mistakes(*SCANS)
def wrong_dim(t: Maker) -> Iterator[Sample]:
    """Yield a dim out of range, one that is not an integer, two dims, and none."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), -3, note="out of range")
    yield sample(t(), 1, note="out of range")
    yield sample(t(2, 3), (0, 1), note="several")
    yield sample(t(2, 3), None, note="none")
    yield sample(t(2, 3), 0, dtype="double", note="no dtype")


@special(*SCANS)
def not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN and infinity, after which all results are NaN or infinite."""
    if not t.is_floating:
        return
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([1, 2, nan, 3, 4]), 0)
    yield sample(t.array([[1, inf, 2, 3], [-inf, 1, inf, 2], [0, inf, 1, 1]]), 1)
    yield sample(t.array([-0.0, -0.0, 1.0]), 0)


@special(*SCANS)
def wrapping(t: Maker) -> Iterator[Sample]:
    """Yield integers, whose sums and products are modulo 2**64, and bools, whose results in bool are any and all."""
    if t.is_bool:
        yield sample(t.array([False, True, True, False, True]), 0, dtype=t.dtype)
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        yield sample(np.array([limits.max, limits.max, limits.min, limits.min, 3], t.numpy), 0)
