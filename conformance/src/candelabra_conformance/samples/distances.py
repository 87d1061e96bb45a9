"""Samples of distances between points and angles between vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

INF = math.inf
ORDERS: Final = (2.0, 1.0, 0.0, 3.0, 2.5, INF)
POINTS: Final[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]] = (
    ((4, 3), (5, 3)),
    ((2, 3, 2), (1, 4, 2)),
    ((17, 5), (3, 5)),
    ((2, 1, 3, 4), (3, 2, 4)),
)

AS_GIVEN: Final = ("contiguous", "transposed", "offset", "step")
"""The layouts that do not change values, for arguments that depend on each other."""


def _lengths(x1: Array, x2: Array, p: float) -> Any:
    """Return all distances of float64 points, for the operator that takes them as an argument."""
    d = np.abs(x1.real[..., :, None, :].astype(np.float64) - x2.real[..., None, :, :].astype(np.float64))
    if p == 0:
        return (d != 0).sum(-1)
    return d.max(-1) if p == INF else (d**p).sum(-1) ** (1 / p)


def _smooth(t: Maker, p: float) -> bool:
    """Return whether there is a derivative; in half precision, rounding decides which difference is the largest."""
    return p != 0 and (p != INF or t.dtype.itemsize > 2)


def _on_grid(array: Array) -> Array:
    """Round to multiples of 1/8, whose differences are exact in every dtype, so that the largest one is unique."""
    return (np.round(array.real.astype(np.float64) * 8) / 8).astype(array.dtype)


@inputs("distances", "euclidean_distances", "distances_backward")
def all_pairs(t: Maker) -> Iterator[Sample]:
    """Yield each order, and batches that broadcast. The derivative's operator also gets the distances."""
    euclidean, backward = t.operator == "euclidean_distances", t.operator == "distances_backward"

    def pair(a: tuple[int, ...], b: tuple[int, ...], p: float, kind: str = "ordinary") -> Sample:
        x1, x2 = t(*a), t(*b)
        note, smooth = f"{a} {b} {p}", _smooth(t, p)
        if euclidean:
            return sample(x1, x2, core=2, kind=kind, note=note)
        if not backward:
            return sample(x1, x2, p, core=2, kind=kind, note=note, gradient=smooth)
        if p == INF:
            x1, x2 = _on_grid(x1), _on_grid(x2)
        out = t.array(_lengths(x1, x2, p))
        g = t(*out.shape) if p != INF else _on_grid(t(*out.shape))
        # The distances belong to the points: no layout may change one without the other.
        options: dict[str, Any] = {"kind": kind, "layouts": AS_GIVEN, "exact": p == INF, "gradient": False}
        return sample(g, x1, x2, out, p, core=2, note=note, **options)

    for i, p in enumerate((2.0,) * len(POINTS) if euclidean else ORDERS):
        a, b = POINTS[i % len(POINTS)]
        yield pair(a, b, p)
    if not euclidean and not backward:
        yield pair((2, 3, 2), (1, 4, 2), 2.0)
    if backward:
        yield pair((4, 3), (5, 3), 1.0)
    for a, b in (((0, 3), (2, 3)), ((2, 3), (0, 3)), ((0, 2, 3), (0, 1, 3))):
        yield pair(a, b, 2.0, ZERO_SIZE)
    yield pair((1, 1), (1, 1), 3.0, LENGTH_ONE)
    yield pair((40, 33), (35, 33), 2.0, LARGE)


@special("distances", "euclidean_distances")
def meeting_points(t: Maker) -> Iterator[Sample]:
    """Yield equal points, with the distance 0, and one with NaN, whose distances are NaN."""
    rest = () if t.operator == "euclidean_distances" else (2.0,)
    whole = t.array([[1.0, 2.0], [0.0, 0.0], [-1.0, 4.0]])
    yield sample(whole, whole.copy(), *rest, note="the same points")
    if t.is_floating:
        yield sample(t.array([[math.nan, 1.0], [1.0, 1.0]]), t.array([[1.0, 1.0]]), *rest, note="nan")


@inputs("pdist")
def pairs_of_one(t: Maker) -> Iterator[Sample]:
    """Yield each order, with few points and many."""
    for p in ORDERS:
        yield sample(t(5, 3), p, gradient=_smooth(t, p), note=f"{p}")
    yield sample(t(2, 8), core=2)
    yield sample(t(1, 3), 1.0, kind=LENGTH_ONE)
    yield sample(t(2, 1), 1.0, kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)
    yield sample(t(3, 0), 2.0, kind=ZERO_SIZE)
    yield sample(t(40, 17), kind=LARGE)
    yield sample(t(33, 70), INF, kind=LARGE, gradient=_smooth(t, INF))


@inputs("pdist_backward")
def gradients_of_pairs(t: Maker) -> Iterator[Sample]:
    """Yield each order with the distances of the points, of few points and of many."""

    def points(n: int, k: int, p: float, kind: str = "ordinary") -> Sample:
        x = t(n, k) if p != INF else _on_grid(t(n, k))
        upper = np.triu_indices(n, 1)
        out = t.array(_lengths(x, x, p)[upper])
        g = t(*out.shape) if p != INF else _on_grid(t(*out.shape))
        return sample(g, x, out, p, note=f"{n} {k} {p}", kind=kind, layouts=AS_GIVEN, exact=p == INF, gradient=False)

    for p in ORDERS:
        yield points(5, 3, p)
    yield points(2, 1, 1.0, LENGTH_ONE)
    yield points(1, 3, 2.0, LENGTH_ONE)
    yield points(0, 3, 2.0, ZERO_SIZE)
    yield points(3, 0, 2.0, ZERO_SIZE)
    for n, k, p in ((40, 17, 2.0), (70, 5, 1.0), (67, 9, INF)):
        yield points(n, k, p, LARGE)


@special("pdist_backward")
def meeting_pairs(t: Maker) -> Iterator[Sample]:
    """Yield equal points, whose distance of 0 has the gradient 0."""
    x = t.array([[1.0, 2.0], [1.0, 2.0], [-1.0, 4.0]])
    out = t.array(_lengths(x, x, 1.0)[np.triu_indices(3, 1)])
    yield sample(t.array([2.0, -1.0, 3.0]), x, out, 1.0, note="the same points")


@mistakes("pdist")
def no_points(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not floating matrices, and invalid orders."""
    yield sample(t.of("float32")(3), note="a vector")
    yield sample(t.of("float32")(2, 3, 2), note="a batch")
    yield sample(t.of("int64")(3, 2), note="integers")
    yield sample(t.of("float32")(3, 2), -1.0, note="a negative order")


@inputs("cdist")
def pairs(t: Maker) -> Iterator[Sample]:
    """Yield each order, with few points and many, with and without a matrix product."""
    for i, p in enumerate(ORDERS):
        a, b = POINTS[i % len(POINTS)]
        yield sample(t(*a), t(*b), p, core=2, gradient=_smooth(t, p), note=f"{a} {b} {p}")
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        yield sample(t(4, 3), t(2, 5, 3), 2.0, mode, core=2, note=mode)
    yield sample(t(1, 1), t(1, 1), kind=LENGTH_ONE)
    yield sample(t(0, 3), t(2, 3), kind=ZERO_SIZE)
    yield sample(t(2, 0), t(3, 0), kind=ZERO_SIZE)
    yield sample(t(40, 7), t(35, 7), kind=LARGE)


@mistakes("cdist")
def no_pairs(t: Maker) -> Iterator[Sample]:
    """Yield rows that are not floating or not of one length, and unknown orders and modes."""
    real = t.of("float32")
    yield sample(real(3), real(2, 3), note="a vector")
    yield sample(real(2, 3), real(3), note="a vector, second")
    yield sample(real(2, 3), t.of("int64")(2, 3), note="integers")
    yield sample(real(2, 3), real(2, 4), note="columns differ")
    yield sample(real(2, 3), real(2, 3), -1.0, note="a negative order")
    yield sample(real(2, 3), real(2, 3), 2.0, "fast", note="a mode")


only(lambda d: d.category == FLOATING, "cdist")


@inputs("pairwise_distance")
def rows(t: Maker) -> Iterator[Sample]:
    """Yield each order, tensors that broadcast, and another epsilon. Unsigned points are subtracted from larger
    ones."""
    unsigned = t.dtype.name.startswith("u")
    far: dict[str, Any] = {"low": 5, "high": 9} if unsigned else {}
    near: dict[str, Any] = {"low": 0, "high": 4} if unsigned else {}
    for p in (2.0, 1.0, 3.0, INF):
        yield sample(t(4, 3, **far), t(4, 3, **near), p, note=f"{p}")
    yield sample(t(4, 3, **far), t(3, **near), keepdim=True, note="broadcast, kept")
    yield sample(t(2, 4, 3, **far), t(4, 3, **near), 2.0, 0.5, note="a larger epsilon")
    yield sample(t(1, 1, **far), t(1, 1, **near), kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 3), kind=ZERO_SIZE)


only(lambda d: d.name != "bool", "pairwise_distance")


@inputs("cosine_similarity")
def angles(t: Maker) -> Iterator[Sample]:
    """Yield any dim, tensors that broadcast, and a large epsilon."""
    yield sample(t(2, 3), t(2, 3))
    yield sample(t(5), t(5), 0)
    yield sample(t(2, 3, 4), t(3, 1), -2, note="broadcast")
    yield sample(t(3, 8), t(3, 8), -1, 1e-6)
    yield sample(t(2, 3, low=0.1, high=0.4), t(2, 3), 1, 5.0, note="shorter than epsilon")
    yield sample(t(2, 3), t(1, 3), dim=1, eps=1e-4)
    yield sample(t(1, 1), t(1, 1), kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 3), kind=ZERO_SIZE)
    yield sample(t(2, 0), t(2, 0), kind=ZERO_SIZE)
    yield sample(t(3, 5001), t(3, 5001), kind=LARGE)


@special("cosine_similarity")
def no_angles(t: Maker) -> Iterator[Sample]:
    """Yield a vector of zeros, whose cosine is 0, and NaN, which must not affect other vectors."""
    if t.is_floating:
        yield sample(t.array([[0.0, 0.0], [1.0, 0.0]]), t.array([[1.0, 2.0], [-3.0, 0.0]]), note="zeros")
        yield sample(t.array([[math.nan, 1.0], [1.0, 1.0]]), t.array([[1.0, 2.0], [2.0, 2.0]]), note="nan")


@mistakes("cosine_similarity")
def unfit_angles(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not broadcast, and a dim out of range."""
    yield sample(t(2, 3), t(2, 4), note="sizes")
    yield sample(t(2, 3), t(2, 3), 2, note="dim out of range")
    yield sample(t(3), t(3), note="the default dim of a vector")
