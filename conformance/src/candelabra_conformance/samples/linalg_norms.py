"""Samples of norms as users call them, distances between tensors, and products of chains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from candelabra.dtypes import dtype, float64

from candelabra_conformance.samples.conditioned import factorizable, matrix
from candelabra_conformance.samples.linalg_vectors import crosses, no_norms, vector_norms
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

INF: Final = math.inf


def _wider(t: Maker) -> dtype:
    return float64.to_complex() if t.is_complex else float64


# -- vectors ----------------------------------------------------------------------------------------------------------
@inputs("linalg_vector_norm_of_order")
def norms_of_order(t: Maker) -> Iterator[Sample]:
    """Yield the operator's calls, and another dtype."""
    yield from vector_norms(t)
    yield sample(t(2, 5), 3.0, -1, dtype=_wider(t), note="a wider dtype")


@mistakes("linalg_vector_norm_of_order")
def no_norms_of_order(t: Maker) -> Iterator[Sample]:
    """Yield norms without elements, dtypes that cannot represent the numbers, and names as orders."""
    yield from no_norms(t)
    real = t.of("float32")
    yield sample(real(0), INF, note="nothing")
    yield sample(real(2, 0), -1.0, 1, note="nothing along a dim")
    yield sample(real(2), "fro", note="a name")
    yield sample(t.of("float64")(2), dtype=t.of("float32").dtype, note="a narrower dtype")
    yield sample(real(2), dtype=t.of("complex64").dtype, note="a complex dtype")
    yield sample(real(2), dtype=t.of("int64").dtype, note="an integer dtype")


@inputs("dist")
def distances_of_tensors(t: Maker) -> Iterator[Sample]:
    """Yield each order, and tensors that broadcast."""
    for p in (2.0, 1.0, 3.0, 0.5, INF, 0.0):
        yield sample(t(3, 4), t(3, 4), p, gradient=p != 0, note=f"{p}")
    yield sample(t(3, 4), t(4), note="broadcast")
    yield sample(t(), t(2), kind=ZERO_DIM)
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(0), t(0), kind=ZERO_SIZE)


@mistakes("dist")
def no_distances_of_tensors(t: Maker) -> Iterator[Sample]:
    """Yield integers, and sizes that do not match."""
    yield sample(t.of("int64")(3), t.of("int64")(3), note="integers")
    yield sample(t.of("float32")(3), t.of("float32")(2), note="sizes")


@inputs("renorm")
def renormed(t: Maker) -> Iterator[Sample]:
    """Yield slices with norms above and below the limit, along each dim."""
    for p, dim, limit in ((2.0, 0, 1.5), (1.0, 1, 2.0), (INF, -1, 0.9), (3.0, 0, 100.0)):
        yield sample(t(3, 4), p, dim, limit, note=f"{p} {dim} {limit}")
    yield sample(t(2, 3, 4), 2.0, 1, 1.5, note="three dims")
    yield sample(t(1, 1), 2.0, 0, 0.5, kind=LENGTH_ONE)
    yield sample(t(0, 3), 2.0, 0, 0.5, kind=ZERO_SIZE)


@mistakes("renorm")
def not_renormed(t: Maker) -> Iterator[Sample]:
    """Yield vectors, and invalid orders and limits."""
    real = t.of("float32")
    yield sample(real(3), 2.0, 0, 1.0, note="a vector")
    yield sample(real(2, 2), -1.0, 0, 1.0, note="a negative order")
    yield sample(real(2, 2), 1j, 0, 1.0, note="a complex order")
    yield sample(real(2, 2), 1.0, 0, -1.0, note="a negative limit")
    yield sample(t.of("int64")(2, 2), 1.0, 0, 1.0, note="integers")
    yield sample(real(2, 2), 1.0, 2, 1.0, note="dim out of range")


# -- matrices ---------------------------------------------------------------------------------------------------------
ORDERS: Final = ("fro", 1, -1, INF, -INF)
"""The orders of norms that need no singular values."""


def _orders(t: Maker) -> tuple[Any, ...]:
    return (*ORDERS, "nuc", 2, -2) if factorizable(t.dtype) else ORDERS


@inputs("linalg_matrix_norm")
def matrix_norms(t: Maker) -> Iterator[Sample]:
    """Yield each order, any two dims, and ``keepdim``."""
    for order in _orders(t):
        yield sample(matrix(t, 2, 3, 4), order, core=2, note=f"{order}")
        yield sample(matrix(t, 4, 3)[:, None] + t(4, 1, 1) * 0, order, (2, 0), True, note=f"{order} of other dims")
    yield sample(matrix(t, 3, 3), dtype=_wider(t), core=2, note="a wider dtype")
    yield sample(matrix(t, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(t(2, 0, 0), 1, kind=ZERO_SIZE)


@inputs("linalg_norm")
def norms(t: Maker) -> Iterator[Sample]:
    """Yield norms of all elements without an order, and of vectors and matrices with one."""
    yield sample(t(2, 3, 2), note="all elements")
    yield sample(t(2, 3), None, 1, True, note="no order, a dim")
    for order in (2, 0.5, INF):
        yield sample(t(2, 5), order, 1, note=f"{order} of vectors")
    yield sample(t(5), 3, note="a vector")
    for order in _orders(t)[:4]:
        yield sample(matrix(t, 3, 4), order, core=2, note=f"{order}")
    yield sample(matrix(t, 2, 3, 3), "fro", (-2, -1), core=2, note="dims")
    yield sample(t(2, 3), 1, 0, dtype=_wider(t), note="a wider dtype")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(0), kind=ZERO_SIZE)


@inputs("norm")
def older_norms(t: Maker) -> Iterator[Sample]:
    """Yield numeric orders, which are those of vectors, also over two dims."""
    yield sample(t(2, 3))
    for p in (1, 3, INF, None):
        yield sample(t(2, 3), p, note=f"{p}")
    yield sample(t(2, 3, 2), 1, (0, 2), True, note="two dims")
    if factorizable(t.dtype):
        yield sample(matrix(t, 2, 3, 4), "nuc", core=2, note="nuclear")
    yield sample(t(2, 3), dtype=_wider(t), note="a wider dtype")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(0, 3), 2, 0, kind=ZERO_SIZE)


@mistakes("linalg_matrix_norm")
def no_matrix_norms(t: Maker) -> Iterator[Sample]:
    """Yield unknown orders, and dims out of range."""
    real = t.of("float32")
    yield sample(real(3), note="a vector")
    yield sample(real(2, 2), 3, note="order 3")
    yield sample(real(2, 2), "max", note="a name")
    yield sample(real(2, 2), "fro", 0, note="one dim")
    yield sample(real(2, 2), "fro", (0, 0), note="a dim twice")
    yield sample(t.of("int64")(2, 2), note="integers")


@mistakes("linalg_norm")
def no_norms_of_either(t: Maker) -> Iterator[Sample]:
    """Yield dims and orders that do not match."""
    real = t.of("float32")
    yield sample(real(2, 2, 2), 2, note="three dims with an order")
    yield sample(real(2, 2, 2), 2, (0, 1, 2), note="three dims")
    yield sample(real(2, 2), "fro", 0, note="a name for vectors")
    yield sample(real(2, 2), "max", note="a name")


@mistakes("norm")
def no_older_norms(t: Maker) -> Iterator[Sample]:
    """Yield an unknown name."""
    yield sample(t.of("float32")(2, 2), "max", note="a name")


# -- products ---------------------------------------------------------------------------------------------------------
@inputs("cross")
def older_crosses(t: Maker) -> Iterator[Sample]:
    """Yield a dim, and the default, which is the first of size 3."""
    yield from (found for found in crosses(t) if found.kind != LARGE)
    yield sample(t(2, 3, 3), t(2, 3, 3), note="the first of size 3")


@mistakes("cross")
def no_older_crosses(t: Maker) -> Iterator[Sample]:
    """Yield tensors without a dim of size 3."""
    yield sample(t(2), t(2), note="none")
    yield sample(t(3, 2), t(3, 2), 1, note="the wrong dim")
    yield sample(t(2, 3), t(3), note="dims differ")
    yield sample(t(), t(), note="numbers")


CHAINS: Final = (((2, 3), (3, 4)), ((5, 2), (2, 4), (4, 1)), ((3, 7), (7, 2), (2, 6), (6, 1)))


@inputs("linalg_multi_dot")
def chains(t: Maker) -> Iterator[Sample]:
    """Yield two and more matrices, and vectors at the ends."""
    for shapes in CHAINS:
        yield sample([t(*s, low=0, high=2) for s in shapes], core=2, note=f"{shapes}")
    yield sample([t(3, low=0, high=2), t(3, 2, low=0, high=2), t(2, low=0, high=2)], core=2, note="vectors")
    yield sample([t(1, 1), t(1, 1)], kind=LENGTH_ONE)
    yield sample([t(2, 0), t(0, 3)], kind=ZERO_SIZE)


@inputs("chain_matmul")
def older_chains(t: Maker) -> Iterator[Sample]:
    """Yield separate matrices, and a list."""
    for shapes in CHAINS:
        yield sample(*[t(*s, low=0, high=2) for s in shapes], core=2, note=f"{shapes}")
    yield sample([t(2, 3, low=0, high=2), t(3, 2, low=0, high=2)], core=2, note="a list")
    yield sample(t(2, 0), t(0, 3), kind=ZERO_SIZE)


@mistakes("linalg_multi_dot")
def no_chains(t: Maker) -> Iterator[Sample]:
    """Yield one matrix, and sizes, ranks and dtypes that differ."""
    real = t.of("float32")
    yield sample([real(2, 2)], note="one")
    yield sample([real(2, 2), real(3, 3)], note="sizes")
    yield sample([real(2, 2), real(1, 2, 2), real(2, 2)], note="a batch")
    yield sample([real(1, 2, 2), real(2, 2)], note="a batch first")
    yield sample([real(2, 2), real()], note="a number")
    yield sample([real(2, 2), t.of("float64")(2, 2)], note="dtypes")


@mistakes("chain_matmul")
def no_older_chains(t: Maker) -> Iterator[Sample]:
    """Yield no matrices, and sizes, ranks and dtypes that differ."""
    real = t.of("float32")
    yield sample(note="none")
    yield sample(real(2, 2), real(3, 3), note="sizes")
    yield sample(real(2), real(2, 2), note="a vector")
    yield sample(real(2, 2), t.of("float64")(2, 2), note="dtypes")


# -- matrices and vectors ---------------------------------------------------------------------------------------------
@inputs("linalg_diagonal")
def diagonals(t: Maker) -> Iterator[Sample]:
    """Yield each offset, and any two dims."""
    for offset in (0, 1, -2):
        yield sample(t(3, 4), offset=offset, note=f"{offset}")
    yield sample(t(2, 3, 3), offset=1, note="a batch")
    yield sample(t(2, 3, 4), offset=-1, dim1=2, dim2=0, note="other dims")
    yield sample(t(1, 1), kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)


@mistakes("linalg_diagonal")
def no_diagonals(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and duplicate dims."""
    yield sample(t(3), note="a vector")
    yield sample(t(2, 2), dim1=2, note="dim out of range")
    yield sample(t(2, 2), dim1=1, dim2=-1, note="a dim twice")


@inputs("linalg_vander")
def vandermonde(t: Maker) -> Iterator[Sample]:
    """Yield as many powers as elements, fewer and more."""
    yield sample(t(4, low=0, high=2))
    yield sample(t(2, 3, low=0, high=2), note="a batch")
    for count in (2, 5):
        yield sample(t(3, low=0, high=2), N=count, note=f"{count}")
    yield sample(t(low=0, high=2), N=3, kind=ZERO_DIM)
    yield sample(t(1, low=0, high=2), N=2, kind=LENGTH_ONE)
    yield sample(t(0), N=2, kind=ZERO_SIZE)


@mistakes("linalg_vander")
def no_vandermonde(t: Maker) -> Iterator[Sample]:
    """Yield bools, and a single power."""
    yield sample(t.of("bool")(3), note="bools")
    yield sample(t.of("float32")(3), N=1, note="one power")
    yield sample(t.of("float32")(), note="of a number")
