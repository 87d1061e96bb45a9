"""Linear algebra through SciPy's LAPACK and BLAS, one matrix after the other.

LAPACK wants columns next to each other. A C-ordered matrix is the transposed one in that order, so triangular systems
are solved with the flags turned round instead of a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from candelabra.errors import LinAlgError

from candelabra_cpu.quiet import quiet

Ints = tuple[int, ...]
BLOCK = 32
"""Columns that LAPACK's reflections are applied in at once, given the workspace; SciPy gives it room for one."""


def lapack(*names: str, like: Any) -> Any:
    """LAPACK's routines for a dtype."""
    from scipy.linalg.lapack import get_lapack_funcs

    found = get_lapack_funcs(names, dtype=like.dtype)
    return found[0] if len(names) == 1 else found


def _batches(batch: Ints) -> Iterator[Ints]:
    return np.ndindex(*batch)


def _matrix(x: Any) -> Ints:
    """The batch's shape; ValueError, for the record's rule to explain, where there is no matrix."""
    if x.ndim < 2:
        raise ValueError("a matrix has two dims")
    return tuple(x.shape[:-2])


def cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    """The factor as far as it goes, and the order of the first minor that is not positive."""
    potrf = lapack("potrf", like=x)
    out, info = np.empty_like(x), np.zeros(_matrix(x), np.int32)
    for i in _batches(info.shape):
        out[i], info[i] = potrf(x[i], lower=not upper, clean=True)
    return out, info


def solved(a: Any, b: Any) -> tuple[Any, Any]:
    """Solutions of ``a x = b``; a zero pivot is divided by, as it is, and its place is the info."""
    getrf = lapack("getrf", like=a)
    out, info = np.empty(b.shape, b.dtype), np.zeros(_matrix(a), np.int32)
    for i in _batches(info.shape):
        lu, pivots, info[i] = getrf(a[i])
        right = b[i].copy()
        for row, other in enumerate(pivots):
            if other != row:
                right[[row, other]] = right[[other, row]]
        out[i] = _substituted(lu, _substituted(lu, right, False, True), True, False)
    return out, info


def _substituted(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """``x`` with ``a x = b`` for one triangular matrix, by BLAS: a zero on the diagonal is divided by."""
    from scipy.linalg.blas import get_blas_funcs

    if not b.size:
        return b
    trsm = get_blas_funcs("trsm", dtype=b.dtype)
    if a.flags.f_contiguous:
        return trsm(1.0, a, b, lower=not upper, diag=unitriangular)
    return trsm(1.0, a.T, b, lower=upper, trans_a=1, diag=unitriangular)


def _solve_triangular(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    batch = np.broadcast_shapes(_matrix(a), _matrix(b))
    if a.shape[-1] != a.shape[-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError("shapes do not fit")
    if not batch:
        return _substituted(a, b, upper, unitriangular)
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    if not b.size:
        return np.empty(b.shape, b.dtype)
    if np.prod(batch) > 8 * a.shape[-1]:
        return _rowwise(a, b, upper, unitriangular)
    out = np.empty(b.shape, b.dtype)
    for i in _batches(batch):
        out[i] = _substituted(a[i], b[i], upper, unitriangular)
    return out


def _rowwise(a: Any, b: Any, upper: bool, unitriangular: bool) -> Any:
    """The same for many small matrices: row after row, all matrices at once."""
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
    batch = _matrix(x)
    m, n = x.shape[-2:]
    getrf = lapack("getrf", like=x)
    lu = np.empty((*batch, n, m), x.dtype)  # its columns next to each other, as LAPACK returns them
    pivots, info = np.empty((*batch, min(m, n)), np.int32), np.zeros(batch, np.int32)
    if x.size:
        factors, places, infos = lu.reshape(-1, n, m), pivots.reshape(-1, min(m, n)), info.reshape(-1)
        for i, matrix in enumerate(x.reshape(-1, m, n)):
            packed, places[i], infos[i] = getrf(matrix)
            factors[i] = packed.T
        pivots += 1
    return np.swapaxes(lu, -1, -2), pivots, info


def _geqrf(x: Any) -> tuple[Any, Any]:
    batch = _matrix(x)
    geqrf, geqrf_lwork = lapack("geqrf", "geqrf_lwork", like=x)
    a, tau = np.empty(x.shape, x.dtype), np.empty((*batch, min(x.shape[-2:])), x.dtype)
    if x.size:
        size = int(np.real(geqrf_lwork(*x.shape[-2:])[0]))
        for i in _batches(batch):
            a[i], tau[i], _, _ = geqrf(x[i], lwork=size)
    return a, tau


def _orgqr(a: Any, tau: Any) -> Any:
    batch = _matrix(a)
    if tau.shape[:-1] != batch or tau.shape[-1] > a.shape[-1] or a.shape[-1] > a.shape[-2]:
        raise ValueError("shapes do not fit")
    if not a.size:
        return a.copy()
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    routine = lapack(name, like=a)
    out = np.empty(a.shape, a.dtype)
    size = BLOCK * a.shape[-1]
    for i in _batches(batch):
        out[i] = routine(a[i], tau[i], lwork=size)[0]
    return out


def _ormqr(a: Any, tau: Any, x: Any, left: bool, transpose: bool) -> Any:
    batch = _matrix(a)
    if x.shape[:-2] != batch or tau.shape[:-1] != batch or x.shape[-2 if left else -1] != a.shape[-2]:
        raise ValueError("shapes do not fit")
    if tau.shape[-1] == 0 or not x.size:
        return x.copy()
    kind = a.dtype.kind == "c"
    routine = lapack("unmqr" if kind else "ormqr", like=a)
    side, turn = "L" if left else "R", ("C" if kind else "T") if transpose else "N"
    size = BLOCK * x.shape[-1 if left else -2]
    out = np.empty(x.shape, x.dtype)
    for i in _batches(batch):
        out[i] = routine(side, turn, a[i][:, : tau.shape[-1]], tau[i], x[i], size)[0]
    return out


# -- least squares ----------------------------------------------------------------------------------------------------
def _gels(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gels, gels_lwork = lapack("gels", "gels_lwork", like=a)
    m, n = a.shape
    size = int(gels_lwork(m, n, b.shape[1])[0].real)
    return gels(a, b, lwork=size)[1], min(m, n), None


def _gelsy(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelsy, gelsy_lwork = lapack("gelsy", "gelsy_lwork", like=a)
    size = int(np.real(gelsy_lwork(*a.shape, b.shape[1], rcond)[0]))
    _, x, _, rank, _ = gelsy(a, b, np.zeros((a.shape[1], 1), np.int32), rcond, size)
    return x, rank, None


def _gelsd(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelsd, gelsd_lwork = lapack("gelsd", "gelsd_lwork", like=a)
    sizes = [int(np.real(s)) for s in gelsd_lwork(*a.shape, b.shape[1], rcond)[:-1]]
    x, s, rank, info = gelsd(a, b, *sizes, rcond)
    _check_converged(info)
    return x, rank, s


def _gelss(a: Any, b: Any, rcond: float) -> tuple[Any, int, Any]:
    gelss, gelss_lwork = lapack("gelss", "gelss_lwork", like=a)
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
    """(solution, rank, singular values); the last are of size 0 where the driver does not compute them."""
    batch = np.broadcast_shapes(_matrix(a), _matrix(b))
    (m, n), k = a.shape[-2:], b.shape[-1]
    a, b = np.broadcast_to(a, (*batch, m, n)), np.broadcast_to(b, (*batch, m, k))
    solve = DRIVERS[driver]
    values = min(m, n) if driver in ("gelsd", "gelss") else 0
    out = np.zeros((*batch, n, k), b.dtype)
    rank = np.zeros(batch, np.int64)
    singular = np.zeros((*batch, values), b.real.dtype)
    if m and n:
        for i in _batches(batch):
            _check_converged(int(values > 0 and not np.isfinite(a[i]).all()))  # LAPACK would print what it thinks of it
            right = np.zeros((max(m, n), max(k, 1)), b.dtype)  # LAPACK returns the solution in its place
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
    batch = _matrix(x)
    n = x.shape[-1]
    if n != x.shape[-2]:
        raise ValueError("a square matrix is needed")
    kind = _symmetric(x, hermitian)
    factor, factor_lwork = lapack(kind + "trf", kind + "trf_lwork", like=x)
    ld, pivots, info = np.empty(x.shape, x.dtype), np.empty((*batch, n), np.int32), np.zeros(batch, np.int32)
    if x.size:
        size = int(np.real(factor_lwork(n, lower=True)[0]))
        for i in _batches(batch):
            whole, pivots[i], info[i] = factor(x[i], lower=True, lwork=size)
            ld[i] = np.tril(whole)
    return ld, pivots, info


def _check_pivots(pivots: Any, n: int) -> None:
    # LAPACK reads and writes wherever they point. A block of 2 rows has two negative ones.
    fits = pivots.shape[-1:] == (n,) and bool(((pivots != 0) & (pivots <= n) & (pivots >= -n)).all())
    if not fits or any(_has_half_block(negative) for negative in (pivots < 0).reshape(-1, max(n, 1)).tolist()):
        raise RuntimeError(
            f"linalg.ldl_solve: pivots must be {n} numbers as of ldl_factor: rows from 1, negative ones in pairs"
        )


def _has_half_block(negative: list[bool]) -> bool:
    k = 0
    while k < len(negative):
        if negative[k] and negative[k + 1 : k + 2] != [True]:
            return True
        k += 1 + negative[k]
    return False


def _ldl_solve(ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    batch = np.broadcast_shapes(_matrix(ld), _matrix(b))
    if ld.shape[-1] != b.shape[-2]:
        raise ValueError("shapes do not fit")
    _check_pivots(pivots, ld.shape[-1])
    solve = lapack(_symmetric(ld, hermitian) + "trs", like=b)
    ld = np.broadcast_to(ld, batch + ld.shape[-2:])
    pivots = np.broadcast_to(pivots, batch + pivots.shape[-1:]).astype(np.int32)
    b = np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty(b.shape, b.dtype)
    if b.size:
        for i in _batches(batch):
            out[i] = solve(ld[i], pivots[i], b[i], lower=True)[0]
    return out


KERNELS: dict[str, Any] = {name: quiet(kernel) for name, kernel in (
    ("triangular_solution", _solve_triangular), ("linalg_lu_factor_ex", _lu_factor), ("linalg_geqrf", _geqrf),
    ("linalg_householder_product", _orgqr), ("linalg_ormqr", _ormqr), ("linalg_lstsq", _lstsq),
    ("linalg_ldl_factor_ex", _ldl_factor), ("linalg_ldl_solve", _ldl_solve),
)}  # fmt: skip
