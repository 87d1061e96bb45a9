"""Linear algebra by NumPy's batched LAPACK.

NumPy raises for the whole batch if one matrix fails. The kernels then process the matrices one by one with
:mod:`candelabra_cpu.lapack`, which also reports where each of them fails.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from candelabra.errors import LinAlgError

from candelabra_cpu import lapack
from candelabra_cpu.numpy_kernels import asarray, numpy_kernel
from candelabra_cpu.precision import is_half

FEW = 32
"""Fewer permutations than this are computed one by one."""
LARGE = 48
"""Matrices of at least this number of rows are factorized one by one: SciPy's LAPACK is faster than NumPy's."""


def _zero_info(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


def _cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    try:
        factor = np.linalg.cholesky(x, upper=upper)
        if not np.isnan(factor.diagonal(axis1=-2, axis2=-1)).any():  # NumPy lets NaN pass
            return factor, _zero_info(x)
    except np.linalg.LinAlgError:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise
    return lapack.cholesky(x, upper)


def _inverse(x: Any) -> tuple[Any, Any]:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"inv() expects square matrices, got {x.shape}")
    if x.shape[-1] < LARGE:
        try:
            return np.linalg.inv(x), _zero_info(x)
        except np.linalg.LinAlgError:  # a matrix is singular
            pass
    return lapack.solve(x, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape))


def _solve(a: Any, b: Any) -> tuple[Any, Any]:
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"solve() expects matrices of matching shapes, got {a.shape} and {b.shape}")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] < LARGE:
        try:
            return np.linalg.solve(a, b), np.zeros(batch, np.int32)
        except np.linalg.LinAlgError:  # a matrix is singular
            pass
    return lapack.solve(np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:]))


def _convergence_error(name: str, x: Any, fault: Any) -> LinAlgError:
    """Return the error of an iteration that does not converge.

    It names the first matrix of the batch for which ``fault`` holds.
    """
    where = ""
    if x.ndim > 2:
        flat = x.reshape(-1, *x.shape[-2:])
        where = f"(Batch element {next((i for i, m in enumerate(flat) if fault(m)), 0)}): "
    why = "contained non-finite values" if not np.isfinite(x).all() else "is ill-conditioned"
    return LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix {why}.")


def _infinite(x: Any) -> bool:
    return not np.isfinite(x).all()


def _svd(x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    try:
        u, s, vh = np.linalg.svd(x, full_matrices)
    except np.linalg.LinAlgError as error:
        if x.ndim < 2:
            raise
        raise _convergence_error("linalg.svd", x, _infinite) from error
    if np.isnan(s).any():  # LAPACK does not report every infinity
        raise _convergence_error("linalg.svd", x, _infinite)
    return u, s, vh


def _svdvals(x: Any) -> Any:
    try:
        s = np.linalg.svdvals(x)
    except np.linalg.LinAlgError as error:
        if x.ndim < 2:
            raise
        raise _convergence_error("linalg.svd", x, _infinite) from error
    if np.isnan(s).any():
        raise _convergence_error("linalg.svd", x, _infinite)
    return s


def _eigh(x: Any, uplo: Literal["L", "U"]) -> tuple[Any, Any]:
    values, vectors = np.linalg.eigh(x, uplo)
    return values, vectors


def _eigvalsh(x: Any, uplo: Literal["L", "U"]) -> Any:
    return np.linalg.eigvalsh(x, uplo)


def _to_complex(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)


def _eig(x: Any) -> tuple[Any, Any]:
    _check_finite(x)
    values, vectors = np.linalg.eig(x)
    return _to_complex(values), _to_complex(vectors)


def _eigvals(x: Any) -> Any:
    _check_finite(x)
    return _to_complex(np.linalg.eigvals(x))


def _check_finite(x: Any) -> None:
    if not np.isfinite(x).all():
        raise LinAlgError("linalg.eig: input tensor should not contain infs or NaNs.")


def _qr(x: Any, mode: Literal["reduced", "complete", "r"]) -> tuple[Any, Any]:
    if mode == "r":
        return np.empty((0,), x.dtype), np.linalg.qr(x, "r")
    q, r = np.linalg.qr(x, mode)
    return q, r


def _slogdet(x: Any) -> tuple[Any, Any]:
    sign, log = np.linalg.slogdet(x)
    real = x.real.dtype
    return asarray(sign, x.dtype), asarray(log, real)


def _det_backward(g: Any, a: Any, out: Any) -> Any:
    """The gradient of determinants: by the inverse, but of singular matrices by singular values, which is slower."""
    weight = (g * np.conj(out))[..., None, None]
    singular = out == 0
    if not singular.any():
        return np.conj(np.linalg.inv(a).swapaxes(-1, -2)) * weight
    n = a.shape[-1]
    regular = np.linalg.inv(np.where(singular[..., None, None], np.eye(n, dtype=a.dtype), a))
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    phase = np.conj(np.linalg.det(u) * np.linalg.det(vh)) * g
    adjugate = (u * (phase[..., None] * others)[..., None, :]) @ vh
    return np.where(singular[..., None, None], adjugate, np.conj(regular.swapaxes(-1, -2)) * weight)


def _det_along(t: Any, a: Any) -> tuple[Any, Any]:
    _check_same_shape(t, a)
    sign, log, trace = _slogdet_along(t, a)
    det = sign * np.exp(log)
    if det.all():
        return asarray(det, a.dtype), asarray(det * trace, a.dtype)
    slope = np.sum(np.conj(_det_backward(np.ones_like(det), a, det)) * t, axis=(-2, -1))
    return asarray(det, a.dtype), asarray(slope, a.dtype)


def _slogdet_along(t: Any, a: Any) -> tuple[Any, Any, Any]:
    """Sign and logarithm of determinants, and the trace of the inverse times the tangent, by one factorization."""
    _check_same_shape(t, a)
    if a.shape[-1] < LARGE:  # the loop over matrices would take longer than a second factorization
        (sign, log), transposed = np.linalg.slogdet(a), _inverse(a)[0].swapaxes(-1, -2)
    else:
        diagonal, odd, transposed = lapack.inverses(a)
        size = np.abs(diagonal)
        sign = np.prod(diagonal / np.where(size == 0, 1, size), axis=-1) * (1 - 2 * odd)
        with np.errstate(divide="ignore"):
            log = np.log(size).sum(-1)
    trace = np.einsum("...ij,...ij->...", transposed, t)
    return asarray(sign, a.dtype), asarray(log, a.real.dtype), asarray(trace, a.dtype)


def _check_same_shape(t: Any, a: Any) -> None:
    if t.shape != a.shape:
        raise ValueError("the tangent has another shape")


def _vector_norm(x: Any, order: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """Return vector norms. The 2-norm over trailing dims allocates no array of squares."""
    if is_half(x):
        return asarray(_vector_norm(x.astype(np.float32), order, dim, keepdim)).astype(x.dtype)
    count = x.ndim if dim is None else len(dim)
    last = dim is None or min(dim) == x.ndim - count
    if order == 2 and last and x.size and x.flags.c_contiguous and x.dtype.kind == "f":
        lead = x.shape[: x.ndim - count]
        rows = x.reshape((*lead, -1))
        return asarray(np.sqrt(np.vecdot(rows, rows))).reshape((*lead, *[1] * count) if keepdim else lead)
    dims = tuple(range(x.ndim)) if dim is None else dim
    return asarray(np.linalg.vector_norm(x, axis=dims, keepdims=keepdim, ord=order)).astype(x.real.dtype, copy=False)


def _vecdot(x: Any, y: Any, dim: int) -> Any:
    if is_half(x):
        return _vecdot(x.astype(np.float32), y.astype(np.float32), dim).astype(x.dtype)
    if x.shape != y.shape:  # dim refers to the broadcast shape; NumPy's axis refers to each operand
        x, y = np.broadcast_arrays(x, y)
    vecdot: Any = np.vecdot  # NumPy's annotations lack axis=
    return asarray(vecdot(x, y, axis=dim))


def _permutation(pivots: Any, rows: int) -> Any:
    """Return the source row of each row when rows ``i`` and ``pivots[i] - 1`` are swapped in order."""
    flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1]) - 1
    if flat.size and (flat.min() < 0 or flat.max() >= rows):
        raise ValueError(f"pivots must be in 1 to {rows}, got {flat.min() + 1} to {flat.max() + 1}")
    if len(flat) < FEW:
        return np.array([lapack.swapped(row, rows) for row in flat.tolist()], np.int64).reshape(
            *pivots.shape[:-1], rows
        )
    order = np.tile(np.arange(rows), (len(flat), 1))
    every = np.arange(len(flat))
    for i in range(flat.shape[1]):
        order[every, i], order[every, flat[:, i]] = order[every, flat[:, i]], order[:, i].copy()
    return order.reshape(*pivots.shape[:-1], rows)


KERNELS: dict[str, Any] = {
    "linalg_cholesky_ex": numpy_kernel(_cholesky), "linalg_inv_ex": numpy_kernel(_inverse),
    "linalg_solve_ex": numpy_kernel(_solve), "linalg_svd": numpy_kernel(_svd), "linalg_svdvals": numpy_kernel(_svdvals),
    "linalg_eigh": numpy_kernel(_eigh), "linalg_eigvalsh": numpy_kernel(_eigvalsh), "linalg_eig": numpy_kernel(_eig),
    "linalg_eigvals": numpy_kernel(_eigvals), "linalg_qr": numpy_kernel(_qr), "linalg_det": numpy_kernel(np.linalg.det),
    "linalg_det_along": numpy_kernel(_det_along), "linalg_slogdet_along": numpy_kernel(_slogdet_along),
    "linalg_det_backward": numpy_kernel(_det_backward), "linalg_slogdet": numpy_kernel(_slogdet),
    "linalg_vector_norm": numpy_kernel(_vector_norm), "linalg_vecdot": numpy_kernel(_vecdot),
    "pivots_to_permutation": numpy_kernel(_permutation),
}  # fmt: skip
