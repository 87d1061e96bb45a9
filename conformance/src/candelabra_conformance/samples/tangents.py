"""Samples of reductions together with their derivatives along a tangent."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.reductions import factors
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

ALONG = ("var_mean_along", "norm_along", "logsumexp_along")


@inputs(*ALONG)
def along_dims(t: Maker) -> Iterator[Sample]:
    """Yield each dim, several at once, and all, with and without ``keepdim``."""
    yield sample(t(3, 5), t(3, 5), (1,))
    yield sample(t(17), t(17), 0)
    yield sample(t(2, 3, 4), t(2, 3, 4), 1, keepdim=True)
    yield sample(t(4, 3, 2), t(4, 3, 2), (0, -1))
    yield sample(t(3, 5), t(3, 5), None, keepdim=True)
    if t.operator == "var_mean_along":
        yield sample(t(2, 3, 4), t(2, 3, 4), 1, correction=0)
        yield sample(t(2, 5), t(2, 5), 1, correction=0.5, keepdim=True)
        yield sample(t(), t(), 0, correction=0, kind=ZERO_DIM, gradient=False)
        yield sample(t(1, 4), t(1, 4), 0, correction=0, kind=LENGTH_ONE, gradient=False)
    else:
        yield sample(t(), t(), 0, kind=ZERO_DIM)
        yield sample(t(1, 4), t(1, 4), 0, kind=LENGTH_ONE)
    yield sample(t(3, 0), t(3, 0), 0, kind=ZERO_SIZE, note="nothing is kept")
    yield sample(t(50_001), t(50_001), 0, kind=LARGE, gradient=False)
    yield sample(t(1023, 33), t(1023, 33), 0, kind=LARGE, gradient=False, note="down the columns")
    yield sample(t(33, 1023), t(33, 1023), (1,), keepdim=True, kind=LARGE, gradient=False, note="along the rows")


@inputs("extremum_along")
def extrema_along_dims(t: Maker) -> Iterator[Sample]:
    """Yield both extrema over each choice of dims, and ties, which share the tangent."""
    for largest in (True, False):
        yield sample(t(3, 5), t(3, 5), (1,), largest)
        yield sample(t(17), t(17), (0,), largest, True)
        yield sample(t(2, 3, 4), t(2, 3, 4), (0, 2), largest)
        tied = t(3, 5)
        tied[:, 2] = tied[:, 0]
        tied[1] = tied[1, 0]
        yield sample(t(3, 5), tied, (1,), largest, note="ties", gradient=False)
        yield sample(t(1023, 33), t(1023, 33), (0,), largest, kind=LARGE, gradient=False)
        yield sample(t(33, 1023), t(33, 1023), (1,), largest, kind=LARGE, gradient=False)
    yield sample(t(2, 3), t(2, 3), (), True, note="all dims")
    yield sample(t(), t(), (), True, kind=ZERO_DIM)
    yield sample(t(4, 1), t(4, 1), (1,), False, True, kind=LENGTH_ONE)
    yield sample(t(3, 0), t(3, 0), (0,), True, kind=ZERO_SIZE, note="nothing is kept")


@special("extremum_along")
def odd_extrema(t: Maker) -> Iterator[Sample]:
    """Yield NaN, infinities, and infinite tangents of elements that are no extrema."""
    inf, nan = float("inf"), float("nan")
    x = t.array([[1.0, nan, 3.0], [inf, 1.0, inf], [2.0, 2.0, 1.0], [-inf, -inf, -inf]])
    tangent = t.array([[1.0, 2.0, 3.0], [4.0, 0.5, 6.0], [1.0, 5.0, inf], [1.0, 2.0, 3.0]])
    yield sample(tangent, x, (1,), True)
    yield sample(tangent, x, (1,), False)


@inputs("cumprod_along")
def cumulative_products_along(t: Maker) -> Iterator[Sample]:
    """Yield each dim, zeros in a row, and long rows."""
    yield sample(t(3, 5), t(3, 5), 1)
    yield sample(t(7), t(7), 0)
    yield sample(t(2, 3, 4), t(2, 3, 4), -2)
    yield sample(t(3, 4), _with_zeros(t), 1, note="zeros")
    yield sample(t(), t(), 0, kind=ZERO_DIM)
    yield sample(t(4, 1), t(4, 1), 1, kind=LENGTH_ONE)
    yield sample(t(3, 0), t(3, 0), 1, kind=ZERO_SIZE)
    yield sample(t(1023, 3), factors(t, 1023, 3), 0, kind=LARGE, gradient=False)
    yield sample(t(3, 1023), factors(t, 3, 1023), 1, kind=LARGE, gradient=False)


@inputs("prod_along")
def products_along(t: Maker) -> Iterator[Sample]:
    """Yield each dim, several at once, all of them, and rows with one zero and with two."""
    yield sample(t(3, 5), t(3, 5), (1,))
    yield sample(t(7), t(7), 0, keepdim=True)
    yield sample(t(2, 3, 4), t(2, 3, 4), (0, -1))
    yield sample(t(3, 4), t(3, 4), None)
    yield sample(t(3, 4), _with_zeros(t), 1, note="zeros")
    yield sample(t(), t(), 0, kind=ZERO_DIM)
    yield sample(t(4, 1), t(4, 1), 1, kind=LENGTH_ONE)
    yield sample(t(3, 0), t(3, 0), 1, kind=ZERO_SIZE, note="of nothing")
    yield sample(t(3, 0), t(3, 0), 0, kind=ZERO_SIZE, note="nothing is kept")
    yield sample(t(1023, 33), factors(t, 1023, 33), 0, kind=LARGE, gradient=False)
    yield sample(t(33, 1023), factors(t, 33, 1023), 1, kind=LARGE, gradient=False)


def _with_zeros(t: Maker) -> Array:
    x = t(3, 4)
    x[0, 1] = x[1, 0] = x[1, 3] = 0
    return x


@mistakes("cumprod_along", "prod_along", *ALONG)
def unlike(t: Maker) -> Iterator[Sample]:
    """Yield tangents of another shape, and dims out of range."""
    yield sample(t(2, 4), t(2, 3), 1, note="shapes")
    yield sample(t(3), t(2, 3), 1, note="shapes")
    yield sample(t(2, 3), t(2, 3), 2, note="out of range")


@mistakes("extremum_along")
def unlike_extrema(t: Maker) -> Iterator[Sample]:
    """Yield tangents of another shape, dims out of range, and no elements."""
    yield sample(t(2, 4), t(2, 3), (1,), True, note="shapes")
    yield sample(t(2, 3), t(2, 3), (2,), True, note="out of range")
    yield sample(t(2, 0), t(2, 0), (1,), False, note="no elements")
