"""Losses of classes, target by target."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("class_losses")
def class_losses(x: Array, target: Array, ignored: int) -> Any:
    """Return the negative entry of each target's class."""
    if target.shape != (x.shape[0], *x.shape[2:]):
        raise ValueError("a target for each vector")
    losses, weights = np.zeros(target.shape, x.dtype), np.zeros(target.shape, x.dtype)
    for index in np.ndindex(*target.shape):
        if target[index] != ignored:
            losses[index] = -x[(index[0], target[index], *index[1:])]
            weights[index] = 1
    return losses, weights


@reference("weighted_class_losses")
def weighted_class_losses(x: Array, target: Array, weight: Array, ignored: int) -> Any:
    """Multiply each loss by the weight of its class."""
    losses, counted = class_losses(x, target, ignored)
    weights = np.zeros_like(losses)
    for index in np.ndindex(*target.shape):
        if counted[index]:
            weights[index] = weight[target[index]]
    return losses * weights, weights


@reference("mean_class_loss")
def mean_class_loss(x: Array, target: Array, ignored: int) -> Any:
    """Return the mean over the targets that count, and their number."""
    losses, weights = class_losses(x, target, ignored)
    return losses.sum() / weights.sum(), weights.sum()


@reference("class_losses_backward")
def class_losses_backward(grad: Array, target: Array, shape: tuple[int, ...], ignored: int) -> Array:
    """Return each negative gradient at the class of its target."""
    out = np.zeros(shape, grad.dtype)
    for index in np.ndindex(*target.shape):
        if target[index] != ignored:
            out[(index[0], target[index], *index[1:])] = -grad[index]
    return out
