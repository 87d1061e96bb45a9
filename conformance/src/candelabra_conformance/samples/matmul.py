"""Samples of the matrix product, for every pair of ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

SHAPES = (
    ((3, 5), (5, 4)),
    ((17, 33), (33, 5)),
    ((7,), (7,)),
    ((3, 5), (5,)),
    ((4,), (4, 3)),
    ((2, 3, 5), (5, 4)),
    ((3, 5), (2, 5, 4)),
    ((2, 3, 4), (2, 4, 2)),
    ((4,), (2, 4, 3)),
    ((2, 3, 4), (4,)),
    ((2, 1, 3, 4), (3, 4, 2)),
    ((1, 3, 4), (2, 4, 1)),
)
ONE = (((1, 1), (1, 1)), ((1,), (1,)), ((3, 1), (1, 4)), ((1, 5), (5, 1)), ((1, 2, 1), (1, 1, 3)))
NONE = (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0,), (0,)), ((0, 2, 3), (3, 2)), ((2, 2, 0), (2, 0, 3)))
LARGE = (((3, 4096), (4096, 2)), ((65, 129), (129, 33)), ((20_000,), (20_000,)))
UNFIT = (
    ((2, 3), (4, 2), "inner sizes"),
    ((3,), (4,), "inner sizes"),
    ((2, 3), (2,), "inner sizes"),
    ((2, 2, 3), (3, 3, 2), "batches"),
    ((), (3,), "no dims"),
    ((2, 3), (), "no dims"),
)


@inputs("matmul")
def products(t: Maker) -> Iterator[Sample]:
    """Yield vectors, matrices and batches that broadcast, and sums without terms, which are 0."""
    for a, b in SHAPES:
        yield sample(t(*a), t(*b), core=2)
    for a, b in ONE:
        yield sample(t(*a), t(*b), kind="length-1", core=2)
    for a, b in NONE:
        yield sample(t(*a), t(*b), kind="zero-size", core=2)
    for a, b in LARGE:
        yield sample(t(*a), t(*b), kind="large", core=2, gradient=False)


@inputs("matmul")
def examples_of_batches(t: Maker) -> Iterator[Sample]:
    """Yield five dims: kernels collapse the batch dims, and may do so only where strides allow it."""
    yield sample(t(2, 1, 2, 2, 3), t(2, 2, 1, 3, 2), core=2)
    yield sample(t(2, 2, 1, 1, 3), t(2, 2, 1, 3, 2), core=2)


@inputs("matmul")
def a_matrix_by_itself(t: Maker) -> Iterator[Sample]:
    """Yield the same tensor twice, without derivatives, since finite differences would change both."""
    x = t(3, 3)
    yield sample(x, x, core=2, note="square", gradient=False)


@mistakes("matmul")
def sizes_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield inner sizes and batches that do not match, 0-d tensors, and arguments that are not tensors."""
    for a, b, note in UNFIT:
        yield sample(t(*a), t(*b), note=note)
    yield sample(t(2, 2), 3, note="a number")
    yield sample(t(2, 2), None, note="nothing")


@special("matmul")
def not_finite_products(t: Maker) -> Iterator[Sample]:
    """Yield 0 * inf, which is NaN, and a NaN, which affects its row and column only."""
    if not t.is_floating:
        return
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([[inf, 0.0], [1.0, 2.0]]), t.array([[0.0, 1.0], [1.0, 1.0]]), note="infinity by 0")
    yield sample(t.array([[nan, 1.0], [1.0, 2.0], [0.0, 0.0]]), t.array([[1.0, 2.0], [3.0, 4.0]]), note="NaN")


@special("matmul")
def wrapping_products(t: Maker) -> Iterator[Sample]:
    """Yield integer products that wrap around."""
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        a = np.array([[limits.max, 2, 1], [limits.min, 3, 5]], t.numpy)
        b = np.array([[limits.max, 1], [7, limits.min], [1, 1]], t.numpy)
        yield sample(a, b)
