"""Softmax and log-softmax along a dim, and their gradients, in C order whatever the order of the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import asarray, numpy_kernel
from candelabra_cpu.precision import in_float64


def softmax(x: Any, dim: int) -> Any:
    """``exp(x) / sum(exp(x))``, shifted by the maximum."""
    out = _below_maximum(x, dim)
    np.exp(out, out)
    out /= _sum(out, dim)
    return out


def softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """``y * (g - sum(g * y))``."""
    return np.multiply(y, g - _sum(g * y, dim), order="C")


def log_softmax(x: Any, dim: int) -> Any:
    """``x - log(sum(exp(x)))``, shifted by the maximum."""
    out = _below_maximum(x, dim)
    out -= np.log(_sum(np.exp(out), dim))
    return out


def log_softmax_backward(g: Any, y: Any, dim: int) -> Any:
    """``g - exp(y) * sum(g)``."""
    return np.subtract(g, np.exp(y) * _sum(g, dim), order="C")


def _below_maximum(x: Any, dim: int) -> Any:
    """Return ``x`` less its maximum along a dim, in C order."""
    return asarray(np.subtract(x, x.max(dim, keepdims=True) if x.size and x.ndim else x, order="C"))


def _sum(x: Any, dim: int) -> Any:
    """Return the sum along a dim, which is 1 long in an array without dims."""
    return x.sum(dim, keepdims=True) if x.ndim else x


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float64(kernel)) for name, kernel in (
    ("softmax", softmax), ("softmax_backward", softmax_backward), ("log_softmax", log_softmax),
    ("log_softmax_backward", log_softmax_backward),
)}  # fmt: skip
