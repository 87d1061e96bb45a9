"""Pooling over any number of spatial dims: maximum with index, sum, and the gradient of the sum."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.templates.convolutions.pooling import max_reduction, pool, sum_reduction

max_reduction = lru_cache(None)(max_reduction)
sum_reduction = lru_cache(None)(sum_reduction)


def _max_pool_for(with_index: bool) -> Callable[[dtype], Callable[..., Any] | None]:
    def for_dtype(d: dtype) -> Callable[..., Any] | None:
        if d.category in (BOOL, COMPLEX):
            return None
        fold = max_reduction(d, with_index)

        def max_pool(
            x: StridedArray, window: Shape, stride: Shape, padding: Shape, dilation: Shape, windows: Shape
        ) -> Any:
            outs = pool(x, fold, (*x.shape[: -len(window)], *windows), window, stride, padding, dilation)
            return tuple(outs) if with_index else outs[0]

        return max_pool

    return for_dtype


def _sum_pool_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category == BOOL:
        return None
    fold = sum_reduction(d)

    def sum_pool(
        x: StridedArray, window: Shape, stride: Shape, padding: Shape, dilation: Shape, windows: Shape
    ) -> StridedArray:
        return pool(x, fold, (*x.shape[: -len(window)], *windows), window, stride, padding, dilation)[0]

    return sum_pool


def _sum_pool_adjoint_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category == BOOL:
        return None
    fold = sum_reduction(d, adjoint=True)

    def sum_pool_adjoint(
        y: StridedArray, shape: Shape, window: Shape, stride: Shape, padding: Shape, dilation: Shape
    ) -> StridedArray:
        return pool(y, fold, tuple(shape), window, stride, padding, dilation)[0]

    return sum_pool_adjoint


KERNELS: dict[str, Any] = {
    "max_pool": DtypeSpecialized(_max_pool_for(with_index=True)),
    "max_pool_values": DtypeSpecialized(_max_pool_for(with_index=False)),
    "sum_pool": DtypeSpecialized(_sum_pool_for),
    "sum_pool_adjoint": DtypeSpecialized(_sum_pool_adjoint_for),
}
