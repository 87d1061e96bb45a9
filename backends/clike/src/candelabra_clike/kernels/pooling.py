"""Pooling over any number of spatial dims: the largest of a window with its place, sums, and their adjoint."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import ByDtype
from candelabra_clike.templates.convolutions.pooling import Geometry, largest, pool, total

largest = lru_cache(None)(largest)
total = lru_cache(None)(total)


def _largest_for(places: bool) -> Callable[[dtype], Callable[..., Any] | None]:
    def for_dtype(d: dtype) -> Callable[..., Any] | None:
        if d.category in (BOOL, COMPLEX):
            return None
        fold = largest(d, places)

        def kernel(
            x: StridedArray, window: Shape, stride: Shape, padding: Shape, dilation: Shape, windows: Shape
        ) -> Any:
            geometry = Geometry(tuple(window), tuple(stride), tuple(padding), tuple(dilation))
            shape = (*x.shape[: len(x.shape) - len(window)], *windows)
            outs = [x.engine.empty(shape, t) for t in ((d, int64) if places else (d,))]
            pool(x, geometry, tuple(windows), fold, outs)
            return tuple(outs) if places else outs[0]

        return kernel

    return for_dtype


def _sum_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category == BOOL:
        return None
    fold = total(d)

    def sum_pool(
        x: StridedArray, window: Shape, stride: Shape, padding: Shape, dilation: Shape, windows: Shape
    ) -> StridedArray:
        out = x.engine.empty((*x.shape[: len(x.shape) - len(window)], *windows), d)
        pool(x, Geometry(tuple(window), tuple(stride), tuple(padding), tuple(dilation)), tuple(windows), fold, [out])
        return out

    return sum_pool


def _adjoint_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category == BOOL:
        return None
    fold = total(d, adjoint=True)

    def sum_pool_adjoint(
        y: StridedArray, shape: Shape, window: Shape, stride: Shape, padding: Shape, dilation: Shape
    ) -> StridedArray:
        out = y.engine.empty(tuple(shape), d)
        extents = tuple(shape[len(shape) - len(window) :])
        pool(y, Geometry(tuple(window), tuple(stride), tuple(padding), tuple(dilation)), extents, fold, [out])
        return out

    return sum_pool_adjoint


KERNELS: dict[str, Any] = {
    "max_pool": ByDtype(_largest_for(places=True)),
    "max_pool_values": ByDtype(_largest_for(places=False)),
    "sum_pool": ByDtype(_sum_for),
    "sum_pool_adjoint": ByDtype(_adjoint_for),
}
