"""Linear algebra by SciPy's LAPACK and BLAS, one matrix at a time.

LAPACK expects column-major matrices. A C-ordered matrix is the transpose of a column-major one, so triangular systems
are solved with the flags for the transpose instead of a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from candelabra.errors import LinAlgError

from candelabra_cpu.numpy_kernels import numpy_kernel

Ints = tuple[int, ...]
BLOCK = 32
"""The block size for applying Householder reflections. SciPy's default workspace allows a block size of 1."""


def lapack_functions(*names: str, like: Any) -> Any:
    """Return the LAPACK functions of these names for the dtype of ``like``."""
    from scipy.linalg.lapack import get_lapack_funcs

    functions = get_lapack_funcs(names, dtype=like.dtype)
    return functions[0] if len(names) == 1 else functions


def _batch_indices(batch: Ints) -> Iterator[Ints]:
    return np.ndindex(*batch)


def _batch_shape(x: Any) -> Ints:
    """Return the batch shape of matrices. Raises ``ValueError`` for fewer than two dims."""
    if x.ndim < 2:
        raise ValueError(f"expected a matrix or a batch of matrices, got shape {x.shape}")
    return tuple(x.shape[:-2])


def cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    """Return the Cholesky factor and info: the order of the first minor that is not positive, or 0."""
    potrf = lapack_functions("potrf", like=x)
    out, info = np.empty_like(x), np.zeros(_batch_shape(x), np.int32)
    for i in _batch_indices(info.shape):
        out[i], info[i] = potrf(x[i], lower=not upper, clean=True)
        if not info[i]:  # LAPACK lets NaN pass
            wrong = np.flatnonzero(np.isnan(out[i].diagonal()))
            info[i] = wrong[0] + 1 if wrong.size else 0
    return out, info


def swapped(pivots: list[int], rows: int) -> list[int]:
    """Return the source row of each row when rows ``i`` and ``pivots[i]`` are swapped in order."""
    order = list(range(rows))
    for row, other in enumerate(pivots):
        order[row], order[other] = order[other], order[row]
    return order


def solve(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the solution of ``a x = b`` and info: the index of a zero pivot (the solution is divided by it), or 0."""
    getrf = lapack_functions("getrf", like=a)
    out, info = np.empty(b.shape, b.dtype), np.zeros(_batch_shape(a), np.int32)
    for i in _batch_indices(info.shape):
        lu, pivots, info[i] = getrf(a[i])
        right = b[i][swapped(pivots.tolist(), b.shape[-2])]
        out[i] = _solve_one_triangular(lu, _solve_one_triangular(lu, right, False, True), True, False)
    return out, info


def inverses(x: Any) -> tuple[Any, Any, Any]:
    """Return the diagonals of U of the LU factorizations, whether the permutations are odd, and the transposed
    inverses: NaN if the matrix is singular.
    """
    getrf, getri, getri_lwork = lapack_functions("getrf", "getri", "getri_lwork", like=x)
    batch, n = _batch_shape(x), x.shape[-1]
    diagonals, odd, out = np.empty(x.shape[:-1], x.dtype), np.zeros(batch, np.int64), np.empty_like(x)
    size = int(np.real(getri_lwork(n)[0]))
    for i in _batch_indices(batch):
        lu, pivots, info = getrf(x[i])
        diagonals[i] = lu.diagonal()
        odd[i] = np.count_nonzero(pivots != np.arange(n)) % 2
        out[i] = np.nan if info else getri(lu, pivots, lwork=size, overwrite_lu=True)[0].T
    return diagonals, odd, out


def _solve_one_triangular(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """Return ``x`` with ``a x = b`` for one triangular matrix, by BLAS, in the order of the elements of ``b``.

    A zero on the diagonal leads to a division by zero. Row-major ``b`` is solved as ``xᵀ aᵀ = bᵀ``, without a copy in
    the other order.
    """
    from scipy.linalg.blas import get_blas_funcs

    if not b.size:
        return b
    trsm = get_blas_funcs("trsm", dtype=b.dtype)
    row_major = b.strides[0] > b.strides[1]
    transposed = not a.flags.f_contiguous
    triangle, lower = (a.T, upper) if transposed else (a, not upper)
    right = np.ascontiguousarray(b).T if row_major else b
    found = trsm(1.0, triangle, right, side=row_major, lower=lower, trans_a=transposed != row_major, diag=unitriangular)
    return found.T if row_major else found


def _solve_triangular(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(_batch_shape(a), _batch_shape(b))
    if a.shape[-1] != a.shape[-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError("the shapes of the matrices do not match")
    if not batch:
        return _solve_one_triangular(a, b, upper, unitriangular)
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    if not b.size:
        return np.empty(b.shape, b.dtype)
    if np.prod(batch) > 8 * a.shape[-1]:
        return _solve_triangular_by_rows(a, b, upper, unitriangular)
    out = np.empty(b.shape, b.dtype)
    for i in _batch_indices(batch):
        out[i] = _solve_one_triangular(a[i], b[i], upper, unitriangular)
    return out


def _solve_triangular_by_rows(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """Solve many small triangular systems: one row of all matrices at a time."""
    n = a.shape[-1]
    out = b.copy()
    for step in range(n):
        row = n - 1 - step if upper else step
        known = slice(row + 1, n) if upper else slice(0, row)
        if step:
            out[..., row : row + 1, :] -= a[..., row : row + 1, known] @ out[..., known, :]
        if not unitriangular:
            out[..., row, :] /= a[..., row, row, None]
    return out


def _lu_factor(x: Any, pivot: bool) -> tuple[Any, Any, Any]:
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    batch = _batch_shape(x)
    m, n = x.shape[-2:]
    getrf = lapack_functions("getrf", like=x)
    lu = np.empty((*batch, n, m), x.dtype)  # column-major, as LAPACK returns it
    pivots, info = np.empty((*batch, min(m, n)), np.int32), np.zeros(batch, np.int32)
    if x.size:
        factors, permutations, infos = lu.reshape(-1, n, m), pivots.reshape(-1, min(m, n)), info.reshape(-1)
        for i, matrix in enumerate(x.reshape(-1, m, n)):
            packed, permutations[i], infos[i] = getrf(matrix)
            factors[i] = packed.T
        pivots += 1
    return np.swapaxes(lu, -1, -2), pivots, info


def _geqrf(x: Any) -> tuple[Any, Any]:
    batch = _batch_shape(x)
    geqrf, geqrf_lwork = lapack_functions("geqrf", "geqrf_lwork", like=x)
    a, tau = np.empty(x.shape, x.dtype), np.empty((*batch, min(x.shape[-2:])), x.dtype)
    if x.size:
        size = int(np.real(geqrf_lwork(*x.shape[-2:])[0]))
        for i in _batch_indices(batch):
            a[i], tau[i], _, _ = geqrf(x[i], lwork=size)
    return a, tau


def _orgqr(a: Any, tau: Any) -> Any:
    batch = _batch_shape(a)
    if tau.shape[:-1] != batch or tau.shape[-1] > a.shape[-1] or a.shape[-1] > a.shape[-2]:
        raise ValueError("the shapes of the matrices do not match")
    if not a.size:
        return a.copy()
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    routine = lapack_functions(name, like=a)
    out = np.empty(a.shape, a.dtype)
    size = BLOCK * a.shape[-1]
    for i in _batch_indices(batch):
        out[i] = routine(a[i], tau[i], lwork=size)[0]
    return out


def _ormqr(a: Any, tau: Any, x: Any, left: bool, transpose: bool) -> Any:
    batch = _batch_shape(a)
    if x.shape[:-2] != batch or tau.shape[:-1] != batch or x.shape[-2 if left else -1] != a.shape[-2]:
        raise ValueError("shapes do not fit")
    if tau.shape[-1] == 0 or not x.size:
        return x.copy()
    is_complex = a.dtype.kind == "c"
    routine = lapack_functions("unmqr" if is_complex else "ormqr", like=a)
    side, transposition = "L" if left else "R", ("C" if is_complex else "T") if transpose else "N"
    size = BLOCK * x.shape[-1 if left else -2]
    out = np.empty(x.shape, x.dtype)
    for i in _batch_indices(batch):
        out[i] = routine(side, transposition, a[i][:, : tau.shape[-1]], tau[i], x[i], size)[0]
    return out


# -- least squares ----------------------------------------------------------------------------------------------------
def _gels(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gels, gels_lwork = lapack_functions("gels", "gels_lwork", like=a)
    m, n = a.shape
    size = int(gels_lwork(m, n, b.shape[1])[0].real)
    return gels(a, b, lwork=size)[1], min(m, n), None


def _gelsy(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelsy, gelsy_lwork = lapack_functions("gelsy", "gelsy_lwork", like=a)
    size = int(np.real(gelsy_lwork(*a.shape, b.shape[1], rcond)[0]))
    _, x, _, rank, _ = gelsy(a, b, np.zeros((a.shape[1], 1), np.int32), rcond, size)
    return x, rank, None


def _gelsd(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelsd, gelsd_lwork = lapack_functions("gelsd", "gelsd_lwork", like=a)
    sizes = [int(np.real(s)) for s in gelsd_lwork(*a.shape, b.shape[1], rcond)[:-1]]
    x, s, rank, info = gelsd(a, b, *sizes, rcond)
    _check_converged(info)
    return x, rank, s


def _gelss(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelss, gelss_lwork = lapack_functions("gelss", "gelss_lwork", like=a)
    size = int(np.real(gelss_lwork(*a.shape, b.shape[1], rcond)[0]))
    _, x, s, rank, _, info = gelss(a, b, rcond, size)
    _check_converged(info)
    return x, rank, s


def _check_converged(info: int) -> None:
    if info > 0:
        raise LinAlgError("linalg.lstsq: The least squares solution could not be computed: the algorithm for computing "
                          "the SVD failed to converge")  # fmt: skip


DRIVERS: dict[str, Callable[..., tuple[Any, int, Any]]] = {
    "gels": _gels, "gelsy": _gelsy, "gelsd": _gelsd, "gelss": _gelss,
}  # fmt: skip


def _lstsq(a: Any, b: Any, rcond: float, driver: str) -> tuple[Any, Any, Any]:
    """Return (solution, rank, singular values). The singular values are empty if the driver does not compute them."""
    batch = np.broadcast_shapes(_batch_shape(a), _batch_shape(b))
    (m, n), k = a.shape[-2:], b.shape[-1]
    a, b = np.broadcast_to(a, (*batch, m, n)), np.broadcast_to(b, (*batch, m, k))
    solve = DRIVERS[driver]
    values = min(m, n) if driver in ("gelsd", "gelss") else 0
    out = np.zeros((*batch, n, k), b.dtype)
    rank = np.zeros(batch, np.int64)
    singular = np.zeros((*batch, values), b.real.dtype)
    if m and n:
        for i in _batch_indices(batch):
            _check_converged(int(values > 0 and not np.isfinite(a[i]).all()))  # LAPACK would print a message
            right = np.zeros((max(m, n), max(k, 1)), b.dtype)  # LAPACK overwrites it with the solution
            right[:m, :k] = b[i]
            x, rank[i], s = solve(a[i], right, rcond)
            out[i] = x[:n, :k]
            if values:
                singular[i] = s
    return out, rank, singular


# -- symmetric indefinite ---------------------------------------------------------------------------------------------
def _symmetric(x: Any, hermitian: bool) -> str:
    return "he" if hermitian and x.dtype.kind == "c" else "sy"


def _ldl_factor(x: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    batch = _batch_shape(x)
    n = x.shape[-1]
    if n != x.shape[-2]:
        raise ValueError(f"ldl_factor() expects square matrices, got {x.shape[-2:]}")
    kind = _symmetric(x, hermitian)
    factor, factor_lwork = lapack_functions(kind + "trf", kind + "trf_lwork", like=x)
    ld, pivots, info = np.empty(x.shape, x.dtype), np.empty((*batch, n), np.int32), np.zeros(batch, np.int32)
    if x.size:
        size = int(np.real(factor_lwork(n, lower=True)[0]))
        for i in _batch_indices(batch):
            factored, pivots[i], info[i] = factor(x[i], lower=True, lwork=size)
            ld[i] = np.tril(factored)
    return ld, pivots, info


def _check_pivots(pivots: Any, n: int) -> None:
    # LAPACK does not check where pivots point. A block of 2 rows is marked by two negative pivots.
    fits = pivots.shape[-1:] == (n,) and bool(((pivots != 0) & (pivots <= n) & (pivots >= -n)).all())
    if not fits or any(_has_half_block(negative) for negative in (pivots < 0).reshape(-1, max(n, 1)).tolist()):
        raise RuntimeError(
            f"linalg.ldl_solve: pivots must be those of ldl_factor: {n} row numbers from 1, negative ones in pairs"
        )


def _has_half_block(negative: list[bool]) -> bool:
    k = 0
    while k < len(negative):
        if negative[k] and negative[k + 1 : k + 2] != [True]:
            return True
        k += 1 + negative[k]
    return False


def _ldl_solve(ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    batch = np.broadcast_shapes(_batch_shape(ld), _batch_shape(b))
    if ld.shape[-1] != b.shape[-2]:
        raise ValueError("the shapes of the matrices do not match")
    _check_pivots(pivots, ld.shape[-1])
    solve = lapack_functions(_symmetric(ld, hermitian) + "trs", like=b)
    ld = np.broadcast_to(ld, batch + ld.shape[-2:])
    pivots = np.broadcast_to(pivots, batch + pivots.shape[-1:]).astype(np.int32)
    b = np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty(b.shape, b.dtype)
    if b.size:
        for i in _batch_indices(batch):
            out[i] = solve(ld[i], pivots[i], b[i], lower=True)[0]
    return out


KERNELS: dict[str, Any] = {name: numpy_kernel(kernel) for name, kernel in (
    ("triangular_solution", _solve_triangular), ("linalg_lu_factor_ex", _lu_factor), ("linalg_geqrf", _geqrf),
    ("linalg_householder_product", _orgqr), ("linalg_ormqr", _ormqr), ("linalg_lstsq", _lstsq),
    ("linalg_ldl_factor_ex", _ldl_factor), ("linalg_ldl_solve", _ldl_solve),
)}  # fmt: skip
