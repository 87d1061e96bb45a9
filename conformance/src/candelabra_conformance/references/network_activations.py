"""References of composed activations, and of the functions of ``nn.functional`` without a record, by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("gelu_checked")
def gelu(x: Array, approximate: str = "none") -> Any:
    """Use the normal distribution function, or its approximation."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * special.ndtr(x)


@reference("hardtanh_checked")
def hardtanh(x: Array, low: float = -1.0, high: float = 1.0) -> Any:
    """Clip; integers have integer limits."""
    return np.clip(x, int(low), int(high)) if x.dtype.kind in "iu" else np.clip(x, low, high)


@reference("relu6")
def relu6(x: Array) -> Any:
    """Clip to 0 and 6."""
    return np.clip(x, 0, 6)


@reference("hardsigmoid")
def hardsigmoid(x: Array) -> Any:
    """Compute the definition."""
    return np.clip(x + 3, 0, 6) / 6


@reference("hardswish")
def hardswish(x: Array) -> Any:
    """Compute the definition."""
    return x * (np.clip(x + 3, 0, 6) / 6)


@reference("mish")
def mish(x: Array) -> Any:
    """Compute the definition."""
    return x * np.tanh(np.log1p(np.exp(x)))


@reference("elu_of_alpha", "nn.functional.elu_")
def elu(x: Array, alpha: float = 1.0) -> Any:
    """Compute the definition."""
    return np.where(x > 0, x, alpha * np.expm1(x))


@reference("softshrink")
def softshrink(x: Array, lambd: float = 0.5) -> Any:
    """Compute the definition."""
    return np.where(np.abs(x) <= lambd, np.copysign(0.0, x), x - np.sign(x) * lambd)


@reference("tanhshrink")
def tanhshrink(x: Array) -> Any:
    """Compute the definition."""
    return x - np.tanh(x)


@reference("softsign")
def softsign(x: Array) -> Any:
    """Compute the definition."""
    return x / (1.0 + np.abs(x))


@reference("glu")
def glu(x: Array, dim: int = -1) -> Any:
    """Multiply one half by the sigmoid of the other."""
    first, second = np.split(x, 2, dim)
    return first / (1 + np.exp(-second))


@reference("nn.functional.relu")
def relu(x: Array, inplace: bool = False) -> Any:
    """Return the larger of the input and 0."""
    return np.maximum(x, 0)


def implicit_dim(x: Array, dim: int | None) -> int:
    """Return the dim, or PyTorch's default if it is None."""
    return dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1


@reference("nn.functional.softmax")
def softmax(x: Array, dim: int | None = None) -> Any:
    """Call SciPy's function."""
    return special.softmax(x, implicit_dim(x, dim))


@reference("nn.functional.log_softmax")
def log_softmax(x: Array, dim: int | None = None) -> Any:
    """Call SciPy's function."""
    return special.log_softmax(x, implicit_dim(x, dim))


@reference("nn.functional.softmin")
def softmin(x: Array, dim: int | None = None) -> Any:
    """Return the softmax of the negative input."""
    return special.softmax(-x, implicit_dim(x, dim))
