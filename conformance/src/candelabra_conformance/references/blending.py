"""Masks, weights, decimals, and activations with parameters, by their formulas."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
special: Final[Any] = import_module("scipy.special")  # it has no types


def _like(value: Any, x: Any) -> Any:
    return value.astype(x.dtype) if isinstance(value, np.ndarray) and isinstance(x, np.ndarray) else value


references({"where": lambda condition, a, b: np.where(condition, a, b)})
references(
    {
        "masked_fill": lambda x, mask, value: np.where(mask, _like(value, x), x),
        "masked_fill_cast": lambda x, mask, value: np.where(mask, np.asarray(value).astype(x.dtype), x),
        "Tensor.where": lambda x, condition, y: np.where(condition, x, y),
        "leaky_relu": lambda x, slope=0.01: np.where(x > 0, x, x * slope),
        "hardtanh": lambda x, low=-1.0, high=1.0: np.minimum(np.maximum(x, low), high),
    },
    extended=True,
)


@reference("where_indices", as_given=True)
def where_indices(condition: Array) -> tuple[Array, ...]:
    """Call NumPy's ``nonzero``, with a number as a vector of one element."""
    return np.nonzero(np.atleast_1d(condition))


@reference("Tensor.apply_", "Tensor.map_", "Tensor.map2_", as_given=True)
def elementwise(x: Array, *arguments: Any) -> Array:
    """Call the function for every element, sequentially."""
    *others, function = arguments
    each = zip(x.ravel(), *(np.broadcast_to(o, x.shape).ravel() for o in others), strict=True)
    return np.array([function(*elements) for elements in each], x.dtype).reshape(x.shape)


@reference("round", extended=True)
def round(x: Array, decimals: int = 0) -> Any:
    """Round half to even; with decimals, scale by a power of ten, as PyTorch does."""
    if x.dtype.kind in "biu" or not decimals:
        return np.rint(x) if x.dtype.kind not in "biu" else x
    scale = np.longdouble(10) ** abs(decimals)
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def _scaled(x: Array, value: Any) -> Any:
    return x if value == 1 else x * x.dtype.type(value)


references(
    {
        "addcmul": lambda x, a, b, value=1: x + _scaled(a, value) * b,
        "addcdiv": lambda x, a, b, value=1: x + _scaled(a, value) / b,
    },
    extended=True,
)


def _scale(value: float) -> Any:
    return np.longdouble(value)


@reference("gelu")
def gelu(x: Array, approximate: str = "none") -> Any:
    """Compute ``x * Phi(x)`` with SciPy's normal distribution function, or the formula of the approximation with
    tanh."""
    if approximate == "none":
        return x * special.ndtr(x)
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@reference("gelu_backward")
def gelu_backward(grad: Array, x: Array, approximate: str) -> Any:
    """Apply the product rule to each form."""
    if approximate == "none":
        return grad * (special.ndtr(x) + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    return grad * ((1 + np.tanh(inner)) / 2 + x / 2 * slope / np.cosh(inner) ** 2)


references(
    {
        "huber": lambda x, y, curve, width, slope: np.where(
            np.abs(x - y) > width, (np.abs(x - y) - _scale(width) / 2) * slope, (x - y) ** 2 * _scale(curve)
        ),
        "huber_backward": lambda g, x, y, curve, width: g * np.clip(x - y, -width, width) * 2 * _scale(curve),
        "soft_threshold": lambda x, lambd: np.copysign(
            np.where(np.isnan(x), x, np.maximum(np.abs(x) - _scale(lambd), 0)), x
        ),
        "scale_about": lambda x, center, factor, shift: (x - center) * factor + shift,
    },
    extended=True,
)


@reference("softplus", extended=True)
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Compute ``log(1 + exp(beta x)) / beta`` with NumPy's ``logaddexp``."""
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * _scale(beta)) / beta)


@reference("elu", extended=True)
def elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """Compute a function that is linear above 0, and below 0 an exponential with the limit ``-alpha * scale``."""
    return np.where(x > 0, x * _scale(scale), _scale(scale) * alpha * np.expm1(x * _scale(input_scale)))


@reference("elu_backward", extended=True)
def elu_backward(g: Array, x: Array, alpha: float, scale: float, input_scale: float) -> Any:
    """Return ``g`` times the slope of :func:`elu`: constant above 0, and an exponential below."""
    below = np.exp(np.minimum(x * _scale(input_scale), 0)) * _scale(scale) * alpha * input_scale
    return g * np.where(x > 0, _scale(scale), below)
