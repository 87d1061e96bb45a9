"""Normalisation to mean 0 and variance 1, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float64

Ints = tuple[int, ...]


def normalize(x: Any, w: Any, b: Any, dims: Ints, eps: float) -> tuple[Any, Any, Any]:
    """Normalise to mean 0 and variance 1 over ``dims``, then scale and shift.

    Also returns the mean and 1 / deviation.
    """
    mean = x.mean(dims, keepdims=True)
    out = np.subtract(x, mean, order="C")
    rstd = 1 / np.sqrt(np.square(out).mean(dims, keepdims=True) + eps)
    out *= rstd
    if w is not None:
        out *= w
    if b is not None:
        out += b
    return out, mean, rstd


def normalize_backward(g: Any, x: Any, mean: Any, rstd: Any, w: Any, dims: Ints) -> Any:
    """The gradient of :func:`normalize` with respect to its input: ``rstd * (h - mean(h) - z * mean(h * z))`` with the
    normalised z and ``h = g * w``.
    """
    z = np.subtract(x, mean, order="C") * rstd
    h = g if w is None else g * w
    return rstd * (h - h.mean(dims, keepdims=True) - z * (h * z).mean(dims, keepdims=True))


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float64(kernel)) for name, kernel in (
    ("normalize", normalize), ("normalize_backward", normalize_backward),
)}  # fmt: skip
