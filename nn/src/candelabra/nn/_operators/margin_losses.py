"""Losses with a margin: between scores, between distances, between the scores of classes or labels."""

from __future__ import annotations

from collections.abc import Callable

from candelabra.backend import broadcast_shapes
from candelabra.dtypes import int64
from candelabra.library import by, highest, operator, public, record, shape_of
from candelabra.nn._operators.activations import log_sigmoid
from candelabra.nn._operators.losses import (
    Ints,
    broadcast_to_target,
    check_reduction,
    legacy_reduction,
    loss_rule,
    reduced,
)
from candelabra.nn._operators.norms import vector_norm
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

where, cast, scatter_add = record("where"), record("cast"), record("scatter_add")
new_arange = record("new_arange")


def _ranking_shape(input1: Tensor, input2: Tensor, target: Tensor, *_: Any) -> Ints:
    return broadcast_shapes(shape_of(input1), shape_of(input2), shape_of(target))


def _cosine_shape(input1: Tensor, input2: Tensor, target: Tensor, *_: Any) -> Ints:
    rows = broadcast_shapes(shape_of(input1), shape_of(input2))
    return broadcast_shapes(rows[:-1], shape_of(target))


def _triplet_shape(anchor: Tensor, positive: Tensor, negative: Tensor, *_: Any) -> Ints:
    return broadcast_shapes(shape_of(anchor), shape_of(positive), shape_of(negative))[:-1]


def _label_shape(input: Tensor, target: Tensor, weight: Tensor | None = None, *_: Any) -> Ints:
    return broadcast_shapes(shape_of(input), shape_of(target), shape_of(weight))[:-1]


# -- between pairs ----------------------------------------------------------------------------------------------------
@operator(loss_rule(_ranking_shape), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin - target * (input1 - input2))``: ``input1`` should be larger for target 1, and smaller for -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input, a distance, for target 1; ``max(0, margin - input)`` for target -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    dissimilar = where(target != 1, (margin - input).clamp_min(0), 0)
    return reduced(dissimilar + where(target != -1, input, 0), reduction)


@operator(loss_rule(_cosine_shape), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` for target 1, ``max(0, cos - margin)`` for target -1.

    Inputs (N, D) and target (N), or (D) and (); ``cos`` is the cosine of the angle between the vectors.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    rank = target.ndim + 1
    if input1.ndim != rank or input2.ndim != rank:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {rank}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    squares = [(x * x).sum(-1) + 1e-12 for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    similar = where(target == 1, 1 - cosine, 0)
    return reduced(similar + where(target == -1, (cosine - margin).clamp_min(0), 0), reduction)


@public(namespace="nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """:func:`triplet_margin_loss` with any distance of two batches of vectors, by default the Euclidean distance."""
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = distance_function or (lambda a, b: vector_norm(a - b + 1e-6, 2.0, -1, False))
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


@operator(loss_rule(_triplet_shape), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` of vectors (N, D) or (D), by their p-norms.

    ``swap`` uses the distance of positive and negative if that is shorter (Balntas et al., 2016).
    """
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: vector_norm(a - b + eps, p, -1, False),
        margin=margin,
        swap=swap,
        reduction=legacy_reduction(size_average, reduce, reduction),
    )


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets 1 and -1, without overflow."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    return reduced(-log_sigmoid(input * target), reduction)


# -- between classes --------------------------------------------------------------------------------------------------
@operator(loss_rule(_label_shape), promote=highest, out=False, namespace="nn.functional")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of logits (*, C) and labels 0 or 1, averaged over the classes."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    return reduced((loss if weight is None else loss * weight).sum(-1) / input.shape[-1], reduction)


def _rows(input: Tensor) -> Tensor:
    """Return the scores as (N, C)."""
    if input.ndim > 2 or (input.ndim and not input.shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    rows: Tensor = input if input.ndim == 2 else input.reshape((1, input.numel()))
    return rows


def _check_dtype(target: Tensor) -> None:
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.title}")


def _check_values(input: Tensor, target: Tensor, lowest: int, text: str) -> None:
    """Raise ``RuntimeError`` with the text for a target below ``lowest`` or above the last class."""
    classes = input.shape[-1] if input.ndim else 1
    if target.dtype is int64 and target.numel():
        low, high = int(target.amin().item()), int(target.amax().item())
        if low < lowest or high >= classes:
            raise RuntimeError(text)


def _rows_shape(input: Tensor, *_: Any) -> Ints:
    return shape_of(input)[:-1]


def _check_label_values(input: Tensor, target: Tensor, *_: Any) -> None:
    _check_values(input, target, -1, "argument #2 'target' is out of range")


def _check_class_values(input: Tensor, target: Tensor, *_: Any) -> None:
    _check_values(input, target, 0, "target out of range")


def _target_shape(input: Tensor, target: Tensor, *_: Any) -> Ints:
    return shape_of(target)


def _label_pairs(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the labels (N, T), which pairs with other classes count (N, T, C), and by how much each falls short.

    The labels of a row end before the first -1. Class 0 stands in the places from there on.
    """
    classes = input.shape[1]
    numbers: Any = new_arange(input, 0, 1, classes, dtype=int64)
    end = where(target == -1, numbers, classes).amin(1, True)
    is_label = numbers < end
    # gather() refuses a label that is out of bounds, also one below -1.
    labels = where(is_label, target, 0)
    named = ((labels.unsqueeze(2) == numbers) & is_label.unsqueeze(2)).any(1)
    shortfall = (1 - input.gather(1, labels).unsqueeze(2) + input.unsqueeze(1)).relu()
    return labels, is_label.unsqueeze(2) & named.logical_not().unsqueeze(1), shortfall


def _label_margins_shape(input: Tensor, target: Tensor) -> Ints:
    shape = shape_of(input)
    if len(shape) != 2 or shape_of(target) != shape:
        raise RuntimeError(
            f"label_margins(): expected scores (N, C) and targets of this shape, got {list(shape)} and "
            f"{list(shape_of(target))}"
        )
    return shape[:1]


@operator(by(_label_margins_shape), accepts="real floating", method=False, public=False, out=False)
def label_margins(input: Tensor, target: Index) -> Tensor:
    """The loss of each row of :func:`multilabel_margin_loss`, for scores and targets (N, C)."""
    _label_margins_shape(input, target)
    _, pairs, shortfall = _label_pairs(input, target)
    losses: Tensor = where(pairs, shortfall, 0).sum((1, 2)) / input.shape[1]
    return losses


@operator(by(lambda grad, input, target: shape_of(input)), accepts="real floating", method=False, public=False,
          out=False)  # fmt: skip
def label_margins_backward(grad: Tensor, input: Tensor, target: Index) -> Tensor:
    """The gradient of the scores: ``grad / C`` times the pairs that fall short, less for labels and more for others."""
    labels, pairs, shortfall = _label_pairs(input, target)
    short = cast(pairs & (shortfall > 0), dtype=input.dtype)
    counts = scatter_add(short.sum(1), 1, labels, -short.sum(2))
    out: Tensor = counts * (grad / input.shape[1]).unsqueeze(1)
    return out


label_margins.vjp(input=lambda g, input, target: label_margins_backward.canonical(g, input, target))


@operator(loss_rule(_rows_shape), check=_check_label_values, promote=highest, out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, 1 - (input[t] - input[i])) / C``, summed over the row's labels t and the classes i that are not labels.

    Scores (N, C) or (C); the target, of the same shape, lists labels up to the first -1.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    rows = _rows(input)
    if tuple(target.shape) != tuple(input.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_dtype(target)
    losses = label_margins.canonical(rows, target.reshape(rows.shape))
    return reduced(losses if input.ndim == 2 else losses.squeeze(0), reduction)


@operator(loss_rule(_target_shape), check=_check_class_values, promote=highest, out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, margin - input[t] + input[i]) ** p / C``, summed over the classes i other than the target t.

    Scores (N, C) and targets (N), or (C) and (); ``weight`` (C) weights the classes; p is 1 or 2.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    rows = _rows(input)
    count, classes = rows.shape
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_dtype(target)
    labels = target.reshape((count, 1))
    shortfall = (margin - rows.gather(1, labels) + rows).relu()
    numbers = new_arange(input, 0, 1, classes, dtype=int64)
    others = where(labels == numbers, 0, shortfall if p == 1 else shortfall * shortfall)
    losses = others.sum(1) / classes
    if weight is not None:
        losses = losses * weight.index_select(0, labels.squeeze(1))
    return reduced(losses if target.ndim else losses.squeeze(0), reduction)
