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
