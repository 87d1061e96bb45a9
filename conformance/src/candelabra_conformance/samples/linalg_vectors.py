"""Samples of norms, cross and dot products of vectors, and of the exponential of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator

from candelabra_conformance.samples.conditioned import NO_SQUARES, matrix
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

INF, NAN = math.inf, math.nan
ORDERS = (2.0, 0.0, 1.0, 3.0, 0.5, -1.0, -2.0, INF, -INF)


@inputs("linalg_vector_norm")
def vector_norms(t: Maker) -> Iterator[Sample]:
    """Yield each order over the last dim, and the orders 2 and 3 over all other choices of dims."""
    for order in ORDERS:
        yield sample(t(2, 5), order, -1, False, gradient=order != 0, note=f"order {order}")
    yield sample(t(3, 4), 2.0, note="all dims")
    yield sample(t(2, 3, 5), 2.0, 0, True, note="the first, kept")
    yield sample(t(2, 3, 5), 3.0, (1,), False, note="the middle")
    yield sample(t(2, 3, 5), 2.0, (0, -1), True, note="two, kept")
    yield sample(t(2, 3, 4), INF, (1, 2), False, note="two")
    yield sample(t(2, 3), 1.0, None, True, note="all, kept")
    yield sample(t(), 2.0, kind=ZERO_DIM)
    yield sample(t(1), 3.0, 0, False, kind=LENGTH_ONE)
    yield sample(t(0), 2.0, kind=ZERO_SIZE)
    yield sample(t(2, 0), 1.0, 1, True, kind=ZERO_SIZE)
    yield sample(t(0, 3), INF, 1, False, kind=ZERO_SIZE)
    yield sample(t(100_000, low=-0.1, high=0.1), 2.0, kind=LARGE)
    yield sample(t(3, 40_003, low=-0.1, high=0.1), 1.0, 1, False, kind=LARGE)


@special("linalg_vector_norm")
def odd_norms(t: Maker) -> Iterator[Sample]:
    """Yield NaN, infinities and zeros."""
    if not t.is_floating and not t.is_complex:
        return
    rows = t.array([[0.0, 0.0], [1.0, INF], [1.0, -INF], [2.0, NAN], [-0.0, 3.0]])
    for order in (0.0, 1.0, 2.0, INF, -INF):
        yield sample(rows, order, 1, False, note=f"order {order}")


@mistakes("linalg_vector_norm")
def no_norms(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range."""
    yield sample(t(2, 3), 2.0, 2, False, note="dim out of range")
    yield sample(t(2, 3), 2.0, (0, -2), False, note="a dim twice")
    yield sample(t.of("int64")(2, 3), 2.0, note="integers")


@inputs("linalg_cross")
def linalg_crosses(t: Maker) -> Iterator[Sample]:
    """Yield vectors along any dim, and other dims that broadcast."""
    yield sample(t(3), t(3))
    yield sample(t(4, 3), t(4, 3), dim=-1)
    yield sample(t(3, 5), t(3, 1), dim=0, note="the first, broadcast")
    yield sample(t(2, 3, 4), t(1, 3, 4), dim=1, note="the middle")
    yield sample(t(0, 3), t(1, 3), kind=ZERO_SIZE)
    yield sample(t(1, 3), t(1, 3), dim=1, kind=LENGTH_ONE)


@inputs("cross_product")
def crosses(t: Maker) -> Iterator[Sample]:
    """Yield the samples of :func:`linalg_crosses` with a non-negative dim."""
    yield sample(t(3), t(3), 0)
    yield sample(t(4, 3), t(4, 3), 1)
    yield sample(t(3, 5), t(3, 1), 0)
    yield sample(t(2, 3, 4), t(1, 3, 4), 1)
    yield sample(t(0, 3), t(1, 3), 1, kind=ZERO_SIZE)
    yield sample(t(17_000, 3), t(17_000, 3), 1, kind=LARGE)


@mistakes("linalg_cross")
def no_crosses(t: Maker) -> Iterator[Sample]:
    """Yield vectors of a size other than 3."""
    yield sample(t(2), t(2), note="length 2")
    yield sample(t(3, 2), t(3, 2), dim=1, note="the wrong dim")
    yield sample(t(2, 3), t(3), note="dims differ")
    yield sample(t(2, 3), t(4, 3), note="no broadcast")
    yield sample(t(2, 3), t(2, 3), dim=2, note="dim out of range")


@inputs("linalg_vecdot")
def vector_products(t: Maker) -> Iterator[Sample]:
    """Yield any dim, tensors that broadcast, and complex vectors, of which the first is conjugated."""
    yield sample(t(5), t(5))
    yield sample(t(2, 3), t(2, 3), dim=-1)
    yield sample(t(3, 1), t(3, 4), dim=0, note="the first, broadcast")
    yield sample(t(2, 8, 3), t(8, 1), dim=1, note="the middle")
    yield sample(t(4, 17), t(17), note="a vector beside a matrix")
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(2, 0), t(2, 0), kind=ZERO_SIZE)
    yield sample(t(0, 3), t(3), kind=ZERO_SIZE)
    yield sample(t(20_001, low=0, high=1), t(20_001, low=0, high=1), kind=LARGE)


@mistakes("linalg_vecdot")
def no_vector_products(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not match, and dims out of range."""
    yield sample(t(3), t(2), note="lengths")
    yield sample(t(2, 3), t(2, 3), dim=2, note="dim out of range")


@inputs("linalg_matrix_exp")
def exponentials(t: Maker) -> Iterator[Sample]:
    """Yield small matrices, and others that are halved several times, in one batch too."""
    for shape in ((2, 2), (2, 3, 3), (5, 5), (2, 1, 8, 8)):
        n = shape[-1]
        yield sample(t(*shape, low=-1.0 / n, high=1.0 / n), core=2, note=f"{shape}")
    yield sample(t(3, 3, low=-1.5, high=1.5), core=2, note="halved")
    scales = t.array([[[0.01]], [[1.0]], [[0.3]]])
    yield sample((t(3, 2, 2, low=-1.5, high=1.5) * scales).astype(t.numpy), core=2, note="halved unequally")
    yield sample(matrix(t, 1, 1), kind=LENGTH_ONE)
    for shape in NO_SQUARES:
        yield sample(t(*shape), kind=ZERO_SIZE)
    yield sample(t(17, 17, low=-0.05, high=0.05), kind=LARGE)


@special("linalg_matrix_exp")
def exact_exponentials(t: Maker) -> Iterator[Sample]:
    """Yield zeros, whose result is the identity, nilpotent matrices, whose result is a polynomial, and NaN."""
    yield sample(t.array([[0.0, 0.0], [0.0, 0.0]]), note="zeros")
    yield sample(t.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), note="nilpotent")
    if t.is_floating:
        whole = t.array([[[NAN, NAN], [NAN, NAN]], [[1.0, 0.0], [0.0, -1.0]]])
        yield sample(whole, note="nan in one of two")


@mistakes("linalg_matrix_exp")
def no_exponentials(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not square floating matrices."""
    yield sample(t.real(3), note="a vector")
    yield sample(t.of("float32")(2, 3), note="not square")
    yield sample(t.of("int64")(2, 2), note="integers")
