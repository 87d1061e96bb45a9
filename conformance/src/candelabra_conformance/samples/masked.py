"""Samples of reductions and normalisations of the elements that a mask selects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, float64

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.reductions import factors
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

SUMS: Final = ("masked_sum", "masked_prod", "masked_mean")
EXTREMA: Final = ("masked_amax", "masked_amin")
PLACES: Final = ("masked_argmax", "masked_argmin")
VARIANCES: Final = ("masked_var", "masked_std")
SOFTMAXES: Final = ("masked_softmax", "masked_log_softmax", "masked_softmin")
SCANS: Final = ("masked_cumsum", "masked_cumprod")
only(lambda d: d.category not in (BOOL, COMPLEX), *EXTREMA, *PLACES)
only(lambda d: d.category not in (BOOL, COMPLEX), "masked_median")
only(lambda d: d.category >= FLOATING, "masked_mean", "masked_norm", "masked_normalize", *VARIANCES)
only(lambda d: d.category == FLOATING, "masked_logsumexp", "masked_logaddexp", *SOFTMAXES)


def mask(t: Maker, *shape: int) -> Array:
    """Return a mask that selects at least two of three elements in a row or column."""
    made = t.mask(*shape)
    for place in np.ndindex(*shape):
        made[place] |= sum(place) % 3 != 0
    return np.asarray(made)


def values(t: Maker, *shape: int) -> Array:
    """Return numbers whose products stay within the dtype."""
    return np.asarray(factors(t, *shape)) if "prod" in t.operator else t(*shape)


@inputs(*SUMS, *EXTREMA, "masked_logsumexp")
def reductions(t: Maker) -> Iterator[Sample]:
    """Yield each dim, several and all, and masks of the input's shape, of fewer dims, and None."""
    yield sample(values(t, 3, 5), 1, mask=mask(t, 3, 5))
    yield sample(values(t, 3, 5), 0, keepdim=True, mask=mask(t, 3, 5))
    yield sample(values(t, 3, 5), 1, mask=mask(t, 5), note="a mask of fewer dims")
    yield sample(values(t, 2, 3, 4), (0, -1), mask=mask(t, 2, 3, 4))
    yield sample(values(t, 2, 3), mask=mask(t, 2, 3))
    yield sample(values(t, 2, 3), 1, note="no mask")
    yield sample(values(t, 4, 3), 1, mask=mask(t, 4, 1), note="a mask that broadcasts", gradient=False)
    if t.is_floating:
        yield sample(values(t, 3, 5), 1, dtype=float64, mask=mask(t, 3, 5))
    yield sample(values(t), 0, mask=np.asarray(True), kind=ZERO_DIM)
    yield sample(values(t, 1), 0, mask=np.array([True]), kind=LENGTH_ONE)
    yield sample(values(t, 0, 3), 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs(*SUMS, *EXTREMA, *VARIANCES)
def of_none(t: Maker) -> Iterator[Sample]:
    """Yield rows without a selected element."""
    selected = mask(t, 3, 4)
    selected[1] = False
    yield sample(values(t, 3, 4), 1, mask=selected, note="a row of none", gradient=False)


@inputs(*PLACES)
def extreme_indices(t: Maker) -> Iterator[Sample]:
    """Yield each dim and all elements, the input's dtype and another."""
    for dtype in (None, cd.int64):
        yield sample(t(3, 5), 1, dtype=dtype, mask=mask(t, 3, 5))
    yield sample(t(3, 5), 0, keepdim=True, mask=mask(t, 5))
    yield sample(t(2, 3), mask=mask(t, 2, 3))
    yield sample(t(2, 3), 1, note="no mask")
    yield sample(t(), 0, mask=np.asarray(True), kind=ZERO_DIM)
    yield sample(t(1), 0, mask=np.array([True]), kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs("masked_median")
def medians(t: Maker) -> Iterator[Sample]:
    """Yield each dim."""
    yield sample(t(3, 5), mask=mask(t, 3, 5))
    yield sample(t(3, 5), 1, keepdim=True, mask=mask(t, 5))
    yield sample(t(2, 4, 3), 1, mask=mask(t, 2, 4, 3))
    yield sample(t(2, 3), 0, dtype=t.dtype, note="no mask")
    yield sample(t(), 0, mask=np.asarray(True), kind=ZERO_DIM)
    yield sample(t(1), 0, mask=np.array([True]), kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs(*VARIANCES)
def variances(t: Maker) -> Iterator[Sample]:
    """Yield a correction, its older name, and neither."""
    yield sample(t(3, 5), 1, mask=mask(t, 3, 5))
    yield sample(t(3, 6), 0, False, keepdim=True, mask=mask(t, 3, 6))
    yield sample(t(2, 3, 4), (0, -1), True, mask=mask(t, 2, 3, 4))
    yield sample(t(2, 3), correction=0.5, mask=mask(t, 2, 3))
    yield sample(t(2, 3), 1, correction=0, note="no mask")
    yield sample(t(3, 5), 1, dtype=t.dtype, mask=mask(t, 3, 5))
    yield sample(t(), 0, correction=0, mask=np.asarray(True), kind=ZERO_DIM, gradient=False)
    yield sample(t(1), 0, correction=0, mask=np.array([True]), kind=LENGTH_ONE, gradient=False)
    yield sample(t(0, 3), 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs("masked_norm", "masked_normalize")
def norms(t: Maker) -> Iterator[Sample]:
    """Yield several orders, over each dim."""
    dims: tuple[Any, ...] = (1, 0, -1)
    for order, dim in zip((2.0, 1.0, 3.0), dims, strict=True):
        yield sample(t(3, 5), order, dim, mask=mask(t, 3, 5), note=f"{order} {dim}")
    if t.operator == "masked_norm":
        yield sample(t(2, 3, 4), 2.0, (0, 2), keepdim=True, mask=mask(t, 4))
        yield sample(t(2, 3), mask=mask(t, 2, 3))
    else:
        yield sample(t(3, 5), 2.0, 1, eps=100.0, mask=mask(t, 3, 5), note="eps")
    yield sample(t(2, 3), 2.0, 0, note="no mask")
    if t.is_floating:
        yield sample(t(2, 3), 2.0, 0, dtype=float64, note="another dtype", gradient=False)
    yield sample(t(1), 2.0, 0, mask=np.array([True]), kind=LENGTH_ONE)
    yield sample(t(0, 3), 2.0, 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs(*SOFTMAXES, *SCANS)
def normalizations(t: Maker) -> Iterator[Sample]:
    """Yield each dim. The logarithm minus infinity has no differences."""
    yield sample(values(t, 3, 5), 1, mask=mask(t, 3, 5), gradient="log" not in t.operator)
    yield sample(values(t, 3, 5), 0, mask=mask(t, 3, 5), gradient="log" not in t.operator)
    yield sample(values(t, 3, 5), 1, mask=mask(t, 5), note="a mask of fewer dims", gradient="log" not in t.operator)
    yield sample(values(t, 2, 3, 4), 1, mask=mask(t, 2, 3, 4), gradient="log" not in t.operator)
    yield sample(values(t, 2, 3), -1, note="no mask")
    if t.is_floating:
        yield sample(values(t, 3, 5), 1, dtype=float64, mask=mask(t, 3, 5), gradient="log" not in t.operator)
    yield sample(values(t), 0, mask=np.asarray(True), kind=ZERO_DIM)
    yield sample(values(t, 1), 0, mask=np.array([True]), kind=LENGTH_ONE)
    yield sample(values(t, 0, 3), 1, mask=np.ones((0, 3), bool), kind=ZERO_SIZE)


@inputs("masked_logaddexp")
def pairs(t: Maker) -> Iterator[Sample]:
    """Yield a mask for each, and for one."""
    yield sample(t(3, 5), t(3, 5), input_mask=mask(t, 3, 5), other_mask=mask(t, 3, 5)[::-1].copy(), gradient=False)
    yield sample(t(3, 5), t(3, 5), input_mask=mask(t, 3, 5), gradient=False)
    yield sample(t(3, 5), t(5), other_mask=mask(t, 5), gradient=False)
    yield sample(t(2, 3), t(2, 3), note="no masks")
    yield sample(t(2, 3), t(2, 3), dtype=float64, note="another dtype", gradient=False)
    yield sample(t(), t(), kind=ZERO_DIM)
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(0, 3), t(3), kind=ZERO_SIZE)


@mistakes(*SUMS, *EXTREMA, *PLACES, *SOFTMAXES, *SCANS, "masked_median", "masked_logsumexp")
def no_mask(t: Maker) -> Iterator[Sample]:
    """Yield masks of more dims or other sizes than the input, other dtypes, and dims out of range."""
    x = t.of("float32")
    yield sample(x(3), 0, mask=x.mask(2, 3), note="more dims")
    yield sample(x(3), 0, mask=x.mask(2), note="another size")
    yield sample(x(3), 0, mask=x(3), note="floats")
    yield sample(x(3), 1, mask=x.mask(3), note="dim out of range")


@mistakes(*VARIANCES)
def two_corrections(t: Maker) -> Iterator[Sample]:
    """Yield both names of the correction."""
    yield sample(t.of("float32")(3), 0, True, correction=1)


@mistakes("masked_mean")
def mean_of_integers(t: Maker) -> Iterator[Sample]:
    """Yield no dtype, and integer dtypes."""
    yield sample(t.of("int64")(3), note="integers")
    yield sample(t.of("float32")(3), dtype=cd.int64, note="in integers")


@mistakes("masked_median")
def median_of_none(t: Maker) -> Iterator[Sample]:
    """Yield integers without a selected element, whose median would be NaN."""
    yield sample(t.of("int64")(2, 3), 1, mask=np.array([[True] * 3, [False] * 3]))


@inputs("masked._input_mask")
def input_masks(t: Maker) -> Iterator[Sample]:
    """Yield masks that are expanded to the input's shape."""
    yield sample(t(2, 3), mask=mask(t, 3), gradient=False)
    yield sample(t(2, 3), 0, mask=mask(t, 2, 3), gradient=False)
    yield sample(t(), mask=np.asarray(True), kind=ZERO_DIM, gradient=False)


@mistakes("masked._input_mask")
def no_input_mask(t: Maker) -> Iterator[Sample]:
    """Yield no mask, and one of more dims."""
    yield sample(t(2, 3), note="none")
    yield sample(t(3), mask=t.mask(2, 3), note="more dims")


@inputs("masked._output_mask")
def output_masks(t: Maker) -> Iterator[Sample]:
    """Yield reductions, and functions that keep the shape, whose output mask is the mask itself."""
    yield sample(cd.masked.sum, t(2, 3), 1, mask=mask(t, 3), gradient=False)
    yield sample(cd.masked.norm, t(2, 3), 2.0, (0, 1), keepdim=True, mask=mask(t, 2, 3), gradient=False)
    yield sample(cd.masked.median, t(2, 3), mask=mask(t, 2, 3), gradient=False)
    yield sample(cd.masked.softmax, t(2, 3), 1, mask=mask(t, 2, 3), gradient=False)
