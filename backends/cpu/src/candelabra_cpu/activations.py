"""Activation functions and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import binary_kernel, numpy_kernel
from candelabra_cpu.precision import elementwise_in_float64, is_half


def relu(x: Any) -> Any:
    """``max(x, 0)``, and -0.0 for -0.0."""
    zero = x.dtype.type(0)
    # Of two zeros NumPy returns the second, in float16 the first.
    return np.maximum(x, zero) if x.dtype.char == "e" else np.maximum(zero, x)


def relu_(x: Any) -> Any:
    """``max(x, 0)`` in place, and -0.0 for -0.0."""
    zero = x.dtype.type(0)
    return np.maximum(x, zero, out=x) if x.dtype.char == "e" else np.maximum(zero, x, out=x)


def relu_backward(g: Any, y: Any) -> Any:
    """``g`` where ``y`` is positive or NaN, else 0."""
    return np.where(y <= 0, g.dtype.type(0), g)


def gelu(x: Any, approximate: str) -> Any:
    """``x * Phi(x)``, or its approximation by ``tanh``."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
    from scipy.special import ndtr

    return x * ndtr(x)


def gelu_backward(g: Any, x: Any, approximate: str) -> Any:
    """``g * (Phi(x) + x * phi(x))``, or the gradient of the approximation by ``tanh``."""
    if approximate == "tanh":
        t = np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))
        return g * 0.5 * (1 + t + (1 - t * t) * sqrt(2 / pi) * (x + 3 * 0.044715 * x**3))
    from scipy.special import ndtr

    return g * (ndtr(x) + x * np.exp(-0.5 * x * x) / sqrt(2 * pi))


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``."""
    return x / (1 + np.exp(-x))


def silu_backward(g: Any, x: Any) -> Any:
    """``g * conj(s * (1 + x * (1 - s)))``, s = sigmoid(x)."""
    s = 1 / (1 + np.exp(-x))
    return g * (s * (1 + x * (1 - s))).conj()


def _rounded_once(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the kernel of a function that computes half types in float32, as all other kernels do."""

    def kernel(grad: Any, out: Any) -> Any:
        if not is_half(out):
            return function(grad, out)
        return function(np.asarray(grad, np.float32), out.astype(np.float32)).astype(out.dtype)

    return binary_kernel(kernel)


def _tanh_backward(grad: Any, out: Any) -> Any:
    return grad * (1 - out * out).conj()


def _sigmoid_backward(grad: Any, out: Any) -> Any:
    return grad * ((1 - out) * out).conj()


KERNELS: dict[str, Any] = {name: numpy_kernel(elementwise_in_float64(kernel)) for name, kernel in (
    ("gelu", gelu), ("gelu_backward", gelu_backward), ("silu", silu), ("silu_backward", silu_backward),
)} | {name: numpy_kernel(kernel) for name, kernel in (
    ("relu", relu), ("relu_", relu_), ("relu_backward", relu_backward),
)} | {"tanh_backward": _rounded_once(_tanh_backward), "sigmoid_backward": _rounded_once(_sigmoid_backward)}  # fmt: skip
