"""Computation of float16 and bfloat16 in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def in_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that it computes half types in float32 and rounds the result once."""

    def wide(x: Any, *rest: Any) -> Any:
        dtype = x.dtype
        if dtype.itemsize != 2 or dtype.kind not in "fV":
            return kernel(x, *rest)
        out = kernel(*(a.astype(np.float32) if _is_half(a) else a for a in (x, *rest)))
        if isinstance(out, tuple):
            return tuple(o.astype(dtype) if o.dtype == np.float32 else o for o in out)
        return out.astype(dtype)

    return wide


def is_half(x: Any) -> bool:
    """Return whether the dtype of an array is float16 or bfloat16."""
    return bool(x.dtype.itemsize == 2 and x.dtype.kind in "fV")


def _is_half(value: Any) -> bool:
    return isinstance(value, np.ndarray) and is_half(value)
