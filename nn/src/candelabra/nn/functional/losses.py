"""Losses, as in ``torch.nn.functional``: composed of operators, so every order of derivative comes of itself."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from candelabra.dtypes import PYTHON_NAMES, int64
from candelabra.fronts.shaping import unsqueeze
from candelabra.layout import broadcast_shapes
from candelabra.nn.operators.activations import log_sigmoid
from candelabra.ops.arithmetic import where
from candelabra.ops.creation import cast
from candelabra.ops.softmax import log_softmax

if TYPE_CHECKING:
    from candelabra.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction meant by PyTorch's two older arguments, where they are given."""
    if size_average is None and reduce is None:
        return reduction
    warnings.warn("size_average and reduce args will be deprecated, please use reduction instead.", stacklevel=3)
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The losses themselves, their mean, or their sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    _check_reduction(reduction)
    return loss


def _check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _paired(input: Tensor, target: Tensor, name: str) -> None:
    """Both broadcast; PyTorch's warning where they have to."""
    if tuple(input._payload.shape) == tuple(target._payload.shape):
        return
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    broadcast_shapes(tuple(input.shape), tuple(target.shape))


# -- classes ----------------------------------------------------------------------------------------------------------
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits (N, C, *) or (C) and classes (N, *), or probabilities in the logits' shape.

    ``weight`` (C) counts classes differently, and the mean is then over the weights; targets equal to ``ignore_index``
    count for nothing; ``label_smoothing`` mixes the target with the uniform distribution (Szegedy et al., 2016).
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.ndim:
        raise RuntimeError("cross_entropy(): input must have a dimension of classes, but it is 0-dimensional")
    classes = 1 if input.ndim > 1 else 0
    same_shape = tuple(input.shape) == tuple(target.shape)
    if same_shape and target.is_floating_point():
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _against_probabilities(input, target, weight, classes, reduction, label_smoothing)
    logs: Tensor = log_softmax(input, classes)
    if label_smoothing == 0.0:
        return nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return _smoothed(logs, target, weight, classes, ignore_index, reduction, label_smoothing)


def _against_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, classes: int, reduction: str, smoothing: float
) -> Tensor:
    _check_reduction(reduction)
    count = input.shape[classes]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / count
    logs = log_softmax(input, classes)
    scored = logs * target if weight is None else logs * target * _per_class(weight, input, classes)
    losses = -scored.sum(classes)
    return losses.sum() / (input.numel() // max(count, 1)) if reduction == "mean" else reduced(losses, reduction)


def _per_class(weight: Tensor, input: Tensor, classes: int) -> Tensor:
    """Class weights in a shape that broadcasts to the input's."""
    count = input.shape[classes]
    if tuple(weight.shape) != (count,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {count} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    return weight.reshape((1,) * classes + (count,) + (1,) * (input.ndim - classes - 1))


def _smoothed(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    classes: int,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Tensor:
    losses, weights, kept = _picked(logs, target, weight, ignore_index)
    everywhere = logs if weight is None else logs * _per_class(weight, logs, classes)
    uniform = (-everywhere.sum(classes)).masked_fill(kept.logical_not(), 0)
    mixed = losses * (1 - smoothing) + uniform * (smoothing / logs.shape[classes])
    return mixed.sum() / weights.sum() if reduction == "mean" else reduced(mixed, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability, in ``input`` (N, C, *) or (C), of each target (N, *); see :func:`cross_entropy`."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input.ndim:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    losses, weights, _ = _picked(input, target, weight, ignore_index)
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def _check_classes(input: Tensor, target: Tensor) -> None:
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {PYTHON_NAMES[target.dtype.name]}")
    shape, classes = list(input.shape), list(target.shape)
    if input.ndim == 1:
        if classes not in ([], [1]):
            raise RuntimeError(f"0D or 1D target tensor of size 1 expected for an input of size {shape}, got {classes}")
        return
    if classes and shape[0] != classes[0]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({classes[0]}).")
    if input.ndim == 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim == 4 and target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    wanted = [shape[0], *shape[2:]]
    if classes != wanted:
        if input.ndim == 4:
            raise RuntimeError(f"size mismatch (got input: {shape}, target: {classes})")
        raise RuntimeError(f"Expected target size {wanted}, got {classes}")


def _picked(logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor, Tensor]:
    """Per target: its loss, its weight (0 where ignored), and whether it counts."""
    _check_classes(logs, target)
    if weight is not None:
        _per_class(weight, logs, 1 if logs.ndim > 1 else 0)
    if target.dtype is not int64:
        target = cast(target, dtype=int64)
    single = logs.ndim == 1
    if single:
        logs, shape = unsqueeze(logs, 0), tuple(target.shape)
        target = target.reshape((1,))
    kept = target != ignore_index
    safe = where(kept, target, 0)
    try:
        scores = logs.gather(1, unsqueeze(safe, 1)).squeeze(1)
    except (IndexError, RuntimeError):
        bad = [int(t) for t in safe.reshape((-1,)).tolist() if not 0 <= t < logs.shape[1]]
        if not bad:
            raise
        raise IndexError(f"Target {bad[0]} is out of bounds.") from None
    if weight is None:
        weights = cast(kept, dtype=logs.dtype)
    else:
        weights = weight.index_select(0, safe.reshape((-1,))).reshape(safe.shape) * cast(kept, dtype=weight.dtype)
    # An ignored class may be at -inf, and 0 * inf is NaN: so it is filled, not multiplied.
    losses = -(scores if weight is None else scores * weights).masked_fill(kept.logical_not(), 0)
    if single and not shape:
        losses, weights, kept = losses.squeeze(0), weights.squeeze(0), kept.squeeze(0)
    return losses, weights, kept


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A last dim of ``num_classes`` (by default one more than the largest class) that is 1 at the class, else 0."""
    from candelabra.ops.creation import arange

    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not tensor.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        if int(tensor.amin().item()) < 0:
            raise RuntimeError("Class values must be non-negative.")
        largest = int(tensor.amax().item())
        if num_classes == -1:
            num_classes = largest + 1
        elif num_classes <= largest:
            raise RuntimeError("Class values must be smaller than num_classes.")
    places = arange(0, 1, num_classes, dtype=int64, device=tensor.device)
    encoded: Tensor = cast(unsqueeze(tensor, -1) == places, dtype=int64)
    return encoded


# -- distances --------------------------------------------------------------------------------------------------------
def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(loss, reduction)
    if tuple(weight.shape) != tuple(loss.shape):
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference; its mean unless ``reduction`` says otherwise."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _paired(input, target, "mse_loss")
    difference = input - target
    return _weighted(difference * difference, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference; its mean unless ``reduction`` says otherwise."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _paired(input, target, "l1_loss")
    return _weighted((input - target).abs(), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``0.5 * d² / beta`` where the distance d is below ``beta``, else ``d - beta / 2``."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    _paired(input, target, "smooth_l1_loss")
    distance = (input - target).abs()
    if beta:
        distance = where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)
    return reduced(distance, reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``0.5 * d²`` where the distance d is at most ``delta``, else ``delta * (d - delta / 2)``."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _paired(input, target, "huber_loss")
    distance = (input - target).abs()
    loss = where(distance <= delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta)
    return _weighted(loss, weight, reduction)


# -- probabilities ----------------------------------------------------------------------------------------------------
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(t * log(p) + (1 - t) * log(1 - p))`` for probabilities p; logarithms are cut off at -100, as in PyTorch."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"Found dtype {PYTHON_NAMES[target.dtype.name]} but expected {PYTHON_NAMES[input.dtype.name]}"
        )
    if input.numel() and not bool(((input >= 0) & (input <= 1)).all().item()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    loss = -(target * input.log().clamp_min(-100) + (1 - target) * (-input).log1p().clamp_min(-100))
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, without overflow; ``pos_weight`` weighs the positive term."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    certainty = log_sigmoid(input)
    if pos_weight is not None:
        certainty = certainty * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - certainty
    return reduced(loss if weight is None else loss * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``: the divergence of ``exp(input)`` from ``target``.

    ``"batchmean"`` divides the sum by the batch's size; with ``log_target`` the target too is given as logarithms.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        known = target * where(target > 0, target, 1.0).log()
        loss = known - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduced(loss, reduction)
