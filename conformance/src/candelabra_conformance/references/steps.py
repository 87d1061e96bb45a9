"""Steps of optimisers by their papers' formulas, in the papers' order."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _direction(param: Array, grad: Array, decay: float, maximize: bool) -> Array:
    return (-grad if maximize else grad) + decay * param


@reference("sgd_step", extended=True)
def sgd_step(param: Array, grad: Array, lr: float, decay: float, maximize: bool) -> Any:
    """Implement Robbins and Monro, 1951."""
    return param - lr * _direction(param, grad, decay, maximize)


@reference("momentum_step", extended=True)
def momentum_step(
    param: Array, grad: Array, buffer: Array, lr: float, momentum: float, dampening: float, decay: float,
    nesterov: bool, maximize: bool,
) -> Any:  # fmt: skip
    """Implement Sutskever et al., ICML 2013, in the form with the learning rate outside of the sum."""
    g = _direction(param, grad, decay, maximize)
    kept = momentum * buffer + (1 - dampening) * g
    return param - lr * (g + momentum * kept if nesterov else kept), kept


def _adaptive(
    param: Array, grad: Array, mean: Array, square: Array, largest: Array | None, step: float, lr: float, beta1: float,
    beta2: float, eps: float, decay: float, decoupled: bool, maximize: bool,
) -> Any:  # fmt: skip
    g = _direction(param, grad, 0.0 if decoupled else decay, maximize)
    m = beta1 * mean + (1 - beta1) * g
    v = beta2 * square + (1 - beta2) * g**2
    top = v if largest is None else np.maximum(largest, v)
    corrected = m / (1 - beta1**step), top / (1 - beta2**step)
    shrunk = (1 - lr * decay) * param if decoupled else param
    moved = shrunk - lr * corrected[0] / (np.sqrt(corrected[1]) + eps)
    return (moved, m, v) if largest is None else (moved, m, v, top)


@reference("adam_step", extended=True)
def adam_step(param: Array, grad: Array, mean: Array, square: Array, *numbers: Any) -> Any:
    """Implement Algorithm 1 of Kingma and Ba, ICLR 2015, with the decay of Loshchilov and Hutter, ICLR 2019."""
    return _adaptive(param, grad, mean, square, None, *numbers)


@reference("amsgrad_step", extended=True)
def amsgrad_step(param: Array, grad: Array, mean: Array, square: Array, largest: Array, *numbers: Any) -> Any:
    """Implement Algorithm 2 of Reddi, Kale and Kumar, ICLR 2018, with the corrections of Adam."""
    return _adaptive(param, grad, mean, square, largest, *numbers)
