"""Samples of inverses, systems, determinants, triangular factors and least squares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import (
    MANY,
    NO_SQUARES,
    SQUARES,
    half_read,
    hermitian,
    matrix,
    singular,
)
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample


def _inverse(op: Any, A: Any, **options: Any) -> Any:
    return op(A, **options).inverse


def _solution(op: Any, A: Any, B: Any, **options: Any) -> Any:
    return op(A, B, **options).result


def _factor(op: Any, input: Any, **options: Any) -> Any:
    return op(choices.positive_part(input), **options).L


@inputs("linalg_inv_ex")
def inverses(t: Maker) -> Iterator[Sample]:
    """Yield matrices with shifted rows, which need pivoting, and without."""

    for shape in SQUARES:
        yield sample(matrix(t, *shape, shifted=shape[-1] > 3), core=2, call=_inverse, note=f"{shape}")
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE, call=_inverse)
    yield sample(matrix(t, MANY, MANY, shifted=True), kind=LARGE, call=_inverse)


@inputs("linalg_det", "linalg_slogdet")
def determinants(t: Maker) -> Iterator[Sample]:
    """Yield determinants of both signs: for an odd size the shifted rows are an even permutation."""
    for shape in ((3, 3), (4, 4), (2, 5, 5), (2, 1, 8, 8)):
        yield sample(matrix(t, *shape, shifted=True), core=2, note=f"{shape}")
    yield sample(matrix(t, 2, 3, 3), core=2, note="not turned")
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE)
    yield sample(matrix(t, 10, 10), kind=LARGE)


@inputs("linalg_det_along", "linalg_slogdet_along")
def determinants_along(t: Maker) -> Iterator[Sample]:
    """Yield small matrices and large ones, which devices may factorize in another way."""
    options: dict[str, Any] = {"core": 2, "layouts": ("contiguous", "transposed", "offset", "step")}
    for shape in ((3, 3), (2, 4, 4)):
        yield sample(t(*shape), matrix(t, *shape, shifted=True), note=f"{shape}", **options)
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(t(2, 1, 1), matrix(t, 2, 1, 1), kind=LENGTH_ONE)
    yield sample(t(1, 1, 1), matrix(t, 1, 1, 1), kind=LENGTH_ONE)
    many = 301  # beyond the blocks of kernels, with a rest
    yield sample(t(many, 2, 2), matrix(t, many, 2, 2), kind=LARGE, gradient=False)
    if t.operator == "linalg_slogdet_along":  # determinants of this size are not numbers
        yield sample(t(2, 50, 50), matrix(t, 2, 50, 50, shifted=True), kind=LARGE, gradient=False)


@special("linalg_det_along")
def singular_determinants_along(t: Maker) -> Iterator[Sample]:
    """Yield matrices of rank n - 1, whose determinant has a derivative, and of a lower rank, where it is 0."""
    yield sample(t(3, 3), singular(t), note="a row twice another")
    both = t.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    yield sample(t(2, 2, 2), both, note="zeros beside a permutation")


@mistakes("linalg_det_along", "linalg_slogdet_along")
def unlike_determinants(t: Maker) -> Iterator[Sample]:
    """Yield tangents of another shape, and tensors that are not square floating matrices."""
    yield sample(t(3, 3), t(2, 2), note="shapes")
    yield sample(t(2, 3), t(2, 3), note="not square")
    yield sample(t(3), t(3), note="a vector")
    yield sample(t.of("float16")(2, 2), t.of("float16")(2, 2), note="half precision")


@inputs("linalg_solve_ex")
def systems(t: Maker) -> Iterator[Sample]:
    """Yield batches that broadcast in either direction, and one and many right-hand sides."""

    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 4, 4), (4, 1)),
        ((3, 3), (2, 3, 5)),
        ((2, 1, 3, 3), (4, 3, 2)),
        ((17, 17), (17, 3)),
    ):
        yield sample(matrix(t, *a, shifted=True), t(*b), core=2, call=_solution, note=f"{a} {b}")
    yield sample(matrix(t, 1, 1), t(1, 1), kind=LENGTH_ONE, call=_solution)
    yield sample(matrix(t, 3, 3), t(3, 0), kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 0), t(0, 2), kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 3, 3), t(3, 2), kind=ZERO_SIZE)
    yield sample(matrix(t, MANY, MANY, shifted=True), t(MANY, 5), kind=LARGE, call=_solution)


@inputs("triangular_solution")
def triangular_systems(t: Maker) -> Iterator[Sample]:
    """Yield each triangle, both kinds of diagonal, and numbers in the other triangle that must not be read."""
    shapes = (((3, 3), (3, 2)), ((2, 4, 4), (4, 1)), ((5, 5), (2, 5, 3)), ((2, 1, 3, 3), (4, 3, 2)))
    flags = ((True, False), (False, False), (True, True), (False, True))
    for i, (upper, ones) in enumerate(flags):
        for a, b in (shapes[i], shapes[i - 1]):
            A = half_read(t, matrix(t, *a), lower=not upper)
            yield sample(A, t(*b), upper, ones, core=2, note=f"{a} {b} {upper} {ones}")
    yield sample(matrix(t, 20, 3, 3), t(20, 3, 2), True, False, core=2, note="many small ones")
    yield sample(matrix(t, 1, 1), t(1, 2), False, False, kind=LENGTH_ONE)
    yield sample(matrix(t, 0, 0), t(0, 2), True, False, kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 3, 3), t(3, 0), False, False, kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 3, 3), t(3, 2), True, True, kind=ZERO_SIZE)
    yield sample(matrix(t, MANY, MANY), t(MANY, 3), True, False, kind=LARGE)


@inputs("linalg_cholesky_ex")
def cholesky(t: Maker) -> Iterator[Sample]:
    """Yield matrices of which only one triangle may be read."""

    for i, shape in enumerate(SQUARES):
        upper = bool(i % 2)
        A = half_read(t, hermitian(t, *shape), lower=not upper)
        yield sample(A, upper=upper, core=2, call=_factor, note=f"{shape}")
    for shape in NO_SQUARES:
        yield sample(hermitian(t, *shape), kind=ZERO_SIZE)
    yield sample(hermitian(t, 3, 1, 1), upper=True, kind=LENGTH_ONE, call=_factor)
    yield sample(hermitian(t, MANY, MANY), kind=LARGE, call=_factor)


# -- breakdowns -------------------------------------------------------------------------------------------------------
@special("linalg_inv_ex")
def no_inverse(t: Maker) -> Iterator[Sample]:
    """Yield singular matrices, which have an info and no error, and do not affect others of the batch."""
    zero = t.array([[0.0, 0.0], [0.0, 0.0]])
    yield sample(singular(t), of=choices.of_breakdown, note="a row twice another")
    yield sample(zero, of=choices.of_breakdown, note="zeros")
    whole = t.array([[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    yield sample(whole, of=lambda result: (result[1] != 0, result[0][0]), note="one of two")
    if t.is_floating:
        yield sample(t.array([[math.nan] * 2] * 2), of=lambda result: result[0], note="nan")


@special("linalg_solve_ex")
def no_solution(t: Maker) -> Iterator[Sample]:
    """Yield the matrices of inverses."""
    yield sample(singular(t), t(3, 2), of=choices.of_breakdown, note="a row twice another")
    whole = t.array([[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    yield sample(whole, t(2, 1), of=lambda result: (result[1] != 0, result[0][0]), note="one of two")


@special("linalg_det", "linalg_slogdet")
def singular_determinants(t: Maker) -> Iterator[Sample]:
    """Yield determinants of zero, whose logarithm is -inf, and NaN."""
    yield sample(singular(t), note="a row twice another")
    yield sample(t.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]), note="zeros beside a permutation")
    if t.is_floating:  # the sign of NaN is undefined
        of = None if t.operator == "linalg_det" else lambda result: result[1]
        yield sample(t.array([[math.nan, 1.0], [1.0, 2.0]]), of=of, note="nan")


@special("linalg_slogdet")
def extreme_determinants(t: Maker) -> Iterator[Sample]:
    """Yield determinants that the dtype cannot represent, while it can represent their logarithms."""
    for size in (1e-30, 1e30) if t.is_floating or t.is_complex else ():
        yield sample(t.array([[size, 0.0, 0.0], [0.0, -size, 0.0], [0.0, 0.0, size]]), note=f"{size}")


@special("triangular_solution")
def zero_diagonal(t: Maker) -> Iterator[Sample]:
    """Yield a zero on the diagonal, by which is divided, and which is ignored for a unit diagonal."""
    A = t.array([[0.0, 1.0], [0.0, 2.0]])
    if t.is_floating:
        yield sample(A[:1, :1], t.array([[3.0, -2.0]]), True, False, note="infinite")
    yield sample(A, t.array([[3.0], [2.0]]), True, True, note="ones")


@special("linalg_cholesky_ex")
def not_positive(t: Maker) -> Iterator[Sample]:
    """Yield matrices that are not positive-definite, with an info for each, and the factors of the others."""
    bad = [[1.0, 2.0], [2.0, 1.0]]
    yield sample(t.array(bad), of=choices.of_breakdown, note="indefinite")
    yield sample(
        t.array([[[4.0, 0.0], [0.0, 9.0]], bad]), upper=True, of=lambda f: (f[1] != 0, f[0][0]), note="one of two"
    )


@mistakes(
    "linalg_inv_ex", "linalg_inv", "inverse", "linalg_det", "det", "linalg_slogdet", "slogdet", "logdet",
    "linalg_cholesky_ex", "linalg_cholesky", "cholesky", "cholesky_inverse",
)  # fmt: skip
def no_squares(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not square floating matrices."""
    yield sample(t(3), note="a vector")
    yield sample(t(), note="a number")
    yield sample(t(2, 3), note="not square")
    yield sample(t(2, 3, 4), note="not square, in a batch")
    yield sample(t.of("int64")(2, 2), note="integers")
    yield sample(t.of("bool")(2, 2), note="bools")
    yield sample(t.of("float16")(2, 2), note="half precision")
    yield sample([t(2, 2)], note="a list")


@mistakes("linalg_solve_ex")
def unfit_systems(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not match."""
    yield sample(t(2, 3), t(2, 2), note="not square")
    yield sample(t(3, 3), t(2, 2), note="rows differ")
    yield sample(t(3, 3), t(3), note="a vector")
    yield sample(t(3), t(3, 1), note="no matrix")
    yield sample(t(2, 3, 3), t(3, 3, 2), note="batches")
    yield sample(t.of("int32")(2, 2), t.of("int32")(2, 2), note="integers")
    yield sample(t.of("bfloat16")(2, 2), t.of("bfloat16")(2, 2), note="half precision")


@mistakes("triangular_solution")
def unfit_triangles(t: Maker) -> Iterator[Sample]:
    """Yield the invalid arguments of systems."""
    for args in unfit_systems(t):
        yield sample(*args.args, True, False, note=args.note)
