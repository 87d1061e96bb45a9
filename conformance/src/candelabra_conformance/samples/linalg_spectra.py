"""Samples of singular values, eigenvalues, QR and Householder reflections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import (
    MANY,
    NO_MATRICES,
    NO_SQUARES,
    SQUARES,
    TALL,
    WIDE,
    half_read,
    hermitian,
    matrix,
    singular,
)
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

RECTANGLES = (*SQUARES[:2], *TALL, *WIDE, (17, 5))


# -- singular values --------------------------------------------------------------------------------------------------
def _svd_part(op: Any, A: Any, full_matrices: bool, **options: Any) -> Any:
    return choices.of_svd(op(A, full_matrices, **options))


@inputs("linalg_svd")
def svd(t: Maker) -> Iterator[Sample]:
    """Yield thin and full decompositions, of all proportions."""
    options: dict[str, Any] = {"call": _svd_part}
    for i, shape in enumerate(RECTANGLES):
        for full in (False, True) if i < 4 else (bool(i % 2),):
            of = choices.of_full_svd if full else choices.of_svd
            yield sample(matrix(t, *shape), full, core=2, of=of, note=f"{shape} {full}", **options)
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), False, kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), True, kind=LENGTH_ONE, of=choices.of_full_svd, **options)
    yield sample(matrix(t, MANY, 12), False, kind=LARGE, of=choices.of_svd, gradient=False)


@inputs("linalg_svdvals")
def singular_values(t: Maker) -> Iterator[Sample]:
    """Yield matrices of all proportions."""
    for shape in RECTANGLES:
        yield sample(matrix(t, *shape), core=2, note=f"{shape}")
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 3), kind=LENGTH_ONE)
    yield sample(matrix(t, MANY, 12), kind=LARGE)


# -- Hermitian matrices -----------------------------------------------------------------------------------------------
def _eigh_part(op: Any, A: Any, UPLO: str) -> Any:
    return choices.of_eigh(op(choices.hermitian_part(A), UPLO))


def _eigvalsh_part(op: Any, A: Any, UPLO: str) -> Any:
    return op(choices.hermitian_part(A), UPLO)


@inputs("linalg_eigh", "linalg_eigvalsh")
def eigh(t: Maker) -> Iterator[Sample]:
    """Yield one triangle with other numbers in the other one, and eigenvalues of both signs."""
    vectors = t.operator.startswith("linalg_eigh")
    options: dict[str, Any] = {"call": _eigh_part if vectors else _eigvalsh_part}
    if vectors:
        options["of"] = choices.of_eigh
    for i, shape in enumerate(SQUARES):
        uplo = "LU"[i % 2]
        A = half_read(t, hermitian(t, *shape, positive=False), lower=uplo == "L")
        yield sample(A, uplo, core=2, note=f"{shape} {uplo}", **options)
    yield sample(hermitian(t, 3, 3), "L", core=2, note="positive-definite", **options)
    for shape in NO_SQUARES:
        yield sample(hermitian(t, *shape), "L", kind=ZERO_SIZE)
    yield sample(hermitian(t, 2, 1, 1), "U", kind=LENGTH_ONE, **options)
    yield sample(hermitian(t, MANY, MANY), "L", kind=LARGE, gradient=False, **options)


# -- any square matrices ----------------------------------------------------------------------------------------------
def _eig_part(op: Any, A: Any) -> Any:
    return choices.of_eig(op(A))


def _eigvals_part(op: Any, A: Any) -> Any:
    return choices.of_eigvals(op(A))


@inputs("linalg_eig", "linalg_eigvals")
def eig(t: Maker) -> Iterator[Sample]:
    """Yield real eigenvalues, and pairs of conjugates."""
    vectors = t.operator == "linalg_eig"
    part = _eig_part if vectors else _eigvals_part
    options: dict[str, Any] = {"of": choices.of_eig if vectors else choices.of_eigvals, "call": part}
    for shape in SQUARES[:4]:
        yield sample(matrix(t, *shape), core=2, note=f"{shape}", **options)
    yield sample(matrix(t, 3, 3, shifted=True), core=2, note="complex values of a turn", **options)
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE, **options)
    yield sample(matrix(t, 17, 17), kind=LARGE, gradient=False, **options)


# -- orthogonal factors -----------------------------------------------------------------------------------------------
QR_PARTS = {"r": choices.of_triangle, "reduced": choices.of_qr, "complete": choices.of_qr}


def qr_part(op: Any, A: Any, mode: Any) -> Any:
    """Return absolute factors: their product, and a square Q times its adjoint, have noise as second derivatives."""
    result = op(A, mode)
    return result.Q.abs(), result.R.abs()


@inputs("linalg_qr")
def qr(t: Maker) -> Iterator[Sample]:
    """Yield each mode and all proportions. The triangle without Q, and vectors beyond the columns, have no
    derivative."""
    for i, shape in enumerate(RECTANGLES):
        for mode in QR_PARTS if i < 4 else ("reduced",):
            smooth = mode != "r" and (mode == "reduced" or shape[-2] <= shape[-1])
            options: dict[str, Any] = {"of": QR_PARTS[mode], "call": qr_part, "gradient": smooth}
            yield sample(matrix(t, *shape, shifted=True), mode, core=2, note=f"{shape} {mode}", **options)
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), "reduced", kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 3), "complete", kind=LENGTH_ONE, of=choices.of_qr, call=qr_part)
    yield sample(matrix(t, MANY, 12), "reduced", kind=LARGE, of=choices.of_qr, gradient=False)


@inputs("linalg_geqrf")
def geqrf(t: Maker) -> Iterator[Sample]:
    """Yield matrices of all proportions."""
    for shape in RECTANGLES:
        tall = shape[-2] >= shape[-1]
        yield sample(matrix(t, *shape, shifted=tall), core=2, of=choices.of_reflections, note=f"{shape}")
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE, of=choices.of_reflections)
    yield sample(matrix(t, MANY, 12), kind=LARGE, of=choices.of_reflections)


def _factors(t: Maker, *shape: int) -> Any:
    """Return factors of reflections. Any numbers are valid: the products are defined, but not orthogonal."""
    return t(*shape, low=0.3, high=1.2)


@inputs("linalg_householder_product")
def reflections(t: Maker) -> Iterator[Sample]:
    """Yield as many factors as columns, and fewer; elements above the diagonal must not be read."""
    shapes = (((3, 3), (3,)), ((5, 3), (2,)), ((2, 8, 3), (2, 3)), ((2, 1, 4, 2), (2, 1, 1)), ((5, 5), (3,)))
    for a, tau in shapes:
        yield sample(t(*a, low=-0.7, high=0.7), _factors(t, *tau), core=2, note=f"{a} {tau}")
    yield sample(t(1, 1), _factors(t, 1), kind=LENGTH_ONE)
    yield sample(t(3, 2), _factors(t, 0), kind=ZERO_SIZE, note="no factors")
    yield sample(t(3, 0), _factors(t, 0), kind=ZERO_SIZE)
    yield sample(t(0, 3, 2), _factors(t, 0, 2), kind=ZERO_SIZE)
    yield sample(t(MANY, 8, low=-0.2, high=0.2), _factors(t, 8), kind=LARGE)


@inputs("linalg_ormqr")
def applied_reflections(t: Maker) -> Iterator[Sample]:
    """Yield both sides, and both orders."""
    for left in (True, False):
        for transpose in (True, False):
            for a, tau, square in (((5, 3), (3,), False), ((2, 4, 3), (2, 2), True)):
                m, lead = a[-2], a[:-2]
                x = t(*lead, m, m) if square else t(*lead, m, 2) if left else t(*lead, 2, m)
                A = t(*a, low=-0.7, high=0.7)
                yield sample(A, _factors(t, *tau), x, left, transpose, core=2, note=f"{a} {left} {transpose}")
    yield sample(t(1, 1), _factors(t, 1), t(1, 1), True, False, kind=LENGTH_ONE)
    yield sample(t(3, 2), _factors(t, 0), t(3, 2), True, False, kind=ZERO_SIZE)
    yield sample(t(3, 2), _factors(t, 2), t(3, 0), True, True, kind=ZERO_SIZE)
    yield sample(t(MANY, 8, low=-0.2, high=0.2), _factors(t, 8), t(MANY, 3), True, False, kind=LARGE)


# -- singular, defective, repeated ------------------------------------------------------------------------------------
@special("linalg_svdvals")
def no_full_rank(t: Maker) -> Iterator[Sample]:
    """Yield singular values of 0, and equal ones."""
    yield sample(singular(t), note="a row twice another")
    yield sample(t.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), note="zeros")
    yield sample(t.array([[0.0, 2.0], [-2.0, 0.0]]), note="equal values")


@special("linalg_eigvalsh")
def repeated(t: Maker) -> Iterator[Sample]:
    """Yield eigenvalues that are equal, or 0."""
    yield sample(t.array([[2.0, 0.0], [0.0, 2.0]]), "L", note="twice the same")
    yield sample(t.array([[1.0, 2.0], [2.0, 4.0]]), "U", note="one of 0")
    yield sample(t.array([[0.0, 0.0], [0.0, 0.0]]), "L", note="zeros")


@special("linalg_eigvals")
def defective(t: Maker) -> Iterator[Sample]:
    """Yield triangular matrices with fewer eigenvectors than eigenvalues, whose values are exact."""
    yield sample(t.array([[1.0, 1.0], [0.0, 1.0]]), of=choices.of_eigvals, note="a Jordan block")
    yield sample(t.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), of=choices.of_eigvals, note="nilpotent")
    yield sample(t.array([[0.0, -1.0], [1.0, 0.0]]), of=choices.of_eigvals, note="a quarter turn")


@special("linalg_qr")
def dependent_columns(t: Maker) -> Iterator[Sample]:
    """Yield matrices whose triangle has a zero: only the product is unique."""
    yield sample(singular(t).T.copy(), "reduced", of=lambda result: result[0] @ result[1], note="dependent columns")
    yield sample(t.array([[0.0, 0.0], [0.0, 0.0]]), "reduced", of=lambda result: result[0] @ result[1], note="zeros")


# -- mistakes ---------------------------------------------------------------------------------------------------------
def _refused(t: Maker, *rest: Any, squares: bool) -> Iterator[Sample]:
    yield sample(t(3), *rest, note="a vector")
    yield sample(t(), *rest, note="a number")
    yield sample(t.of("int64")(2, 2), *rest, note="integers")
    yield sample(t.of("bfloat16")(2, 2), *rest, note="half precision")
    yield sample([[1.0, 2.0], [3.0, 4.0]], *rest, note="a list")
    if squares:
        yield sample(t(2, 3), *rest, note="not square")
        yield sample(t(2, 3, 4), *rest, note="not square, in a batch")


REST: dict[str, tuple[Any, ...]] = {
    "linalg_eigh": ("L",), "linalg_eigvalsh": ("U",), "linalg_svd": (True,), "linalg_qr": ("reduced",),
}  # fmt: skip
"""The arguments after the matrix."""


@mistakes("linalg_eigh", "linalg_eigvalsh", "linalg_eig", "linalg_eigvals")
def unfit_squares(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not square floating matrices."""
    yield from _refused(t, *REST.get(t.operator, ()), squares=True)


@mistakes("linalg_svd", "linalg_svdvals", "linalg_qr", "linalg_geqrf")
def unfit_matrices(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not floating matrices."""
    yield from _refused(t, *REST.get(t.operator, ()), squares=False)


@mistakes("linalg_householder_product")
def unfit_reflections(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not match."""
    yield sample(t(3), t(3), note="a vector")
    yield sample(t(2, 3), t(2), note="wide")
    yield sample(t(3, 2), t(3), note="too many factors")
    yield sample(t(2, 3, 2), t(2), note="batches differ")
    yield sample(t.of("int64")(3, 2), t.of("int64")(2), note="integers")
