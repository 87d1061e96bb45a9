"""Activations of networks, and the gradients with operators of their own, by their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.promoted import of_floats
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("sigmoid", extended=True)
@of_floats
def sigmoid(x: Array) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


@reference("log_sigmoid", extended=True)
def log_sigmoid(x: Array) -> Any:
    """Return ``log(sigmoid(x))``, without overflow of the exponential."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


@reference("silu", extended=True)
def silu(x: Array) -> Any:
    """Return ``x sigmoid(x)``."""
    return x * sigmoid(x)


@reference("relu", extended=True)
def relu(x: Array) -> Any:
    """Return ``max(x, 0)``."""
    return np.where(x < 0, x.dtype.type(0), x)


@reference("relu_backward", extended=True)
def relu_backward(g: Array, out: Array) -> Any:
    """Return ``g`` if the output is positive, otherwise 0."""
    return np.where(out <= 0, np.result_type(g, out).type(0), g)


@reference("sigmoid_backward", extended=True)
def sigmoid_backward(g: Array, out: Array) -> Any:
    """Return ``g`` times the conjugate of ``s (1 - s)``."""
    return g * np.conjugate(out * (1 - out))


@reference("tanh_backward", extended=True)
def tanh_backward(g: Array, out: Array) -> Any:
    """Return ``g`` times the conjugate of ``1 - t**2``."""
    return g * np.conjugate(1 - out * out)


@reference("silu_backward", extended=True)
def silu_backward(g: Array, x: Array) -> Any:
    """Return ``g`` times the conjugate of ``s (1 + x (1 - s))``, where s is the sigmoid of x."""
    s = sigmoid(x)
    return g * np.conjugate(s * (1 + x * (1 - s)))


@reference("hardswish_backward", extended=True)
def hardswish_backward(g: Array, x: Array) -> Any:
    """Return ``g`` times the slope of hardswish: 0 up to -3, x / 3 + 1 / 2 between, 1 from 3 on."""
    slope = x / 3 + np.result_type(x).type(0.5)
    return np.where(x >= 3, g, np.where(x <= -3, np.result_type(g, x).type(0), g * slope))


@reference("hardsigmoid_backward", extended=True)
def hardsigmoid_backward(g: Array, x: Array) -> Any:
    """Return ``g`` times the slope of hardsigmoid: 1 / 6 between -3 and 3, otherwise 0."""
    return np.where((x <= -3) | (x >= 3), np.result_type(g, x).type(0), g / 6)


@reference("leaky_relu_backward", "sloped_backward", extended=True)
def leaky_relu_backward(g: Array, x: Array, slope: Any) -> Any:
    """Return ``g`` for numbers above 0, ``g * slope`` for the others."""
    return np.where(x > 0, g, g * slope)


@reference("sloped", extended=True)
def sloped(x: Array, slope: Array) -> Any:
    """Return numbers above 0 as they are, and the others times their slope."""
    return np.where(x > 0, x, x * slope)


@reference("shrink_backward", extended=True)
def shrink_backward(g: Array, x: Array, lambd: float) -> Any:
    """Return 0 for numbers up to ``lambd`` in magnitude, ``g`` for the others."""
    return np.where(np.abs(x) <= lambd, np.result_type(g, x).type(0), g)


@reference("hardtanh_backward", extended=True)
def hardtanh_backward(g: Array, x: Array, low: float, high: float) -> Any:
    """Return ``g`` for numbers between the limits, 0 for the others."""
    return np.where((x > low) & (x < high) | np.isnan(x), g, np.result_type(g, x).type(0))
