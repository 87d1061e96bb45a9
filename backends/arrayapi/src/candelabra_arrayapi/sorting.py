"""Sorting. NaN is greater than every number, as in PyTorch; the standard leaves the order of NaN open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra_arrayapi.placement import same_device


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``."""
    int64 = next(v for k, v in dtypes.items() if k.name == "int64")
    narrow = next((v for k, v in dtypes.items() if k.name == "int8"), int64)  # holds the order of bools

    def ascending(x: Any, dim: int) -> Any:
        if xp.isdtype(x.dtype, "bool"):
            x = xp.astype(x, narrow)
        if not xp.isdtype(x.dtype, "real floating"):
            return xp.argsort(x, axis=dim, stable=True)
        nan = xp.isnan(x)
        infinity = xp.asarray(float("inf"), dtype=x.dtype, **same_device(x))
        order = xp.argsort(xp.where(nan, infinity, x), axis=dim, stable=True)
        nan_last = xp.argsort(xp.astype(xp.take_along_axis(nan, order, axis=dim), narrow), axis=dim, stable=True)
        return xp.take_along_axis(order, nan_last, axis=dim)

    def sort(x: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
        if not x.ndim:
            return xp.asarray(x, copy=True), xp.asarray(0, dtype=int64, **same_device(x))
        if descending:  # sort the reversed array ascending and reverse the result: equal elements keep their order
            order = xp.flip(x.shape[dim] - 1 - ascending(xp.flip(x, axis=dim), dim), axis=dim)
        else:
            order = ascending(x, dim)
        order = xp.astype(order, int64)
        return xp.take_along_axis(x, order, axis=dim), order

    return {"sort": sort}
