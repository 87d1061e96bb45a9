"""Linear algebra where the namespace has the standard's extension ``linalg``.

The standard does not say where a factorization broke down. Here the info is 1 for a matrix whose result is not finite;
a backend that can do better overrides the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Kernels over a namespace; none without the extension. ``dtypes`` maps the core's dtypes to the namespace's."""
    linalg = getattr(xp, "linalg", None)
    if linalg is None:
        return {}
    int32 = next((v for k, v in dtypes.items() if k.name == "int32"), None)

    def with_info(out: Any) -> tuple[Any, Any]:
        broken = xp.any(~xp.isfinite(out), axis=(-2, -1))
        return out, xp.astype(broken, int32)

    def cholesky_ex(x: Any, upper: bool) -> tuple[Any, Any]:
        return with_info(linalg.cholesky(_of_triangle(xp, x, "U" if upper else "L"), upper=upper))

    def inv_ex(x: Any) -> tuple[Any, Any]:
        return with_info(linalg.inv(x))

    def solve_ex(a: Any, b: Any) -> tuple[Any, Any]:
        return with_info(linalg.solve(a, b))

    def qr(x: Any, mode: str) -> tuple[Any, Any]:
        q, r = linalg.qr(x, mode="reduced" if mode == "r" else mode)
        return q, r

    def svd(x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
        u, s, vh = linalg.svd(x, full_matrices=full_matrices)
        return u, s, vh

    def eigh(x: Any, uplo: str) -> tuple[Any, Any]:
        values, vectors = linalg.eigh(_of_triangle(xp, x, uplo))
        return values, vectors

    def eigvalsh(x: Any, uplo: str) -> Any:
        return linalg.eigvalsh(_of_triangle(xp, x, uplo))

    def slogdet(x: Any) -> tuple[Any, Any]:
        sign, log = linalg.slogdet(x)
        return sign, log

    def vecdot(x: Any, y: Any, dim: int) -> Any:
        if x.shape != y.shape:  # the dim is one of the broadcast shape, the standard's of each operand's
            x, y = xp.broadcast_arrays(x, y)
        return xp.vecdot(x, y, axis=dim if dim < 0 else dim - x.ndim)

    table = {
        "linalg_cholesky_ex": cholesky_ex, "linalg_inv_ex": inv_ex, "linalg_solve_ex": solve_ex, "linalg_qr": qr,
        "linalg_svd": svd, "linalg_svdvals": linalg.svdvals, "linalg_eigh": eigh, "linalg_eigvalsh": eigvalsh,
        "linalg_det": linalg.det, "linalg_slogdet": slogdet, "linalg_vecdot": vecdot,
    }  # fmt: skip
    if hasattr(linalg, "eig") and hasattr(linalg, "eigvals"):  # of the standard since 2025.12
        table["linalg_eig"] = lambda x: tuple(linalg.eig(x))
        table["linalg_eigvals"] = linalg.eigvals
    return table


def _of_triangle(xp: Any, x: Any, uplo: str) -> Any:
    """The Hermitian matrix that one triangle stands for: the standard's functions may read either."""
    half = xp.tril(x, k=-1) if uplo == "L" else xp.triu(x, k=1)
    other = xp.matrix_transpose(half)
    if xp.isdtype(x.dtype, "complex floating"):
        other = xp.conj(other)
    return half + other + (xp.tril(x) - xp.tril(x, k=-1))
