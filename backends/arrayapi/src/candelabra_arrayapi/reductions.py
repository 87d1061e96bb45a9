"""Reductions, cumulative sums and products, and the matrix product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Dims = tuple[int, ...] | None


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``."""
    uint8, int64, float32 = (
        next((v for k, v in dtypes.items() if k.name == name), None) for name in ("uint8", "int64", "float32")
    )
    halves = [v for k, v in dtypes.items() if k.is_half and float32 is not None]

    def result_dtype(x: Any, dtype: Any) -> Any:
        if dtype is not None:
            return dtypes[dtype]
        return int64 if xp.isdtype(x.dtype, ("bool", "integral")) else x.dtype

    def accumulating(function: Callable[..., Any], x: Any, dtype: Any, **options: Any) -> Any:
        """Call a function that adds or multiplies, for half types in float32: each step would lose digits."""
        result = result_dtype(x, dtype)
        if result not in halves:
            return function(x, dtype=result, **options)
        rounded = x if x.dtype == result else xp.astype(x, result)
        return xp.astype(function(rounded, dtype=float32, **options), result)

    def sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
        return accumulating(xp.sum, x, dtype, axis=dim, keepdims=keepdim)

    def prod(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
        return accumulating(xp.prod, x, dtype, axis=dim, keepdims=keepdim)

    def require_elements(x: Any, dim: Dims) -> None:
        """Raise ``ValueError`` if a reduced dim has size 0: the standard permits any extremum of no elements."""
        if 0 in (x.shape if dim is None or not x.ndim else [x.shape[d] for d in dim]):
            raise ValueError(f"an array of shape {tuple(x.shape)} has no extremum over dims {dim}")

    def amax(x: Any, dim: Dims, keepdim: bool) -> Any:
        require_elements(x, dim)
        return xp.max(x, axis=dim, keepdims=keepdim)

    def amin(x: Any, dim: Dims, keepdim: bool) -> Any:
        require_elements(x, dim)
        return xp.min(x, axis=dim, keepdims=keepdim)

    def truth(x: Any, result: Any) -> Any:
        return xp.astype(result, x.dtype) if x.dtype == uint8 else result

    def all(x: Any, dim: Dims, keepdim: bool) -> Any:
        return truth(x, xp.all(x, axis=dim, keepdims=keepdim))

    def any(x: Any, dim: Dims, keepdim: bool) -> Any:
        return truth(x, xp.any(x, axis=dim, keepdims=keepdim))

    def argmax(x: Any, dim: int | None, keepdim: bool) -> Any:
        require_elements(x, None if dim is None else (dim,))
        return xp.astype(xp.argmax(x, axis=dim if x.ndim else None, keepdims=keepdim), int64)

    def argmin(x: Any, dim: int | None, keepdim: bool) -> Any:
        require_elements(x, None if dim is None else (dim,))
        return xp.astype(xp.argmin(x, axis=dim if x.ndim else None, keepdims=keepdim), int64)

    def cumsum(x: Any, dim: int, dtype: Any) -> Any:
        if x.ndim == 0:
            return xp.astype(x, result_dtype(x, dtype), copy=True)
        return accumulating(xp.cumulative_sum, x, dtype, axis=dim)

    def cumprod(x: Any, dim: int, dtype: Any) -> Any:
        if x.ndim == 0:
            return xp.astype(x, result_dtype(x, dtype), copy=True)
        return accumulating(xp.cumulative_prod, x, dtype, axis=dim)

    return {
        "sum": sum, "prod": prod, "amax": amax, "amin": amin, "all": all, "any": any, "argmax": argmax,
        "argmin": argmin, "cumsum": cumsum, "cumprod": cumprod, "matmul": xp.matmul,
    }  # fmt: skip
