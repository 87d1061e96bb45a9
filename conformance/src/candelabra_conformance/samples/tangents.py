"""Samples of derivatives along a tangent: of reductions, of scattered extremes, of mantissas."""

from __future__ import annotations

from collections.abc import Iterator

import candelabra as cd
import numpy as np

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


@inputs("scatter_extreme_along")
def scattered_extremes_along(t: Maker) -> Iterator[Sample]:
    """Yield both extremes, with and without the old value and tangents of the source, and ties, which share theirs."""
    for reduce in ("amax", "amin"):
        for own in (True, False):
            note = f"{reduce} {own}"
            index = t.indices(8, 3, below=5)
            yield sample(t(5, 3), t(8, 3), t(5, 3), 0, index, t(8, 3), reduce, own, note=note)
            yield sample(t(2, 5), None, t(2, 5), -1, t.indices(2, 8, below=5), t(2, 8), reduce, own, note=note)
            tied = np.zeros((8, 3), t.numpy)
            yield sample(t(5, 3), t(8, 3), tied[:5], 0, index, tied, reduce, own, note=f"{note}, ties", gradient=False)
            many = t.indices(301, 33, below=17)
            yield sample(
                t(17, 33), t(301, 33), t(17, 33), 0, many, t(301, 33), reduce, own, kind=LARGE, gradient=False
            )  # fmt: skip
        yield sample(t(2, 3, 4), None, t(2, 3, 4), 1, t.indices(1, 3, 2, below=3), t(1, 3, 2), reduce, True)
        yield sample(
            t(9), t(7), t(9), 0, t.indices(7, below=9), t(7), reduce, True, note="fewer indices", gradient=False
        )
    yield sample(t(), t(), t(), 0, t.indices(below=1), t(), "amax", True, kind=ZERO_DIM)
    yield sample(t(1), t(1), t(1), 0, t.index(0), t(1), "amin", True, kind=LENGTH_ONE)
    yield sample(t(3), t(0), t(3), 0, t.indices(0, below=1), t(0), "amax", True, kind=ZERO_SIZE)
    yield sample(t(0), None, t(0), 0, t.indices(0, below=1), t(0), "amax", True, kind=ZERO_SIZE, note="nothing is kept")


@special("scatter_extreme_along")
def odd_scattered_extremes(t: Maker) -> Iterator[Sample]:
    """Yield NaN, infinities, and infinite tangents of elements that are no extremes."""
    inf, nan = float("inf"), float("nan")
    source, tangents = t.array([1.0, -inf, nan, inf, 2.0]), t.array([inf, 1.0, 2.0, 3.0, 4.0])
    index = t.index(0, 1, 2, 3, 0)
    for own in (True, False):
        x, along = t.array([-1.0, -inf, 0.0, nan, nan]), t.array([inf, 3.0, 1.0, 1.0, 1.0])
        yield sample(along, tangents, x, 0, index, source, "amax", own, note=f"amax {own}")
        yield sample(along, tangents, -x, 0, index, -source, "amin", own, note=f"amin {own}")


@mistakes("scatter_extreme_along")
def unfit_scattered_extremes(t: Maker) -> Iterator[Sample]:
    """Yield tangents of another shape, indices out of bounds, and sizes that do not fit."""
    index = t.index(0, 2)
    yield sample(t(2), t(2), t(3), 0, index, t(2), "amax", True, note="the tangent of the input")
    yield sample(t(3), t(3), t(3), 0, index, t(2), "amax", True, note="the tangent of the source")
    yield sample(t(3), t(2), t(3), 0, t.index(0, 3), t(2), "amax", True, note="beyond")
    yield sample(t(3), None, t(3), 0, t.index(-1, 0), t(2), "amin", False, note="before")
    yield sample(t(3, 2), None, t(3, 2), 0, index, t(2), "amax", True, note="dims differ")


@inputs("frexp_along")
def mantissas_along(t: Maker) -> Iterator[Sample]:
    """Yield numbers of several powers of two, and a tangent for all."""
    scales = np.array([0.01, 0.3, 1.0, 7.0, 100.0], t.numpy)
    yield sample(t(3, 5), t(3, 5) * scales)
    yield sample(t(), t(3, 5) * scales, note="broadcast")
    yield sample(t(), t(), kind=ZERO_DIM)
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(0, 2), t(0, 2), kind=ZERO_SIZE)
    yield sample(t(20_001), t(20_001), kind=LARGE, gradient=False)


@special("frexp_along")
def odd_mantissas(t: Maker) -> Iterator[Sample]:
    """Yield zeros, whose exponent is 0, and the smallest and largest powers of two."""
    least, most = cd.finfo(t.dtype).tiny, cd.finfo(t.dtype).max
    yield sample(t.array([1.0, 2.0, least, 3.0, -1.0]), t.array([0.0, -0.0, least, most, -0.75]))
    if t.dtype.itemsize > 2:
        yield sample(t.array([least, least]), t.array([least * 4, least]), note="small")


@mistakes("frexp_along")
def unfit_mantissas(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast."""
    yield sample(t(2, 3), t(4))


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
