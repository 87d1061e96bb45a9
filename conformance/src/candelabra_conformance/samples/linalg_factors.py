"""Samples of factorizations in LAPACK's form, least squares and pseudo-inverses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import (
    MANY,
    NO_MATRICES,
    NO_SQUARES,
    SQUARES,
    TALL,
    WIDE,
    Array,
    half_read,
    hermitian,
    matrix,
    singular,
    wide,
)
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample


# -- LU ---------------------------------------------------------------------------------------------------------------
def _packed(op: Any, A: Any, **options: Any) -> Any:
    return op(A, **options).LU


@inputs("linalg_lu_factor_ex")
def lu(t: Maker) -> Iterator[Sample]:
    """Yield matrices of all proportions. Devices may not support factorization without pivoting; the reference refuses
    it."""
    for shape in (*SQUARES, *TALL, *WIDE):
        shifted = shape[-2] >= shape[-1]
        yield sample(matrix(t, *shape, shifted=shifted), core=2, call=_packed, note=f"{shape}")
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), kind=ZERO_SIZE)
    yield sample(matrix(t, 2, 1, 1), pivot=True, kind=LENGTH_ONE, call=_packed)
    yield sample(matrix(t, MANY, MANY, shifted=True), kind=LARGE, call=_packed)


@special("linalg_lu_factor_ex")
def zero_pivots(t: Maker) -> Iterator[Sample]:
    """Yield matrices with a pivot of exactly zero, which have an info and factors."""
    whole = t.array([[[0.0, 0.0], [0.0, 0.0]], [[4.0, 2.0], [2.0, 3.0]]])
    yield sample(whole, of=lambda result: (result[2] != 0, result[0]), note="one of two")
    yield sample(singular(t), of=choices.of_breakdown, note="a row twice another")


@inputs("pivots_to_permutation")
def permutations(t: Maker) -> Iterator[Sample]:
    """Yield exchanges of adjacent and distant rows, none, and more rows than exchanges."""
    yield sample(t.index(3, 3, 3), 3)
    yield sample(t.index([2, 2, 3, 4], [4, 3, 4, 4]), 4, core=1)
    yield sample(t.index(5, 2, 5), 5, note="more rows")
    yield sample(t.index([[1, 2]], [[2, 2]]), 2, core=1)
    yield sample(t.index(1), 1, kind=LENGTH_ONE)
    yield sample(t.indices(0, below=1), 3, kind=ZERO_SIZE)
    yield sample(t.indices(0, 2, below=1), 2, kind=ZERO_SIZE)
    yield sample(np.arange(1, 301, dtype=np.int64)[::-1].clip(150) + 0, 300, kind=LARGE)


@mistakes("pivots_to_permutation")
def no_rows(t: Maker) -> Iterator[Sample]:
    """Yield pivots that are not row numbers, which start at 1."""
    yield sample(t.index(0, 2), 2, note="zero")
    yield sample(t.index(1, 3), 2, note="beyond")


# -- symmetric indefinite ---------------------------------------------------------------------------------------------
def _symmetric(t: Maker, of_hermitian: bool, *shape: int) -> Array:
    """Return symmetric (or Hermitian) matrices with zeros on the diagonal, which need blocks of two."""
    whole = hermitian(t, *shape, positive=False)
    if not of_hermitian:
        whole = np.tril(whole) + np.swapaxes(np.tril(whole, -1), -1, -2)
    hollow = np.zeros(shape[-2:])
    for i in range(1, shape[-1] - 1, 3):
        hollow[i, i], hollow[i + 1, i] = 1.0, 2.5 * (i + 1)
    crossed = whole.astype(wide(t)) * np.where(np.diag(np.diag(hollow)), 0.01, 1.0) + np.tril(hollow, -1)
    return half_read(t, crossed, lower=True)


@inputs("linalg_ldl_factor_ex")
def ldl(t: Maker) -> Iterator[Sample]:
    """Yield matrices that need blocks of one and of two; only the lower triangle is read."""
    for i, shape in enumerate(SQUARES):
        flag = bool(i % 2)
        yield sample(_symmetric(t, flag, *shape), hermitian=flag, core=2, of=choices.of_ldl(flag), note=f"{shape}")
    yield sample(_symmetric(t, True, 3, 3), hermitian=True, core=2, of=choices.of_ldl(True), note="Hermitian")
    for shape in NO_SQUARES:
        yield sample(hermitian(t, *shape), kind=ZERO_SIZE)
    yield sample(hermitian(t, 2, 1, 1), hermitian=True, kind=LENGTH_ONE, of=choices.of_ldl(True))


BLOCKS: Final = {"no swaps": (1, 2, 3, 4), "swaps": (3, 4, 4, 4), "a block of two": (-3, -3, 4, 4)}
"""Pivots as LAPACK writes them: the exchanged row, from 1; negative, twice, if two rows form a block."""


@inputs("linalg_ldl_solve")
def ldl_systems(t: Maker) -> Iterator[Sample]:
    """Yield constructed factors, one and many right-hand sides, and batches that broadcast."""
    for hermitian_ in (False, True):
        for note, pivots in BLOCKS.items():
            LD = np.tril(matrix(t, 4, 4))
            if t.is_complex:
                LD[np.arange(4), np.arange(4)] = LD.diagonal().real
            block = t.array(np.tri(4, k=-1) * 0) if note != "a block of two" else t.array(_off_block())
            columns = 3 if hermitian_ else 1
            values = LD + block
            yield sample(values, t.index(*pivots), t(4, columns), core=2, hermitian=hermitian_, note=note)
    LD = np.tril(np.stack([matrix(t, 3, 3).real, 2 * matrix(t, 3, 3).real])).astype(t.numpy)
    yield sample(LD, t.index([1, 2, 3], [2, 2, 3]), t(3, 2), core=2, note="a batch")
    yield sample(LD[0], t.index(1, 2, 3), t(2, 3, 2), core=2, note="a batch to solve for")
    yield sample(LD[0], t.index(1, 2, 3), t(3, 0), kind=ZERO_SIZE)
    yield sample(matrix(t, 1, 1).real.astype(t.numpy), t.index(1), t(1, 2), kind=LENGTH_ONE)


def _off_block() -> Array:
    block = np.zeros((4, 4))
    block[1, 0] = 4.0
    return block


@mistakes("linalg_ldl_factor_ex")
def unfit_ldl(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not square floating matrices."""
    yield sample(t(3), note="a vector")
    yield sample(t(2, 3), hermitian=True, note="not square")
    yield sample(t.of("int64")(2, 2), note="integers")


@mistakes("linalg_ldl_solve")
def unfit_ldl_systems(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not match."""
    yield sample(t(2, 3), t.index(1, 2), t(2, 1), note="not square")
    yield sample(t(3, 3), t.index(1, 2, 3), t(2, 1), note="rows differ")
    yield sample(t(2, 2), t.index(1, 2), t(2), note="a vector")
    yield sample(t.of("int64")(2, 2), t.index(1, 2), t.of("int64")(2, 1), note="integers")


# -- least squares ----------------------------------------------------------------------------------------------------
def _least(op: Any, A: Any, B: Any, rcond: float, driver: str) -> Any:
    return op(A, B, rcond, driver).solution


@inputs("linalg_lstsq")
def least_squares(t: Maker) -> Iterator[Sample]:
    """Yield each driver with tall and wide systems, and singular values that count as zero, except for the full-rank
    driver."""
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        for a, b in (((5, 3), (5, 2)), ((2, 3, 5), (2, 3, 1))):
            yield sample(matrix(t, *a), t(*b), 1e-4, driver, core=2, call=_least, note=f"{driver} {a}")
        if driver != "gels":
            A = np.concatenate([matrix(t, 4, 2), matrix(t, 4, 1) * 0], -1)
            yield sample(A, t(4, 2), 1e-2, driver, core=2, gradient=False, note=f"{driver} of less rank")
    A = matrix(t, 4, 2) * t.array([1.0, 1e-3])
    for rcond in (1e-4, 0.1):
        yield sample(A, t(4, 1), rcond, "gelsd", core=2, gradient=False, note=f"a singular value near {rcond}")
    yield sample(matrix(t, 4, 3), t(2, 4, 1), 1e-4, "gelsy", core=2, call=_least, note="a batch of right-hand sides")
    yield sample(matrix(t, 1, 1), t(1, 1), 1e-4, "gelsd", kind=LENGTH_ONE, call=_least)
    for a, b in (((3, 0), (3, 2)), ((0, 3, 2), (0, 3, 1)), ((3, 2), (3, 0))):
        yield sample(matrix(t, *a), t(*b), 1e-4, "gelsy", kind=ZERO_SIZE)
    yield sample(matrix(t, MANY, 8), t(MANY, 2), 1e-4, "gelsd", kind=LARGE, call=_least)


@mistakes("linalg_lstsq")
def unfit_least_squares(t: Maker) -> Iterator[Sample]:
    """Yield dtypes without a factorization."""
    for d in ("int64", "bool", "float16"):
        yield sample(t.of(d)(3, 2), t.of(d)(3, 1), 1e-4, "gelsy", note=d)


# -- pseudo-inverses --------------------------------------------------------------------------------------------------
@inputs("pseudo_inverse")
def pseudo_inverses(t: Maker) -> Iterator[Sample]:
    """Yield matrices of all proportions, and tolerances as numbers and tensors, with and without an effect."""
    for shape in ((3, 3), *TALL, *WIDE):
        yield sample(matrix(t, *shape), None, None, False, core=2, note=f"{shape}")
    bounds = t.of(t.dtype.to_real()).array
    rest: dict[str, Any] = {"core": 2, "gradient": False, "constant": ("atol", "rtol")}
    yield sample(matrix(t, 4, 3), bounds(1.5), None, False, note="absolute", **rest)
    yield sample(matrix(t, 2, 3, 4), None, bounds(0.5), False, note="relative", **rest)
    yield sample(matrix(t, 2, 3, 4), bounds(0.5), bounds(0.9), False, note="the larger of both", **rest)
    yield sample(matrix(t, 2, 4, 4), bounds([0.1, 1.5]), None, False, note="one for each matrix", **rest)
    for shape in ((3, 3), (2, 5, 5)):
        A = hermitian(t, *shape, positive=False)
        yield sample(A, None, None, True, core=2, call=_of_hermitian, note=f"Hermitian {shape}")
        # It has no derivatives, since with its other triangle the matrix is nearly singular.
        A = half_read(t, A, lower=True)
        yield sample(A, None, None, True, core=2, gradient=False, note=f"lower triangle {shape}")
    yield sample(matrix(t, 1, 3), None, None, False, kind=LENGTH_ONE)
    for shape in NO_MATRICES:
        yield sample(matrix(t, *shape), None, None, False, kind=ZERO_SIZE)


def _of_hermitian(op: Any, A: Any, *rest: Any) -> Any:
    return op(choices.hermitian_part(A), *rest)


@special("pseudo_inverse")
def of_less_rank(t: Maker) -> Iterator[Sample]:
    """Yield a matrix of zeros, whose result is zeros, and one of rank 1, in closed form."""
    yield sample(t.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), None, None, False, note="zeros")
    bound = t.of(t.dtype.to_real()).array(1e-3)
    yield sample(t.array([[1.0, 2.0], [2.0, 4.0]]), None, bound, False, constant=("rtol",), note="rank 1")


@mistakes("pseudo_inverse")
def unfit_pseudo_inverses(t: Maker) -> Iterator[Sample]:
    """Yield tensors that are not matrices."""
    yield sample(t.real(3), None, None, False, note="a vector")
    yield sample(t(2, 3), None, None, True, note="not square, though Hermitian")
