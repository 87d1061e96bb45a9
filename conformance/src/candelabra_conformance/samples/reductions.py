"""Samples of reductions: sums, products, means, variances, extremes and their indices, any and all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from candelabra.dtypes import FLOATING, complex64, dtype, float32, int32, int64

from candelabra_conformance.layouts import BROADCAST, MEMORY, REPEATING
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import Sample, sample

SUMS = ("sum", "mean", "prod")
SPREADS = ("var", "std")
MOMENTS = (*SPREADS, "var_mean", "std_mean")
UNBIASED = tuple(f"{name}_unbiased" for name in MOMENTS)
OF_ALL = tuple(f"{name}_of_all" for name in MOMENTS)
only(lambda d: d.category >= FLOATING, *UNBIASED, *OF_ALL)
EXTREMES = ("amax", "amin")
PLACES = ("argmax", "argmin")
BOTH = ("max_dim", "min_dim")
TRUTHS = ("all", "any")
LONG = 100_000
UNLIKE = tuple(layout for layout in MEMORY if layout not in REPEATING)
"""The layouts in which the elements of a row differ."""


def narrow_dtype(t: Maker) -> dtype:
    """Return another dtype of the same category that most devices support."""
    if t.is_complex:
        return complex64
    return float32 if t.is_floating else int32


def factors(t: Maker, *shape: int) -> Array:
    """Return numbers so close to 1 that the product of a thousand is within float16."""
    if t.is_floating or t.is_complex:
        near = t.real(*shape, low=0.97, high=1.03)
        return near.astype(t.numpy)
    return t(*shape, low=0, high=1) if t.is_bool else (t(*shape, low=1, high=10) > 9).astype(t.numpy) + t.array(1)


@inputs("sum", "mean", "prod", "logsumexp", *EXTREMES, *TRUTHS)
def over_dims(t: Maker) -> Iterator[Sample]:
    """Yield each dim, several at once, and all, with and without ``keepdim``."""
    yield sample(t(3, 5), (1,))
    yield sample(t(17), 0)
    yield sample(t(2, 3, 4), 1, True)
    yield sample(t(2, 3, 4), (0, -1))
    yield sample(t(3, 2, 5), [2, 0], keepdim=True)
    yield sample(t(2, 3, 1, 3), (-3, -1))
    yield sample(t(3, 5), dim=(0, 1), keepdim=False)
    yield sample(t(2, 3), (), note="no dims are none of them" if t.operator in TRUTHS else "no dims are all of them")
    if t.operator != "logsumexp":  # its dim has no default
        yield sample(t(7))
        yield sample(t(2, 3, 2))
    yield sample(t(2, 3), None, True)
    yield sample(t(), 0, kind="0-d")
    yield sample(t(), -1, True, kind="0-d")
    yield sample(t(), None, kind="0-d")
    yield sample(t(3, 0, 2), (0,), kind="zero-size", note="nothing is kept")
    yield sample(t(0, 3), 1, True, kind="zero-size", note="nothing is kept")
    yield sample(t(1), 0, kind="length-1")
    yield sample(t(4, 1), 1, True, kind="length-1")
    yield sample(t(1, 1, 1), None, kind="length-1")


@inputs("sum", "mean", "prod", "logsumexp", *TRUTHS)
def of_nothing(t: Maker) -> Iterator[Sample]:
    """Yield sums and similar reductions over no elements, which have a value, unlike extremes."""
    yield sample(t(3, 0), 1, kind="zero-size", note="nothing is reduced", gradient=False)
    yield sample(t(0), None, kind="zero-size", note="nothing is reduced", gradient=False)
    yield sample(t(2, 0, 3), (0, 1), True, kind="zero-size", note="nothing is reduced", gradient=False)


@inputs("sum", "mean", "logsumexp", *EXTREMES, *TRUTHS)
def over_many(t: Maker) -> Iterator[Sample]:
    """Yield long rows: blocks, remainders, pairwise sums."""
    yield sample(t(LONG), 0, kind="large", gradient=False)
    yield sample(t(1023, 33), 0, kind="large", note="down the columns", gradient=False)
    yield sample(t(33, 1023), (1,), True, kind="large", note="along the rows", gradient=False)


@inputs("prod")
def product_of_many(t: Maker) -> Iterator[Sample]:
    """Yield long products that neither underflow nor overflow."""
    yield sample(factors(t, 1023), 0, kind="large", gradient=False)
    yield sample(factors(t, 1023, 3), (0,), True, kind="large", gradient=False)


@inputs("sum", "mean", "prod")
def in_another_dtype(t: Maker) -> Iterator[Sample]:
    """Yield ``dtype``, to which the input is cast first, without derivatives: finite differences would be those of the
    narrow dtype."""
    yield sample(t(3, 5), 1, dtype=t.dtype)
    if t.operator != "mean" or t.is_floating or t.is_complex:
        yield sample(t(3, 5), (0,), True, dtype=narrow_dtype(t), gradient=False)
    if t.is_integer or t.is_bool:
        yield sample(t(2, 3), dtype=float32)


@inputs("prod")
def of_zeros(t: Maker) -> Iterator[Sample]:
    """Yield one zero in a row, and two: a derivative that divides by the element is wrong there."""
    x = t(3, 4)
    x[0, 1] = x[1, 0] = x[1, 3] = 0
    yield sample(x, 1, note="zeros")
    yield sample(x, (0, 1), note="zeros")


@inputs(*MOMENTS)
def moments_over_dims(t: Maker) -> Iterator[Sample]:
    """Yield dims, ``keepdim`` and corrections. If all elements are equal, the deviation has no derivative."""
    yield sample(t(3, 5), (1,))
    yield sample(t(17), 0, correction=0, layouts=UNLIKE)
    yield sample(t(9), 0, gradient=False, layouts=(BROADCAST,))
    yield sample(t(2, 3, 4), 1, correction=2, keepdim=True)
    yield sample(t(4, 3, 2), (0, -1), correction=0.5)
    yield sample(t(3, 5), None, keepdim=True)
    yield sample(t(7), layouts=UNLIKE)
    yield sample(t(2, 3, 1, 3), [-1, 1], correction=1)
    yield sample(t(), 0, correction=0, kind="0-d", gradient=False)
    yield sample(t(3, 0), 0, kind="zero-size", note="nothing is kept")
    yield sample(t(2, 0, 3), (0, 2), keepdim=True, kind="zero-size", note="nothing is kept")
    yield sample(t(1, 4), 0, correction=0, kind="length-1", gradient=False)
    yield sample(t(LONG), kind="large", gradient=False)
    yield sample(t(1023, 33), 0, kind="large", gradient=False)


@inputs(*UNBIASED)
def moments_by_the_older_name(t: Maker) -> Iterator[Sample]:
    """Yield calls with and without the correction, over one dim, several and all."""
    yield sample(t(3, 5), (1,))
    yield sample(t(2, 3, 4), 1, False)
    yield sample(t(2, 3, 4), (0, -1), True, True)
    yield sample(t(3, 5), None, unbiased=False, keepdim=True)
    yield sample(t(), 0, False, kind="0-d", gradient=False)
    yield sample(t(3, 0), 0, kind="zero-size", note="nothing is kept")
    yield sample(t(1, 4), 0, False, kind="length-1", gradient=False)


@inputs(*OF_ALL)
def moments_of_all(t: Maker) -> Iterator[Sample]:
    """Yield calls with and without the correction."""
    yield sample(t(3, 5), True, layouts=UNLIKE)
    yield sample(t(2, 3, 2), False, layouts=UNLIKE)
    yield sample(t(), False, kind="0-d", gradient=False)
    yield sample(t(1), False, kind="length-1", gradient=False)
    yield sample(t(0), True, kind="zero-size", gradient=False)


@inputs("sum_to_size")
def sum_to_sizes(t: Maker) -> Iterator[Sample]:
    """Yield missing dims, and dims of size 1."""
    yield sample(t(2, 3, 4), (3, 1))
    yield sample(t(2, 3, 4), (1, 3, 1))
    yield sample(t(2, 3), [3])
    yield sample(t(2, 3), (1, 1))
    yield sample(t(3, 5), (3, 5), note="nothing is summed")
    yield sample(t(2, 3), (), note="everything is summed")
    yield sample(t(), (), kind="0-d")
    yield sample(t(2, 0), (2, 1), kind="zero-size")
    yield sample(t(1), (1,), kind="length-1")
    yield sample(t(1023, 33), (33,), kind="large", gradient=False)


@mistakes("sum_to_size")
def no_expansion(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not expand to that of the input."""
    for size in ((2, 4), (5, 2, 3), (0, 3), (3, 2)):
        yield sample(t(2, 3), size, note=str(size))


@inputs("var")
def variance_of_far_numbers(t: Maker) -> Iterator[Sample]:
    """Yield numbers with a large mean and a small variance, for which the mean of squares minus the squared mean
    cancels."""
    if t.is_floating and t.dtype.itemsize > 2:
        yield sample(t(3, 17, low=999.0, high=1001.0), 1, note="far from 0")


@inputs(*PLACES, *BOTH)
def indices_along_a_dim(t: Maker) -> Iterator[Sample]:
    """Yield each dim; the first of equal extremes is returned, which integers and bools have."""
    yield sample(t(3, 5), 1)
    yield sample(t(17), 0, True)
    yield sample(t(2, 3, 4), 1)
    yield sample(t(2, 3, 4), -1, keepdim=True)
    yield sample(t(4, 3, 2), dim=-3)
    yield sample(t(2, 3, 2, 3), 2, False)
    tied = t(3, 4)
    tied[:, 2] = tied[:, 0]
    tied[1] = tied[1, 0]
    yield sample(tied, 1, note="ties", gradient=False)
    yield sample(t(), 0, kind="0-d")
    yield sample(t(), -1, True, kind="0-d")
    yield sample(t(0, 3), 1, kind="zero-size", note="nothing is kept")
    yield sample(t(3, 2, 0), 0, True, kind="zero-size", note="nothing is kept")
    yield sample(t(4, 1), 1, kind="length-1")
    yield sample(t(1), 0, True, kind="length-1")
    yield sample(t(LONG), 0, kind="large", gradient=False)
    yield sample(t(1023, 33), 0, kind="large", gradient=False)
    yield sample(t(33, 1023), 1, True, kind="large", gradient=False)


@inputs(*PLACES)
def indices_in_all(t: Maker) -> Iterator[Sample]:
    """Yield calls without a dim, which return the index in the flattened tensor."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 4), None, True)
    yield sample(t(), kind="0-d")
    yield sample(t(1, 1), kind="length-1")
    yield sample(t(77, 33), kind="large")


@mistakes("sum", "mean", "prod", "logsumexp", *EXTREMES, *TRUTHS, *MOMENTS, *UNBIASED)
def wrong_dims(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, duplicate dims, and dims that are not integers."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), (0, -3), note="out of range")
    yield sample(t(), 1, note="out of range")
    yield sample(t(2, 3), (1, -1), note="twice")
    yield sample(t(2, 3), 1.0, note="no integer")
    yield sample(t(2, 3), "rows", note="no integer")


@mistakes(*PLACES, *BOTH)
def wrong_dim(t: Maker) -> Iterator[Sample]:
    """Yield a dim out of range, and several dims for functions of one."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), -3, note="out of range")
    yield sample(t(2, 3), (0, 1), note="several")
    yield sample(t(2, 3), 0.5, note="no integer")


@mistakes(*EXTREMES, *PLACES, *BOTH)
def extreme_of_nothing(t: Maker) -> Iterator[Sample]:
    """Yield reductions over no elements, which have no extreme."""
    yield sample(t(3, 0), 1)
    yield sample(t(0), 0)
    if t.operator not in BOTH:
        yield sample(t(2, 0), None)


@mistakes("mean")
def mean_in_integers(t: Maker) -> Iterator[Sample]:
    """Yield an integer dtype, which a mean does not have."""
    yield sample(t(2, 3), dtype=int64)


@special("sum", "mean", *EXTREMES, *PLACES, *TRUTHS, "prod", "logsumexp", *SPREADS)
def not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN at every position of a row, and infinities, whose sum is infinite or NaN. Sums of complex infinities
    depend on the order and are left out."""
    if not t.is_floating:
        return
    nan, inf = float("nan"), float("inf")
    for row in ([nan, 1, 2, 3, 4], [1, 2, nan, 3, 4], [1, 2, 3, 4, nan], [inf, 1, 2, nan, -inf], [nan] * 5):
        yield sample(t.array([row, [1, 2, 3, 4, 5]]), 1, note="NaN")
    yield sample(t.array([[inf, 1, 2], [-inf, 1, 2], [inf, inf, 2], [-inf, -inf, -inf], [inf, -inf, 0]]), 1)
    yield sample(t.array([[0.0, 0.0], [-0.0, -0.0], [-0.0, -0.0]]), 1, note="signed zeros of one kind")


@special(*BOTH)
def indices_of_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN, of which the first one is the extreme."""
    if not t.is_floating:
        return
    nan, inf = float("nan"), float("inf")
    yield sample(t.array([[1, nan, 2, nan], [inf, inf, 1, -inf], [-inf, -inf, 0, nan], [nan, 9, 9, 9]]), 1)
    yield sample(t.array([nan, 1, nan, inf]), 0, True)


@special("sum", "prod", *EXTREMES, *PLACES, *BOTH, *TRUTHS)
def extremes_of_integers(t: Maker) -> Iterator[Sample]:
    """Yield the largest and the least integers of the dtype; sums and products are modulo 2**64."""
    if t.is_bool:
        for row in ([True] * 3, [False] * 3, [True, False, True]):
            yield sample(t.array(row), 0)
        return
    if not t.is_integer:
        return
    limits = np.iinfo(t.numpy)
    ends = np.array([[limits.max, limits.max, limits.min], [limits.min, limits.min, limits.max], [0, 1, 0]], t.numpy)
    yield sample(ends, 1)
    yield sample(ends, 0)


@special("sum", "mean")
def beyond_the_largest(t: Maker) -> Iterator[Sample]:
    """Yield half precision, which is summed in float32 and rounded once; the sum of many ones must not stop at the
    precision of the dtype."""
    if t.dtype.is_half:
        yield sample(t.array(np.ones(1000)), 0, note="a thousand ones")
        yield sample(t.array(np.full(4096, 8.0)), 0, note="the running sum passes the integers that the dtype holds")


@special(*SPREADS)
def too_few(t: Maker) -> Iterator[Sample]:
    """Yield no degrees of freedom: 0 / 0 is NaN, and a positive number divided by 0 is infinite."""
    yield sample(t(3, 1), 1, note="one element")
    yield sample(t(3), 0, correction=3, note="as many elements as the correction")
    yield sample(t(3), 0, correction=5, note="fewer elements than the correction")
    yield sample(t(0), None, note="no elements")


@special("logsumexp")
def far_exponents(t: Maker) -> Iterator[Sample]:
    """Yield exponents that overflow or underflow without the shift."""
    if not t.is_floating:
        return
    inf = float("inf")
    yield sample(t.array([[-inf, -inf, -inf], [-inf, 0, 1], [inf, 0, 1]]), 1)
    yield sample(t.array([[1000.0, 1000.5, 999.0], [-1000.0, -1000.5, -999.0]]), (1,))
