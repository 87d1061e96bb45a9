"""References of the losses, by definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def reduced(loss: Any, reduction: str, total: Any = None) -> Any:
    """Return the losses, their sum, or their mean; ``total`` is the sum of the weights, if there are any."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean() if total is None else loss.sum() / total


def weighted(loss: Any, weight: Array | None, reduction: str) -> Any:
    """Apply the weights of the elements; the mean is weighted."""
    return reduced(loss, reduction) if weight is None else reduced(loss * weight, reduction, weight.sum())


@reference("mse_loss")
def mse_loss(
    x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """Return the squared difference."""
    return weighted((x - y) ** 2, weight, reduction)


@reference("l1_loss")
def l1_loss(
    x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None
) -> Any:
    """Return the absolute difference."""
    return weighted(np.abs(x - y), weight, reduction)


@reference("smooth_l1_loss")
def smooth_l1_loss(
    x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """Compute a function that is quadratic near 0 and linear elsewhere."""
    d = np.abs(x - y)
    return reduced(np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


@reference("huber_loss")
def huber_loss(x: Array, y: Array, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """Compute a function that is quadratic near 0 and linear elsewhere."""
    d = np.abs(x - y)
    return weighted(np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), weight, reduction)


@reference("binary_cross_entropy")
def binary_cross_entropy(
    x: Array, y: Array, weight: Any = None, average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Compute the definition."""
    return reduced(-(y * np.log(x) + (1 - y) * np.log1p(-x)) * (1 if weight is None else weight), reduction)


@reference("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    x: Array, y: Array, weight: Any = None, average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:  # fmt: skip
    """Use the logarithms of the sigmoid and of its complement."""
    positive = y * (1 if pos_weight is None else pos_weight)
    loss = positive * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)
    return reduced(loss * (1 if weight is None else weight), reduction)


@reference("kl_div")
def kl_div(
    x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Any:
    """Compute the definition."""
    loss = np.exp(y) * (y - x) if log_target else y * (np.log(y) - x)
    return loss.sum() / len(x) if reduction == "batchmean" else reduced(loss, reduction)


@reference("poisson_nll_loss")
def poisson_nll_loss(
    x: Array, y: Array, log_input: bool = True, full: bool = False, average: Any = None, eps: float = 1e-8,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute the definition, with Stirling's approximation above 1."""
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        loss = loss + np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0)
    return reduced(loss, reduction)


@reference("gaussian_nll_loss")
def gaussian_nll_loss(
    x: Array, y: Array, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Compute the definition."""
    var = var[..., None] if np.ndim(var) == x.ndim - 1 and np.ndim(var) else var
    loss = 0.5 * (np.log(var) + (x - y) ** 2 / var)
    return reduced(loss + 0.5 * np.log(2 * np.pi) if full else loss, reduction)


# -- margins ----------------------------------------------------------------------------------------------------------
@reference("margin_ranking_loss")
def margin_ranking_loss(
    x: Array, z: Array, y: Array, margin: float = 0, average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Compute the definition."""
    return reduced(np.maximum(0, margin - y * (x - z)), reduction)


@reference("hinge_embedding_loss")
def hinge_embedding_loss(
    x: Array, y: Array, margin: float = 1.0, average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Compute the definition."""
    return reduced(np.where(y == 1, x, np.maximum(0, margin - x)), reduction)


@reference("soft_margin_loss")
def soft_margin_loss(x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """Compute the definition."""
    return reduced(np.logaddexp(0, -y * x), reduction)


@reference("cosine_embedding_loss")
def cosine_embedding_loss(
    x: Array, z: Array, y: Array, margin: float = 0, average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Compute the cosine from squared norms, to which PyTorch adds 1e-12."""
    squares = [(v * v).sum(-1) + 1e-12 for v in (x, z)]
    cosine = (x * z).sum(-1) / np.sqrt(squares[0] * squares[1])
    return reduced(np.where(y == 1, 1 - cosine, np.maximum(0, cosine - margin)), reduction)


def triplet(x: Array, y: Array, z: Array, margin: float, p: float, eps: float, swap: bool, reduction: str) -> Any:
    """Return the difference of two distances."""

    def distance(a: Array, b: Array) -> Any:
        return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)

    far = np.minimum(distance(x, z), distance(y, z)) if swap else distance(x, z)
    return reduced(np.maximum(0, distance(x, y) - far + margin), reduction)


@reference("triplet_margin_loss")
def triplet_margin_loss(
    x: Array, y: Array, z: Array, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Use p-norms."""
    return triplet(x, y, z, margin, p, eps, swap, reduction)


@reference("nn.functional.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    x: Array, y: Array, z: Array, *, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
) -> Any:
    """Use the Euclidean distance."""
    return triplet(x, y, z, margin, 2, 1e-6, swap, reduction)


@reference("multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    x: Array, y: Array, weight: Any = None, average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """Average the binary cross entropy over the classes."""
    loss = y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)
    return reduced((loss * (1 if weight is None else weight)).mean(-1), reduction)


@reference("multilabel_margin_loss")
def multilabel_margin_loss(x: Array, y: Array, average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """Compute label by label."""
    losses = []
    for row, target in zip(np.atleast_2d(x), np.atleast_2d(y), strict=True):
        end = int(np.argmax(target < 0)) if (target < 0).any() else len(target)
        others = [i for i in range(len(row)) if i not in target[:end]]
        losses.append(sum(max(0, 1 - (row[t] - row[i])) for t in target[:end] for i in others) / len(row))
    return reduced(np.array(losses, x.dtype) if x.ndim == 2 else np.array(losses[0], x.dtype), reduction)


@reference("multi_margin_loss")
def multi_margin_loss(
    x: Array, y: Array, p: int = 1, margin: float = 1.0, weight: Any = None, average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute row by row."""
    losses = []
    for row, target in zip(np.atleast_2d(x), np.atleast_1d(y), strict=True):
        terms = [max(0, margin - row[target] + v) ** p for i, v in enumerate(row) if i != target]
        losses.append(sum(terms) / len(row) * (1 if weight is None else weight[target]))
    return reduced(np.array(losses, x.dtype) if y.ndim else np.array(losses[0], x.dtype), reduction)


# -- classes ----------------------------------------------------------------------------------------------------------
def nll(
    logs: Array, y: Array, weight: Any, ignored: int, reduction: str, smoothing: float = 0.0
) -> Any:  # classes along dim 1 or, of one row, dim 0
    """Compute target by target."""
    axis = 1 if logs.ndim > 1 else 0
    rows = np.moveaxis(logs, axis, -1)
    losses, weights = np.zeros(y.shape, logs.dtype), np.zeros(y.shape, logs.dtype)
    for index in np.ndindex(*y.shape):
        if y[index] != ignored:
            row = rows[index]
            scale = np.ones(len(row)) if weight is None else weight
            weights[index] = scale[y[index]]
            losses[index] = -(1 - smoothing) * row[y[index]] * weights[index] - smoothing * (row * scale).mean()
    return reduced(losses, reduction, weights.sum())


@reference("nll_loss")
def nll_loss(
    x: Array, y: Array, weight: Any = None, average: Any = None, ignored: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute target by target."""
    return nll(x, y, weight, ignored, reduction)


@reference("cross_entropy")
def cross_entropy(
    x: Array, y: Array, weight: Any = None, average: Any = None, ignored: int = -100, reduce: Any = None,
    reduction: str = "mean", smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return the negative log-likelihood of log_softmax."""
    axis = 1 if x.ndim > 1 else 0
    logs = special.log_softmax(x, axis)
    if y.dtype.kind in "iu":
        return nll(logs, y, weight, ignored, reduction, smoothing)
    count = x.shape[axis]
    losses = -(logs * (y * (1 - smoothing) + smoothing / count)).sum(axis)
    return reduced(losses, reduction)


@reference("one_hot")
def one_hot(x: Array, count: int = -1) -> Array:
    """Return rows of the identity matrix."""
    return np.eye(x.max() + 1 if count < 0 else count, dtype=np.int64)[x]


# -- numbered reductions ----------------------------------------------------------------------------------------------
def numbered(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a loss whose reduction is a number."""

    def compute(*args: Any, reduction: int = 1, **kwargs: Any) -> Any:
        return loss(*args, reduction=("none", "mean", "sum")[reduction], **kwargs)

    return compute


for _loss in (
    kl_div, binary_cross_entropy_with_logits, margin_ranking_loss, hinge_embedding_loss, cosine_embedding_loss,
    triplet_margin_loss,
):  # fmt: skip
    reference(f"numbered_{_loss.__name__}")(numbered(_loss))


@reference("numbered_poisson_nll_loss")
def numbered_poisson_nll_loss(x: Array, y: Array, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """Compute the definition; all arguments are required."""
    return numbered(poisson_nll_loss)(x, y, log_input, full, eps=eps, reduction=reduction)
