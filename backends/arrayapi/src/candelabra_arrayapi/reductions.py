"""Reductions, cumulative sums and products, and the matrix product."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Dims = tuple[int, ...] | None


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``."""
    uint8, int64 = (next((v for k, v in dtypes.items() if k.name == name), None) for name in ("uint8", "int64"))

    single = next((v for k, v in dtypes.items() if k.name == "float32"), None)
    halves = [v for k, v in dtypes.items() if k.name in ("float16", "bfloat16")]

    def result_dtype(x: Any, dtype: Any) -> Any:
        if dtype is not None:
            return dtypes[dtype]
        return int64 if xp.isdtype(x.dtype, ("bool", "integral")) else x.dtype

    def sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
        return xp.sum(x, axis=dim, keepdims=keepdim, dtype=result_dtype(x, dtype))

    def prod(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
        return xp.prod(x, axis=dim, keepdims=keepdim, dtype=result_dtype(x, dtype))

    def amax(x: Any, dim: Dims, keepdim: bool) -> Any:
        return xp.max(x, axis=dim, keepdims=keepdim)

    def amin(x: Any, dim: Dims, keepdim: bool) -> Any:
        return xp.min(x, axis=dim, keepdims=keepdim)

    def truth(x: Any, result: Any) -> Any:
        return xp.astype(result, x.dtype) if x.dtype == uint8 else result

    def all(x: Any, dim: Dims, keepdim: bool) -> Any:
        return truth(x, xp.all(x, axis=dim, keepdims=keepdim))

    def any(x: Any, dim: Dims, keepdim: bool) -> Any:
        return truth(x, xp.any(x, axis=dim, keepdims=keepdim))

    def argmax(x: Any, dim: int | None, keepdim: bool) -> Any:
        return xp.astype(xp.argmax(x, axis=dim if x.ndim else None, keepdims=keepdim), int64)

    def argmin(x: Any, dim: int | None, keepdim: bool) -> Any:
        return xp.astype(xp.argmin(x, axis=dim if x.ndim else None, keepdims=keepdim), int64)

    def cumsum(x: Any, dim: int, dtype: Any) -> Any:
        if x.ndim == 0:
            return xp.astype(x, result_dtype(x, dtype), copy=True)
        due = result_dtype(x, dtype)
        if single is None or due not in halves:
            return xp.cumulative_sum(x, axis=dim, dtype=due)
        return xp.astype(xp.cumulative_sum(x, axis=dim, dtype=single), due)  # a sum of ones in float16 stops at 2,048

    def cumprod(x: Any, dim: int, dtype: Any) -> Any:
        if x.ndim == 0:
            return xp.astype(x, result_dtype(x, dtype), copy=True)
        return xp.cumulative_prod(x, axis=dim, dtype=result_dtype(x, dtype))

    return {
        "sum": sum, "prod": prod, "amax": amax, "amin": amin, "all": all, "any": any, "argmax": argmax,
        "argmin": argmin, "cumsum": cumsum, "cumprod": cumprod, "matmul": xp.matmul,
    }  # fmt: skip
