"""Losses of numbers and of probabilities.

All losses are composites without a derivative: their operators are recorded, so derivatives of every order exist. Those
of distances are one operator and its reduction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf

from candelabra.backend import broadcast_shapes
from candelabra.library import Autocast, Operator, highest, operator, record, shape_of
from candelabra.nn._operators.activations import log_sigmoid
from candelabra.nn._operators.huber import huber
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

where, xlogy, raise_if_nonzero = record("where"), record("xlogy"), record("raise_if_nonzero")

Ints = tuple[int, ...]
REDUCTIONS = ("none", "mean", "sum")


# -- reduction --------------------------------------------------------------------------------------------------------
def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction that PyTorch's two older arguments stand for, or ``reduction`` if neither is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str, stacklevel: int = 4) -> str:
    """As :func:`reduction_of`, with PyTorch's warning if one of the older arguments is given."""
    found = reduction_of(size_average, reduce, reduction)
    if size_average is not None or reduce is not None:
        text = f"size_average and reduce args will be deprecated, please use reduction='{found}' instead."
        warnings.warn(text, stacklevel=stacklevel)
    return found


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return the losses themselves, their mean, or their sum."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    check_reduction(reduction)
    return loss


def check_reduction(reduction: str) -> None:
    """Raise ``ValueError`` for a reduction that is not in :data:`REDUCTIONS`."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")


def loss_rule(losses: Callable[..., Ints]) -> Callable[..., Any]:
    """Return the rule of a loss. ``losses(*arguments)`` is the shape of the losses before their reduction."""

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Ints:
        named = dict(zip([p.name for p in op.schema.parameters], args, strict=True))
        shape = losses(*args)
        reduction = reduction_of(named.get("size_average"), named.get("reduce"), named["reduction"])
        return shape if reduction == "none" else ()

    rule.__doc__ = 'the losses\' if ``reduction="none"``, else ``()``'
    return rule


def broadcast_to_target(input: Tensor, target: Tensor, *_: Any) -> Ints:
    """Return the common shape of input and target."""
    return broadcast_shapes(shape_of(input), shape_of(target))


def _check_pair(input: Tensor, target: Tensor) -> None:
    """Check that input and target broadcast. Warn as PyTorch does if their shapes differ."""
    if input.shape == target.shape:
        return
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=4,
    )
    broadcast_to_target(input, target)


def _check_width(operator: str, name: str, value: object) -> None:
    """Raise ``TypeError`` for the width of a quadratic part that is not a real number."""
    if not isinstance(value, int | float):
        raise TypeError(f"{operator}(): argument '{name}' must be float, not {type(value).__name__}")


# -- distances --------------------------------------------------------------------------------------------------------
def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(loss, reduction)
    if tuple(weight.shape) != tuple(loss.shape):
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, accepts="real floating", out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference; by default its mean."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_pair(input, target)
    return _weighted(huber(input, target, 1.0, inf, 0.0), weight, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference; by default its mean."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_pair(input, target)
    return _weighted((input - target).abs(), weight, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, accepts="real floating", out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``0.5 * d² / beta`` if the distance d is below ``beta``, else ``d - beta / 2``."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_width("smooth_l1_loss", "beta", beta)
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    _check_pair(input, target)
    loss = huber(input, target, 0.5 / beta, float(beta), 1.0) if beta else (input - target).abs()
    return reduced(loss, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, accepts="real floating", out=False,
          namespace="nn.functional", autocast="float32")  # fmt: skip
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``0.5 * d²`` if the distance d is at most ``delta``, else ``delta * (d - delta / 2)``."""
    _check_width("huber_loss", "delta", delta)
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _check_pair(input, target)
    return _weighted(huber(input, target, 0.5, float(delta), float(delta)), weight, reduction)


# -- probabilities ----------------------------------------------------------------------------------------------------
@operator(loss_rule(broadcast_to_target), promote=highest, data_dependent=True, out=False,
          namespace="nn.functional", autocast=Autocast("refused", "float32"))  # fmt: skip
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(t * log(p) + (1 - t) * log(1 - p))`` for probabilities p; logarithms are at least -100, as in PyTorch."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.title} but expected {input.dtype.title}")
    outside = ((input >= 0) & (input <= 1)).logical_not()
    raise_if_nonzero(outside, "all elements of input should be between 0 and 1", RuntimeError)
    loss = -(target * input.log().clamp_min(-100) + (1 - target) * (-input).log1p().clamp_min(-100))
    return reduced(loss if weight is None else loss * weight, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, without overflow; ``pos_weight`` weights positive targets."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    certainty = log_sigmoid(input)
    if pos_weight is not None:
        certainty = certainty * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - certainty
    return reduced(loss if weight is None else loss * weight, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``: the divergence of ``exp(input)`` from ``target``.

    ``"batchmean"`` divides the sum by the batch's size; with ``log_target``, the target is a logarithm too. A negative
    target without ``log_target`` gives NaN.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduced(loss, reduction)
