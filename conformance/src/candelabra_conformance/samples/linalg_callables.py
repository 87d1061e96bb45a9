"""Samples of functions of linear algebra that are not operators: Einstein summation, random projection, iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import factorizable, hermitian, matrix
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

only(factorizable, "lu", "svd_lowrank", "pca_lowrank")
only(lambda d: d.name == "float64", "lobpcg")
only(lambda d: d.name != "bool", "einsum", "Tensor.addbmm_")

# -- Einstein's summation ---------------------------------------------------------------------------------------------
EQUATIONS: Final = (
    ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk", (2, 3, 2), (2, 2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)),
    ("i,j->ij", (2,), (3,)), ("...ij->...ji", (2, 3, 4)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("ij,ij->", (2, 3), (2, 3)), ("a...,...b->ab...", (2, 3), (3, 2)), ("ij->", (2, 3)),
)  # fmt: skip


@inputs("einsum")
def summations(t: Maker) -> Iterator[Sample]:
    """Yield products, diagonals, sums and ellipses, operands as a list, and integer labels."""
    for equation, *shapes in EQUATIONS:
        yield sample(equation, *[t(*s, low=0, high=2) for s in shapes], note=equation)
    a, b = t(2, 3, low=0, high=2), t(3, 4, low=0, high=2)
    yield sample("ij,jk", [a, b], note="a list")
    yield sample(a, [0, 1], b, [1, 2], [2, 0], note="labels")
    yield sample("ij,jk->ik", t(1, 1), t(1, 1), kind=LENGTH_ONE)
    yield sample(",->", t(), t(), kind=ZERO_DIM)
    yield sample("ij,jk->ik", t(2, 0), t(0, 3), kind=ZERO_SIZE)


@mistakes("einsum")
def no_summations(t: Maker) -> Iterator[Sample]:
    """Yield equations that are invalid or do not match the operands."""
    x = t.of("float32")
    yield sample("ij,jk->ik", x(2, 3), note="an operand missing")
    yield sample("ij,jk->ik", x(2, 3), x(2, 3), note="sizes")
    yield sample("ijk->i", x(2, 3), note="subscripts")
    yield sample("i1->i", x(2, 3), note="a digit")
    yield sample("ij->k", x(2, 3), note="an unknown output")
    yield sample("ij,jk->ik", x(2, 3), t.of("float64")(3, 2), note="dtypes")


# -- products and factors ---------------------------------------------------------------------------------------------
@inputs("Tensor.addbmm_")
def added_batches(t: Maker) -> Iterator[Sample]:
    """Yield each factor, and a tensor that broadcasts to the result's shape."""
    small: dict[str, Any] = {"low": 0, "high": 2}
    for options in ({}, {"beta": 2}, {"beta": 0, "alpha": 3}):
        yield sample(t(2, 3, **small), t(4, 2, 3, **small), t(4, 3, 3, **small), core=3, note=f"{options}", **options)
    factors = t(4, 2, 3, **small), t(4, 3, 3, **small)
    yield sample(t(3, **small), *factors, core=3, gradient=False, layouts=(CONTIGUOUS,), note="broadcast")
    yield sample(t(2, 3), t(0, 2, 3), t(0, 3, 3), kind=ZERO_SIZE)


@inputs("lu")
def older_lu(t: Maker) -> Iterator[Sample]:
    """Yield calls with infos and without."""
    for infos in (False, True):
        yield sample(matrix(t, 3, 3, shifted=True), True, infos, core=2, note=f"{infos}", call=_packed)
        yield sample(matrix(t, 2, 5, 3), get_infos=infos, core=2, note=f"tall {infos}", call=_packed)
    yield sample(matrix(t, 0, 3), kind=ZERO_SIZE)


def _packed(op: Any, A: Any, *rest: Any, **options: Any) -> Any:
    return op(A, *rest, **options)[0]


@mistakes("lu")
def no_older_lu(t: Maker) -> Iterator[Sample]:
    """Yield a zero pivot, which is an error unless infos are requested, and tensors that are not matrices."""
    yield sample(t.of("float32").array([[0.0]]), note="zero")
    yield sample(t.of("float32")(3), note="a vector")


# -- a few singular values and eigenvalues ----------------------------------------------------------------------------
def _of_rank(t: Maker, rank: int, *shape: int) -> Array:
    """Return a matrix of low rank with well-separated singular values."""
    left, right = matrix(t, *shape[:-1], rank), matrix(t, *shape[:-2], rank, shape[-1])
    return (left @ right).astype(t.numpy)


def _of_columns(result: Any) -> Any:
    U, S, V = result
    return S, (U * S.unsqueeze(-2)) @ V.mH


@inputs("svd_lowrank", "pca_lowrank")
def projections(t: Maker) -> Iterator[Sample]:
    """Yield matrices of low rank with all their singular values, which do not depend on the random start."""
    options: dict[str, Any] = {"core": 2, "of": _of_columns, "gradient": False}
    centred = {"center": False} if t.operator == "pca_lowrank" else {}
    for shape in ((9, 6), (2, 5, 8)):
        yield sample(_of_rank(t, 3, *shape), 3, note=f"{shape}", **centred, **options)
    if centred:
        yield sample(matrix(t, 6, 4), 4, note="all components", **options)
    else:
        yield sample(_of_rank(t, 2, 6, 4), 3, M=matrix(t, 6, 1) @ t(1, 4), note="less a matrix", **options)


@mistakes("svd_lowrank", "pca_lowrank")
def no_projections(t: Maker) -> Iterator[Sample]:
    """Yield too many values, and a negative number of iterations."""
    real = t.of("float32")
    yield sample(real(3, 4), 4, note="too many")
    yield sample(real(3, 4), 2, niter=-1, note="rounds")


@inputs("lobpcg")
def extreme_pairs(t: Maker) -> Iterator[Sample]:
    """Yield the largest and the smallest pairs, with and without a matrix on the right-hand side."""
    A, B = hermitian(t, 12, 12, positive=False), hermitian(t, 12, 12) / 12
    start = t(12, 2)
    options: dict[str, Any] = {"core": 2, "of": choices.of_eigenpairs, "gradient": False, "X": start}
    small = float(np.finfo(t.numpy).eps) * 8
    for largest in (True, False):
        yield sample(A, tol=small, niter=400, largest=largest, note=f"{largest}", **options)
    yield sample(A, B=B.astype(t.numpy), tol=small, niter=400, note="another matrix", **options)


@mistakes("lobpcg")
def no_extreme_pairs(t: Maker) -> Iterator[Sample]:
    """Yield too many pairs, matrices that are not square or not real floating ones, wrong sizes, and a tracker."""
    real = t.of("float32")
    yield sample(real(6, 6), 3, note="too many")
    yield sample(real(6, 2), note="not square")
    yield sample(t.of("int64")(6, 6), note="integers")
    yield sample(t.of("complex64")(6, 6), note="complex")
    yield sample(real(6, 6), B=real(3, 3), note="another size")
    yield sample(real(6, 6), X=real(5, 1), note="a start of another size")
