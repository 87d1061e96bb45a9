"""Sorting by NumPy's stable sorts, which put NaN last."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.quiet import quiet


def sort(x: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    """(values, indices), stable, NaN last (first when descending)."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    # ml_dtypes' comparison does not put NaN last, float32's does and orders the same values alike.
    keys = x.astype(np.float32) if x.dtype.name == "bfloat16" else x
    if descending:  # the ascending order of the reversed array, reversed: equal elements keep their order
        order = np.flip(x.shape[dim] - 1 - np.argsort(np.flip(keys, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(keys, axis=dim, kind="stable")
    order = np.ascontiguousarray(order, dtype=np.int64)
    return np.take_along_axis(x, order, dim), order


KERNELS: dict[str, Any] = {"sort": quiet(sort)}
