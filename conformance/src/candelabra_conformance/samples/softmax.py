"""Samples of softmax, its logarithm, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra.dtypes import FLOATING, float32, float64

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import Sample, sample

FORWARD = ("softmax", "log_softmax")
IN_DTYPE = ("softmax_in_dtype", "log_softmax_in_dtype")
BACKWARD = ("softmax_backward", "log_softmax_backward", "log_softmax_along")
only(lambda d: d.category <= FLOATING, *IN_DTYPE)
CASES = (
    ((3, 5), 1, "ordinary"),
    ((3, 5), 0, "ordinary"),
    ((17,), -1, "ordinary"),
    ((2, 3, 4), 1, "ordinary"),
    ((2, 3, 1, 5), -1, "ordinary"),
    ((4, 2, 3), -3, "ordinary"),
    ((), 0, "0-d"),
    ((), -1, "0-d"),
    ((0,), 0, "zero-size"),
    ((3, 0), 1, "zero-size"),
    ((3, 0), 0, "zero-size"),
    ((3, 1), 1, "length-1"),
    ((1,), 0, "length-1"),
    ((100_000,), 0, "large"),
    ((33, 1023), 1, "large"),
    ((1023, 33), 0, "large"),
)


@inputs(*FORWARD)
def along_each_dim(t: Maker) -> Iterator[Sample]:
    """Yield rows, columns, and middle dims."""
    for shape, dim, kind in CASES:
        yield sample(t(*shape), dim, kind=kind, gradient=kind != "large")
    yield sample(t(4, 7), dim=1, note="by keyword")
    yield sample(t(2, 1, 2, 2, 3), 4)


@inputs(*IN_DTYPE)
def in_another_dtype(t: Maker) -> Iterator[Sample]:
    """Yield calls with and without a cast, the former without derivatives: finite differences would be those of the
    narrow dtype."""
    if t.is_floating:
        yield sample(t(3, 5), 1)
        yield sample(t(3, 5), 0, t.dtype)
    yield sample(t(3, 5, low=-2, high=2), 1, float64)
    yield sample(t(2, 3, 4, low=-2, high=2), dim=1, dtype=float32, gradient=False)
    yield sample(t(), 0, float64, kind="0-d")
    yield sample(t(3, 0), 1, float64, kind="zero-size")
    yield sample(t(1), 0, float64, kind="length-1")


@inputs(*BACKWARD)
def backwards(t: Maker) -> Iterator[Sample]:
    """Yield an incoming gradient and the output of the forward function."""
    for shape, dim, kind in CASES:
        positive = t(*shape, low=0.05, high=0.9)
        output: Array = positive if t.operator == "softmax_backward" else t(*shape, low=-3.0, high=-0.1)
        yield sample(t(*shape), output, dim, kind=kind, gradient=kind != "large")


@mistakes(*FORWARD)
def wrong_dim(t: Maker) -> Iterator[Sample]:
    """Yield a dim out of range, none, and several."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), -3, note="out of range")
    yield sample(t(), 1, note="out of range")
    yield sample(t(2, 3), None, note="none")
    yield sample(t(2, 3), (0, 1), note="several")


@mistakes(*BACKWARD)
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match, and a dim out of range."""
    yield sample(t(2, 3), t(2, 4), 1, note="shapes")
    yield sample(t(2, 3), t(2, 3), 2, note="out of range")


@special(*FORWARD)
def large_differences(t: Maker) -> Iterator[Sample]:
    """Yield exponents that overflow without the shift, masked rows, and NaN, which stays in its row."""
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([[1000.0, 1000.5, 999.0], [-1000.0, -1000.5, -999.0], [60000.0, -60000.0, 0.0]]), 1)
    yield sample(t.array([[-inf, 0.0, 1.0], [-inf, -inf, 2.0]]), 1, note="masked")
    yield sample(t.array([[-inf, -inf, -inf], [0.0, 1.0, 2.0]]), 1, note="nothing but masked: NaN")
    yield sample(t.array([[nan, 0.0, 1.0], [0.0, 1.0, 2.0]]), 1, note="NaN")
    yield sample(t.array([[inf, 0.0, 1.0], [inf, inf, 2.0]]), 1, note="infinity: NaN")
