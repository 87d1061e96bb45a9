"""Linear algebra by the standard's extension ``linalg``.

The standard does not report where a factorization fails. These kernels return ``info = 1`` for each matrix whose result
is not finite. They decline calls for which the namespace raises an error. A backend that knows the failing minor or
pivot overrides the kernel.

A matrix with a NaN has an inverse and solutions of NaN throughout. Libraries differ there: some compare pivots with 0
in a way that takes NaN for 0, and divide by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import nan
from typing import Any

from candelabra.backend import broadcast_shapes

from candelabra_arrayapi.placement import same_device


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``.

    Without int32, the dtype of ``info``, the factorizations with ``info`` have no kernel.
    """
    linalg = xp.linalg

    def qr(x: Any, mode: str) -> tuple[Any, Any]:
        q, r = linalg.qr(x, mode="reduced" if mode == "r" else mode)
        return q, r

    def svd(x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
        u, s, vh = linalg.svd(x, full_matrices=full_matrices)
        return u, s, vh

    def slogdet(x: Any) -> tuple[Any, Any]:
        sign, log = linalg.slogdet(x)
        return sign, log

    def vecdot(x: Any, y: Any, dim: int) -> Any:
        if x.shape != y.shape:  # dim refers to the broadcast shape; the standard's axis refers to each operand
            x, y = xp.broadcast_arrays(x, y)
        if dim >= x.ndim:
            raise IndexError(f"vecdot: dim {dim} of {x.ndim} dims")  # counted from the end, it would be another dim
        axis = dim if dim < 0 else dim - x.ndim
        if xp.isdtype(x.dtype, "bool"):  # the standard's vecdot is for numbers; that of CuPy adds bytes
            return xp.any(xp.logical_and(x, y), axis=axis)
        return xp.vecdot(x, y, axis=axis)

    int32 = next((v for k, v in dtypes.items() if k.name == "int32"), None)
    return {
        "linalg_qr": qr, "linalg_svd": svd, "linalg_svdvals": linalg.svdvals, "linalg_det": linalg.det,
        "linalg_slogdet": slogdet, "linalg_vecdot": vecdot,
        **_eigenvalues(xp, dtypes),
        **(_with_info(xp, int32) if int32 is not None else {}),
    }  # fmt: skip


def _eigenvalues(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels of eigenvalues, with and without eigenvectors."""
    linalg = xp.linalg
    real_parts = {d.to_complex().name: held for d, held in dtypes.items() if d.is_floating_point and not d.is_half}

    def complex_result(x: Any) -> Any:
        """Return ``x`` as complex numbers: some namespaces return real numbers if all imaginary parts are 0."""
        if xp.isdtype(x.dtype, "complex floating"):
            return x
        return xp.astype(
            x, next(held for d, held in dtypes.items() if d.is_complex and x.dtype == real_parts.get(d.name))
        )

    def eig(x: Any) -> tuple[Any, Any]:
        values, vectors = linalg.eig(x)
        return complex_result(values), complex_result(vectors)

    def eigvals(x: Any) -> Any:
        return complex_result(linalg.eigvals(x))

    def eigh(x: Any, uplo: str) -> tuple[Any, Any]:
        values, vectors = linalg.eigh(_hermitian_from_triangle(xp, x, uplo))
        return values, vectors

    def eigvalsh(x: Any, uplo: str) -> Any:
        return linalg.eigvalsh(_hermitian_from_triangle(xp, x, uplo))

    return {"linalg_eig": eig, "linalg_eigvals": eigvals, "linalg_eigh": eigh, "linalg_eigvalsh": eigvalsh}


def _with_info(xp: Any, int32: Any) -> dict[str, Callable[..., Any]]:
    """Return the kernels whose last result is ``info``, of the dtype ``int32``."""
    linalg = xp.linalg

    def with_info(out: Any) -> tuple[Any, Any]:
        failed = xp.any(~xp.isfinite(out), axis=(-2, -1))
        return out, xp.astype(failed, int32)

    def nan_for_nan(x: Any, out: Any) -> Any:
        """Return ``out`` with NaN for each matrix of ``x`` that has a NaN."""
        undefined = xp.any(xp.isnan(x), axis=(-2, -1), keepdims=True)
        return xp.where(undefined, xp.asarray(nan, dtype=out.dtype, **same_device(out)), out)

    def cholesky_ex(x: Any, upper: bool) -> tuple[Any, Any]:
        return with_info(linalg.cholesky(_hermitian_from_triangle(xp, x, "U" if upper else "L"), upper=upper))

    def inv_ex(x: Any) -> tuple[Any, Any]:
        return with_info(nan_for_nan(x, linalg.inv(x)))

    def solve_ex(a: Any, b: Any) -> tuple[Any, Any]:
        _check_matrix(b)
        if a.shape[:-2] != b.shape[:-2]:  # the standard broadcasts these dims, CuPy does not
            batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
        return with_info(nan_for_nan(a, linalg.solve(a, b)))

    return {"linalg_cholesky_ex": cholesky_ex, "linalg_inv_ex": inv_ex, "linalg_solve_ex": solve_ex}


def _check_matrix(x: Any) -> None:
    """Raise ``ValueError`` for an array that is no matrix, which some functions of some namespaces take."""
    if x.ndim < 2:
        raise ValueError(f"expected a matrix of two or more dims, got an array of shape {x.shape}")


def _hermitian_from_triangle(xp: Any, x: Any, uplo: str) -> Any:
    """Return the Hermitian matrix with the given triangle: the standard's functions may read either triangle.

    Raises ``ValueError`` for a vector, of which ``tril`` of some namespaces makes a matrix.
    """
    _check_matrix(x)
    triangle = xp.tril(x, k=-1) if uplo == "L" else xp.triu(x, k=1)
    mirrored = xp.matrix_transpose(triangle)
    if xp.isdtype(x.dtype, "complex floating"):
        mirrored = xp.conj(mirrored)
    return triangle + mirrored + (xp.tril(x) - xp.tril(x, k=-1))
