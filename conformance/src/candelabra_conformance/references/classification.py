"""Losses of classes, one target after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("class_losses")
def class_losses(x: Array, target: Array, ignored: int) -> Any:
    """Minus the entry of each target's class."""
    if target.shape != (x.shape[0], *x.shape[2:]):
        raise ValueError("a target for each vector")
    losses, weights = np.zeros(target.shape, x.dtype), np.zeros(target.shape, x.dtype)
    for place in np.ndindex(*target.shape):
        if target[place] != ignored:
            losses[place] = -x[(place[0], target[place], *place[1:])]
            weights[place] = 1
    return losses, weights


@reference("class_losses_backward")
def class_losses_backward(grad: Array, target: Array, shape: tuple[int, ...], ignored: int) -> Array:
    """Minus each gradient at the class of its target."""
    out = np.zeros(shape, grad.dtype)
    for place in np.ndindex(*target.shape):
        if target[place] != ignored:
            out[(place[0], target[place], *place[1:])] = -grad[place]
    return out
