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


def _pairs_that_fall_short(x: Array, target: Array) -> Any:
    """Yield (row, label, other class, by how much) for each pair of a label and a class that is none."""
    for row, (scores, listed) in enumerate(zip(x, target, strict=True)):
        labels = list(listed[: int(np.argmax(listed == -1))] if (listed == -1).any() else listed)
        for i in set(range(len(scores))) - set(labels):
            for label in labels:
                short = 1 - scores[label] + scores[i]
                if not short <= 0:
                    yield row, label, i, short


@reference("label_margins")
def label_margins(x: Array, target: Array) -> Array:
    """Add the pairs of each row."""
    losses = np.zeros(x.shape[0], np.result_type(x, np.float64))
    for row, _, _, short in _pairs_that_fall_short(x, target):
        losses[row] += short
    return np.asarray(losses / x.shape[1], x.dtype)


@reference("label_margins_backward")
def label_margins_backward(grad: Array, x: Array, target: Array) -> Array:
    """Count the pairs of each class."""
    counts = np.zeros(x.shape, np.result_type(x, np.float64))
    for row, label, other, short in _pairs_that_fall_short(x, target):
        if short > 0:
            counts[row, label] -= 1
            counts[row, other] += 1
    return np.asarray(counts * grad[:, None] / x.shape[1], x.dtype)
