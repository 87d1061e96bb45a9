"""Backward halves of pairs that the core declares, in as few passes and temporaries as NumPy allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.quiet import quiet2


def _tanh_backward(grad: Any, out: Any) -> Any:
    slope = np.multiply(out, out)
    slope = np.subtract(1, slope, out=slope) if slope.shape else np.subtract(1, slope)
    if slope.dtype.kind == "c":
        slope = np.conjugate(slope)
    return np.multiply(grad, slope)


def _sigmoid_backward(grad: Any, out: Any) -> Any:
    slope = np.multiply(np.subtract(1, out), out)
    if slope.dtype.kind == "c":
        slope = np.conjugate(slope)
    return np.multiply(grad, slope)


KERNELS: dict[str, Any] = {"tanh_backward": quiet2(_tanh_backward), "sigmoid_backward": quiet2(_sigmoid_backward)}
