"""Inverses, systems, determinants, triangular factors, least squares: samples."""

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
    """Rows turned, so that a pivot is looked for, and not."""

    for shape in SQUARES:
        yield sample(matrix(t, *shape, turned=shape[-1] > 3), core=2, call=_inverse, note=f"{shape}")
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE, call=_inverse)
    yield sample(matrix(t, MANY, MANY, turned=True), kind=LARGE, call=_inverse)


@inputs("linalg_det", "linalg_slogdet")
def determinants(t: Maker) -> Iterator[Sample]:
    """Of both signs: an odd size turned round is an even permutation."""
    for shape in ((3, 3), (4, 4), (2, 5, 5), (2, 1, 8, 8)):
        yield sample(matrix(t, *shape, turned=True), core=2, note=f"{shape}")
    yield sample(matrix(t, 2, 3, 3), core=2, note="not turned")
    for shape in NO_SQUARES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), kind=LENGTH_ONE)
    yield sample(matrix(t, 10, 10), kind=LARGE)


@inputs("linalg_solve_ex")
def systems(t: Maker) -> Iterator[Sample]:
    """Batches that broadcast either way, one and many right-hand sides."""

    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 4, 4), (4, 1)),
        ((3, 3), (2, 3, 5)),
        ((2, 1, 3, 3), (4, 3, 2)),
        ((17, 17), (17, 3)),
    ):
        yield sample(matrix(t, *a, turned=True), t(*b), core=2, call=_solution, note=f"{a} {b}")
    yield sample(matrix(t, 1, 1), t(1, 1), kind=LENGTH_ONE, call=_solution)
    yield sample(matrix(t, 3, 3), t(3, 0), kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 0), t(0, 2), kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 3, 3), t(3, 2), kind=ZERO_SIZE)
    yield sample(matrix(t, MANY, MANY, turned=True), t(MANY, 5), kind=LARGE, call=_solution)


@inputs("triangular_solution")
def triangular_systems(t: Maker) -> Iterator[Sample]:
    """Each triangle, with its diagonal and with ones; the other one holds numbers that may not be read."""
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
    """One triangle is read."""

    for i, shape in enumerate(SQUARES):
        upper = bool(i % 2)
        A = half_read(t, hermitian(t, *shape), lower=not upper)
        yield sample(A, upper=upper, core=2, call=_factor, note=f"{shape}")
    for shape in NO_SQUARES:
        yield sample(hermitian(t, *shape), kind=ZERO_SIZE)
    yield sample(hermitian(t, 3, 1, 1), upper=True, kind=LENGTH_ONE, call=_factor)
    yield sample(hermitian(t, MANY, MANY), kind=LARGE, call=_factor)


# -- where it breaks down ---------------------------------------------------------------------------------------------
@special("linalg_inv_ex")
def no_inverse(t: Maker) -> Iterator[Sample]:
    """Exactly singular: an info, no error; another matrix of the batch is not touched by it."""
    zero = t.array([[0.0, 0.0], [0.0, 0.0]])
    yield sample(singular(t), of=choices.of_breakdown, note="a row twice another")
    yield sample(zero, of=choices.of_breakdown, note="zeros")
    whole = t.array([[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    yield sample(whole, of=lambda found: (found[1] != 0, found[0][0]), note="one of two")
    if t.is_floating:
        yield sample(t.array([[math.nan] * 2] * 2), of=lambda found: found[0], note="nan")


@special("linalg_solve_ex")
def no_solution(t: Maker) -> Iterator[Sample]:
    """As of inverses."""
    yield sample(singular(t), t(3, 2), of=choices.of_breakdown, note="a row twice another")
    whole = t.array([[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    yield sample(whole, t(2, 1), of=lambda found: (found[1] != 0, found[0][0]), note="one of two")


@special("linalg_det", "linalg_slogdet")
def singular_determinants(t: Maker) -> Iterator[Sample]:
    """Zero, and its logarithm, -inf; NaN goes through."""
    yield sample(singular(t), note="a row twice another")
    yield sample(t.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]), note="zeros beside a permutation")
    if t.is_floating:  # which sign NaN has is not said
        of = None if t.operator == "linalg_det" else lambda found: found[1]
        yield sample(t.array([[math.nan, 1.0], [1.0, 2.0]]), of=of, note="nan")


@special("linalg_slogdet")
def extreme_determinants(t: Maker) -> Iterator[Sample]:
    """Beyond what the dtype can hold, where the logarithm can."""
    for size in (1e-30, 1e30) if t.is_floating or t.is_complex else ():
        yield sample(t.array([[size, 0.0, 0.0], [0.0, -size, 0.0], [0.0, 0.0, size]]), note=f"{size}")


@special("triangular_solution")
def zero_diagonal(t: Maker) -> Iterator[Sample]:
    """A zero on the diagonal is divided by, as it is; with ones in its place it is not looked at."""
    A = t.array([[0.0, 1.0], [0.0, 2.0]])
    if t.is_floating:
        yield sample(A[:1, :1], t.array([[3.0, -2.0]]), True, False, note="infinite")
    yield sample(A, t.array([[3.0], [2.0]]), True, True, note="ones")


@special("linalg_cholesky_ex")
def not_positive(t: Maker) -> Iterator[Sample]:
    """An info for each matrix that is not positive-definite, and the factors of the others."""
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
    """Other than square matrices of floating numbers."""
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
    """Sizes that do not fit."""
    yield sample(t(2, 3), t(2, 2), note="not square")
    yield sample(t(3, 3), t(2, 2), note="rows differ")
    yield sample(t(3, 3), t(3), note="a vector")
    yield sample(t(3), t(3, 1), note="no matrix")
    yield sample(t(2, 3, 3), t(3, 3, 2), note="batches")
    yield sample(t.of("int32")(2, 2), t.of("int32")(2, 2), note="integers")
    yield sample(t.of("bfloat16")(2, 2), t.of("bfloat16")(2, 2), note="half precision")


@mistakes("triangular_solution")
def unfit_triangles(t: Maker) -> Iterator[Sample]:
    """As of systems."""
    for args in unfit_systems(t):
        yield sample(*args.args, True, False, note=args.note)
