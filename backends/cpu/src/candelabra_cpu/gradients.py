"""Backward halves of pairs that the core declares, in as few passes and temporaries as NumPy allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.quiet import quiet2

_ONES = {char: np.ones((), char) for char in "efdFD"}
"""An array of the dtype costs half of what a Python 1 costs beside a small array."""


def _tanh_backward(grad: Any, out: Any) -> Any:
    slope = np.multiply(out, out)
    one = _ONES.get(out.dtype.char)
    if one is None or slope.__class__ is not np.ndarray:
        slope = 1 - slope
    else:
        np.subtract(one, slope, slope)
    if slope.dtype.kind == "c":
        slope = np.conjugate(slope)
    return np.multiply(grad, slope)


def _sigmoid_backward(grad: Any, out: Any) -> Any:
    slope = np.multiply(np.subtract(1, out), out)
    if slope.dtype.kind == "c":
        slope = np.conjugate(slope)
    return np.multiply(grad, slope)


KERNELS: dict[str, Any] = {"tanh_backward": quiet2(_tanh_backward), "sigmoid_backward": quiet2(_sigmoid_backward)}
