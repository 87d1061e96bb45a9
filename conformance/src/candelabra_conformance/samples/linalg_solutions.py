"""Samples of systems, factors and least squares as users call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples import linalg_choices as choices
from candelabra_conformance.samples.conditioned import (
    MANY,
    NO_SQUARES,
    SQUARES,
    TALL,
    WIDE,
    factorizable,
    half_read,
    hermitian,
    matrix,
)
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

only(factorizable, "linalg_solve_triangular", "linalg_lstsq_with_residuals")


# -- systems ----------------------------------------------------------------------------------------------------------
@inputs("linalg_solve", "linalg_solve_ex_system")
def systems(t: Maker) -> Iterator[Sample]:
    """Yield matrices and vectors as right-hand sides, both sides, and batches that broadcast."""
    options: dict[str, Any] = {"core": 2}
    for a, b in (((3, 3), (3, 2)), ((2, 4, 4), (4, 1)), ((2, 1, 3, 3), (4, 3, 2))):
        yield sample(matrix(t, *a, shifted=True), t(*b), note=f"{a} {b}", **options)
    yield sample(matrix(t, 3, 3), t(3), note="a vector", **options)
    yield sample(matrix(t, 2, 3, 3), t(2, 3), note="a vector for each matrix", **options)
    yield sample(matrix(t, 2, 3, 3), t(4, 3), left=False, note="from the right", **options)
    if t.operator == "linalg_solve_ex_system":
        yield sample(matrix(t, 3, 3), t(3, 2), check_errors=True, note="checked", **options)
    yield sample(matrix(t, 1, 1), t(1), kind=LENGTH_ONE)
    yield sample(matrix(t, 3, 3), t(3, 0), kind=ZERO_SIZE)
    yield sample(matrix(t, 0, 3, 3), t(0, 3), kind=ZERO_SIZE)
    yield sample(matrix(t, MANY, MANY, shifted=True), t(MANY, 5), kind=LARGE)


@mistakes("linalg_solve", "linalg_solve_ex_system")
def no_systems(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match, and singular matrices."""
    real = t.of("float32")
    yield sample(real(2, 3), real(2, 2), note="not square")
    yield sample(real(3, 3), real(2, 2), note="rows differ")
    yield sample(real(3, 3), real(2, 3, 4), left=False, note="columns differ")
    yield sample(real(3, 3), real(3), left=False, note="a vector from the right")
    yield sample(real(3, 3), real(), note="a number")
    yield sample(real(2, 3, 3), real(3, 3, 2), note="batches")
    yield sample(t.of("int32")(2, 2), t.of("int32")(2, 2), note="integers")
    checked = {"check_errors": True} if t.operator == "linalg_solve_ex_system" else {}
    yield sample(real.array([[0.0]]), real(1, 1), note="singular", **checked)


@inputs("linalg_tensorsolve")
def tensor_systems(t: Maker) -> Iterator[Sample]:
    """Yield unknowns in the last dims, and in dims that are moved there."""
    whole = matrix(t, 6, 6, shifted=True)
    yield sample(whole.reshape(2, 3, 6), t(2, 3), core=3)
    yield sample(whole.reshape(6, 3, 2), t(6), core=3, note="a vector")
    moved = whole.reshape(2, 3, 2, 3).transpose(2, 0, 1, 3).copy()
    yield sample(moved, t(2, 3), (0, 3), core=4, note="dims")
    yield sample(matrix(t, 1, 1), t(1), kind=LENGTH_ONE)
    yield sample(matrix(t, 0, 0), t(0), kind=ZERO_SIZE)


@mistakes("linalg_tensorsolve")
def no_tensor_systems(t: Maker) -> Iterator[Sample]:
    """Yield dims that do not give a square matrix."""
    real = t.of("float32")
    yield sample(real(2, 2, 6), real(2, 2), note="not square")
    yield sample(real(2, 2), real(2), (2,), note="dims out of range")


# -- triangles --------------------------------------------------------------------------------------------------------
@inputs("linalg_solve_triangular")
def triangular_systems(t: Maker) -> Iterator[Sample]:
    """Yield each triangle, both sides, and both kinds of diagonal."""
    for upper in (True, False):
        for left in (True, False):
            A = half_read(t, matrix(t, 3, 3), lower=not upper)
            B, ones = t(3, 2) if left else t(2, 3), upper is left
            flags = {"upper": upper, "left": left, "unitriangular": ones}
            yield sample(A, B, core=2, note=f"{flags}", **flags)
    yield sample(matrix(t, 2, 1, 3, 3), t(4, 3, 2), upper=True, core=2, note="batches")
    yield sample(matrix(t, 1, 1), t(1, 2), upper=False, kind=LENGTH_ONE)
    yield sample(matrix(t, 0, 0), t(0, 2), upper=True, kind=ZERO_SIZE)


@inputs("triangular_solve")
def older_triangular_systems(t: Maker) -> Iterator[Sample]:
    """Yield each triangle, with and without transposition."""
    for upper in (True, False):
        for transposed in (True, False):
            A = half_read(t, matrix(t, 3, 3), lower=not upper)
            yield sample(t(3, 2), A, upper, transposed, upper, core=2, note=f"{upper} {transposed}")
    yield sample(t(2, 3, 1), matrix(t, 3, 3), core=2, note="a batch")
    yield sample(t(0, 2), matrix(t, 0, 0), kind=ZERO_SIZE)


@mistakes("linalg_solve_triangular")
def no_triangles(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match."""
    real = t.of("float32")
    yield sample(real(2, 3), real(2, 2), upper=True, note="not square")
    yield sample(real(3, 3), real(2, 3, 2), upper=True, left=False, note="columns differ")
    yield sample(real(3, 3), real(3), upper=True, note="a vector")
    yield sample(t.of("int64")(2, 2), real(2, 2), upper=True, note="integers")


@mistakes("triangular_solve", "cholesky_solve")
def no_systems_of_factors(t: Maker) -> Iterator[Sample]:
    """Yield vectors, and sizes that differ."""
    real = t.of("float32")
    yield sample(real(3), real(3, 3), note="a vector")
    yield sample(real(3, 1), real(3), note="no matrix")
    yield sample(real(3, 1), real(2, 2), note="rows differ")


# -- Cholesky ---------------------------------------------------------------------------------------------------------
def _factor(op: Any, input: Any, *rest: Any, **options: Any) -> Any:
    return op(choices.positive_part(input), *rest, **options)


@inputs("linalg_cholesky", "cholesky")
def cholesky(t: Maker) -> Iterator[Sample]:
    """Yield both triangles."""
    for i, shape in enumerate(SQUARES[:3]):
        upper = bool(i % 2)
        A = half_read(t, hermitian(t, *shape), lower=not upper)
        rest: tuple[Any, ...] = (upper,) if t.operator == "cholesky" else ()
        options: dict[str, Any] = {} if rest else {"upper": upper}
        yield sample(A, *rest, core=2, call=_factor, note=f"{shape}", **options)
    yield sample(hermitian(t, 2, 1, 1), kind=LENGTH_ONE, call=_factor)
    for shape in NO_SQUARES:
        yield sample(hermitian(t, *shape), kind=ZERO_SIZE)


@inputs("cholesky_solve", "cholesky_inverse")
def with_cholesky_factors(t: Maker) -> Iterator[Sample]:
    """Yield lower and upper factors with numbers in the other triangle, which must not be read."""
    for upper in (False, True):
        for shape in ((3, 3), (2, 4, 4)):
            L = half_read(t, matrix(t, *shape), lower=not upper)
            right = (t(*shape[:-1], 2),) if t.operator == "cholesky_solve" else ()
            yield sample(*right, L, upper, core=2, note=f"{shape} {upper}")
    right = (t(0, 2),) if t.operator == "cholesky_solve" else ()
    yield sample(*right, matrix(t, 0, 0), kind=ZERO_SIZE)


# -- LU ---------------------------------------------------------------------------------------------------------------
PIVOTS = {3: (3, 2, 3), 4: (2, 4, 3, 4), 5: (4, 5, 5)}
"""Possible row exchanges of an elimination, by the number of rows."""


def _pivots(*shape: int) -> Array:
    """Return int32 pivots for factors of this shape."""
    m, n = shape[-2:]
    row = np.array(PIVOTS[m], np.int32)[: min(m, n)]
    return np.broadcast_to(row, (*shape[:-2], len(row))).copy()


@inputs("linalg_lu_factor")
def lu_factors(t: Maker) -> Iterator[Sample]:
    """Yield matrices of all proportions."""
    for shape in (SQUARES[0], SQUARES[1], TALL[0], WIDE[0]):
        shifted = shape[-2] >= shape[-1]
        yield sample(matrix(t, *shape, shifted=shifted), core=2, call=_first, note=f"{shape}")
    yield sample(matrix(t, 2, 1, 1), pivot=True, kind=LENGTH_ONE, call=_first)
    yield sample(matrix(t, 0, 3), kind=ZERO_SIZE)


def _first(op: Any, A: Any, **options: Any) -> Any:
    return op(A, **options)[0]


@inputs("linalg_lu")
def lu(t: Maker) -> Iterator[Sample]:
    """Yield the same matrices; the permutation has no derivative."""
    for factors in lu_factors(t):
        options: dict[str, Any] = {"core": factors.core, "kind": factors.kind, "note": factors.note}
        yield sample(*factors.args, call=_rest, **factors.kwargs, **options)


def _rest(op: Any, A: Any, **options: Any) -> Any:
    return tuple(op(A, **options))[1:]


@inputs("lu_unpack")
def lu_unpacked(t: Maker) -> Iterator[Sample]:
    """Yield factors of all proportions, and results that are not requested."""
    for shape in ((3, 3), (2, 4, 4), (5, 3), (3, 5)):
        yield sample(t(*shape), _pivots(*shape), core=2, note=f"{shape}")
    yield sample(t(3, 3), _pivots(3, 3), unpack_data=False, core=2, gradient=False, note="P alone")
    yield sample(t(3, 3), _pivots(3, 3), True, False, core=2, note="L and U alone")
    yield sample(t(0, 3, 3), _pivots(0, 3, 3), kind=ZERO_SIZE)


@mistakes("lu_unpack")
def no_pivots(t: Maker) -> Iterator[Sample]:
    """Yield pivots that are not integers, or not row numbers."""
    real = t.of("float32")
    yield sample(real(2, 2), real(2), note="floats")
    yield sample(real(2, 2), np.array([3, 2], np.int32), note="beyond")


@inputs("linalg_lu_solve")
def lu_systems(t: Maker) -> Iterator[Sample]:
    """Yield both sides, for the matrix and its adjoint."""
    for left in (True, False):
        for is_adjoint in (True, False):
            B = t(3, 2) if left else t(2, 3)
            note = f"{left} {is_adjoint}"
            yield sample(matrix(t, 3, 3), _pivots(3, 3), B, left=left, adjoint=is_adjoint, core=2, note=note)
    yield sample(matrix(t, 2, 4, 4), _pivots(2, 4, 4), t(4, 1), core=2, note="a batch of factors")
    yield sample(matrix(t, 0, 3, 3), _pivots(0, 3, 3), t(3, 2), kind=ZERO_SIZE)


@inputs("lu_solve")
def older_lu_systems(t: Maker) -> Iterator[Sample]:
    """Yield the right-hand sides as the first argument."""
    yield sample(t(3, 2), matrix(t, 3, 3), _pivots(3, 3), core=2)
    yield sample(t(4, 1), matrix(t, 2, 4, 4), _pivots(2, 4, 4), core=2, note="a batch of factors")
    yield sample(t(3, 0), matrix(t, 3, 3), _pivots(3, 3), kind=ZERO_SIZE)


@mistakes("linalg_lu_solve")
def no_lu_systems(t: Maker) -> Iterator[Sample]:
    """Yield pivots that are not integers, and shapes that do not match."""
    real = t.of("float32")
    yield sample(real(2, 2), real(2), real(2, 1), note="floats")
    yield sample(real(3, 3), _pivots(3, 3), real(2, 1), note="rows differ")


@inputs("linalg_ldl_factor")
def ldl_factors(t: Maker) -> Iterator[Sample]:
    """Yield matrices, whose factors are compared by the systems that they solve."""
    for flag, shape in ((False, (3, 3)), (True, (2, 4, 4))):
        A = hermitian(t, *shape)
        A = A if flag else np.tril(A) + np.swapaxes(np.tril(A, -1), -1, -2)
        yield sample(A, hermitian=flag, core=2, of=_of_ldl(flag), note=f"{shape}")
    yield sample(hermitian(t, 0, 3, 3), kind=ZERO_SIZE)


def _of_ldl(flag: bool) -> Any:
    def of(result: Any) -> Any:
        return choices.of_ldl(flag)((*result, result[1] * 0))[0]

    return of


# -- least squares ----------------------------------------------------------------------------------------------------
def _solution(op: Any, A: Any, b: Any, *rest: Any, **options: Any) -> Any:
    return tuple(op(A, b, *rest, **options))[:2]


@inputs("linalg_lstsq_with_residuals")
def least_squares(t: Maker) -> Iterator[Sample]:
    """Yield each driver, right-hand sides that are matrices and vectors, and systems with residuals."""
    for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
        for a, b in (((5, 3), (5, 2)), ((2, 3, 5), (2, 3, 1))):
            yield sample(matrix(t, *a), t(*b), driver=driver, core=2, call=_solution, note=f"{driver} {a}")
    yield sample(matrix(t, 5, 3), t(5), driver="gels", core=2, call=_solution, note="a vector")
    yield sample(matrix(t, 2, 4, 3), t(2, 4), driver="gelsd", core=2, call=_solution, note="a vector for each matrix")
    A = np.concatenate([matrix(t, 4, 2), matrix(t, 4, 1) * 0], -1)
    yield sample(A, t(4, 2), 1e-2, driver="gelsd", core=2, gradient=False, note="less rank")
    yield sample(matrix(t, 1, 1), t(1), kind=LENGTH_ONE, call=_solution)
    yield sample(matrix(t, 3, 0), t(3, 2), kind=ZERO_SIZE)


@mistakes("linalg_lstsq_with_residuals")
def no_least_squares(t: Maker) -> Iterator[Sample]:
    """Yield shapes, dtypes and drivers that are invalid."""
    real = t.of("float32")
    yield sample(real(3), real(3), note="a vector")
    yield sample(real(2, 2), real(), note="a number")
    yield sample(real(2, 2), real(2, 1), driver="x", note="a driver")
    yield sample(real(2, 2), real(3, 1), note="rows differ")
    yield sample(real(2, 2), real(3), note="elements differ")
    yield sample(real(2, 2), real(2, 2, 1), note="dims differ")
    yield sample(real(2, 2), t.of("float64")(2, 1), note="dtypes differ")
