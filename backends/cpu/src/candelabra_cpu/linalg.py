"""Linear algebra: NumPy's batched LAPACK where it has the function.

NumPy raises for a whole batch when one matrix fails; then the matrices are done one by one (:mod:`linalg_each`), which
also says where each of them failed.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from candelabra.errors import LinAlgError

from candelabra_cpu import linalg_each
from candelabra_cpu.quiet import asarray, quiet
from candelabra_cpu.reductions import is_half


def _no_info(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


def _cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    try:
        return np.linalg.cholesky(x, upper=upper), _no_info(x)
    except np.linalg.LinAlgError:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise
        return linalg_each.cholesky(x, upper)


def _inverse(x: Any) -> tuple[Any, Any]:
    try:
        return np.linalg.inv(x), _no_info(x)
    except np.linalg.LinAlgError:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise
        return linalg_each.solved(x, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape))


def _solve(a: Any, b: Any) -> tuple[Any, Any]:
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError("solve takes matrices that fit")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    try:
        return np.linalg.solve(a, b), np.zeros(batch, np.int32)
    except np.linalg.LinAlgError:
        if a.shape[-1] != a.shape[-2]:
            raise
        whole = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
        return linalg_each.solved(*whole)


def _failed(name: str, x: Any, fault: Any) -> LinAlgError:
    """The error of an iteration, which names the first matrix of a batch for which ``fault`` holds."""
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
        raise _failed("linalg.svd", x, _infinite) from error
    if np.isnan(s).any():  # LAPACK does not notice every infinity
        raise _failed("linalg.svd", x, _infinite)
    return u, s, vh


def _svdvals(x: Any) -> Any:
    try:
        s = np.linalg.svdvals(x)
    except np.linalg.LinAlgError as error:
        if x.ndim < 2:
            raise
        raise _failed("linalg.svd", x, _infinite) from error
    if np.isnan(s).any():
        raise _failed("linalg.svd", x, _infinite)
    return s


def _eigh(x: Any, uplo: Literal["L", "U"]) -> tuple[Any, Any]:
    values, vectors = np.linalg.eigh(x, uplo)
    return values, vectors


def _eigvalsh(x: Any, uplo: Literal["L", "U"]) -> Any:
    return np.linalg.eigvalsh(x, uplo)


def _complex(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)


def _eig(x: Any) -> tuple[Any, Any]:
    _refuse_infinite(x)
    values, vectors = np.linalg.eig(x)
    return _complex(values), _complex(vectors)


def _eigvals(x: Any) -> Any:
    _refuse_infinite(x)
    return _complex(np.linalg.eigvals(x))


def _refuse_infinite(x: Any) -> None:
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


def _vector_norm(x: Any, order: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """Norms of order 2 over the last dims without an array of squares; others as they are defined."""
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
    if x.shape != y.shape:  # the dim is one of the broadcast shape, NumPy's of each operand's, and it stays as it is
        x, y = np.broadcast_arrays(x, y)
    vecdot: Any = np.vecdot  # NumPy's annotations lack axis=
    return asarray(vecdot(x, y, axis=dim))


def _permutation(pivots: Any, rows: int) -> Any:
    """Where each row of the product came from, when rows i and ``pivots[i] - 1`` were swapped in turn."""
    flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1]) - 1
    if flat.size and (flat.min() < 0 or flat.max() >= rows):
        raise ValueError("a pivot is no row")
    order = np.tile(np.arange(rows), (len(flat), 1))
    every = np.arange(len(flat))
    for i in range(flat.shape[1]):
        order[every, i], order[every, flat[:, i]] = order[every, flat[:, i]], order[:, i].copy()
    return order.reshape(*pivots.shape[:-1], rows)


KERNELS: dict[str, Any] = {
    "linalg_cholesky_ex": quiet(_cholesky), "linalg_inv_ex": quiet(_inverse), "linalg_solve_ex": quiet(_solve),
    "linalg_svd": quiet(_svd), "linalg_svdvals": quiet(_svdvals), "linalg_eigh": quiet(_eigh),
    "linalg_eigvalsh": quiet(_eigvalsh), "linalg_eig": quiet(_eig), "linalg_eigvals": quiet(_eigvals),
    "linalg_qr": quiet(_qr), "linalg_det": quiet(np.linalg.det), "linalg_slogdet": quiet(_slogdet),
    "linalg_vector_norm": quiet(_vector_norm), "linalg_vecdot": quiet(_vecdot),
    "pivots_to_permutation": quiet(_permutation),
}  # fmt: skip
