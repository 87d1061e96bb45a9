"""Sorting over any namespace; NaN last, which the standard leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """The kernels over a namespace; ``dtypes`` maps the core's dtypes to the namespace's."""
    int64 = next(v for k, v in dtypes.items() if k.name == "int64")
    int8 = next(v for k, v in dtypes.items() if k.name == "int8")

    def ascending(x: Any, dim: int) -> Any:
        if xp.isdtype(x.dtype, "bool"):
            x = xp.astype(x, int8)
        if not xp.isdtype(x.dtype, "real floating"):
            return xp.argsort(x, axis=dim, stable=True)
        missing = xp.isnan(x)
        order = xp.argsort(xp.where(missing, xp.asarray(float("inf"), dtype=x.dtype), x), axis=dim, stable=True)
        last = xp.argsort(xp.astype(xp.take_along_axis(missing, order, axis=dim), int8), axis=dim, stable=True)
        return xp.take_along_axis(order, last, axis=dim)

    def sort(x: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
        if not x.ndim:
            return xp.asarray(x, copy=True), xp.asarray(0, dtype=int64)
        if descending:  # the ascending order of the reversed array, reversed: equal elements keep their order
            order = xp.flip(x.shape[dim] - 1 - ascending(xp.flip(x, axis=dim), dim), axis=dim)
        else:
            order = ascending(x, dim)
        order = xp.astype(order, int64)
        return xp.take_along_axis(x, order, axis=dim), order

    return {"sort": sort}
