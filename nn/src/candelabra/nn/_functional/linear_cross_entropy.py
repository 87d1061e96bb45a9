"""A linear map and the cross entropy of its result, in one function."""

from __future__ import annotations

import math
import warnings

from candelabra.dtypes import int64
from candelabra.library import public, record
from candelabra.nn._operators.classification import cross_entropy
from candelabra.nn._operators.linear_cross_entropy import linear_class_losses
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

linear, cast = record("linear"), record("cast")
REDUCTIONS = ("mean", "sum", "none")


@public(namespace="nn.functional")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``, with its arguments.

    input (N, E) or (E), linear_weight (C, E) or (C, *, E), linear_bias (C) or (C, *), target (N, *) classes, or
    probabilities in the shape (N, C, *) of the logits. ``ignore_index`` is -100 by default.

    With ``options``, a :class:`LinearCrossEntropyOptions`, forward and backward pass compute the logits of some rows at
    a time, so that they need little memory. Warns where that is not possible: for probabilities, label smoothing and
    more dims. Raises ``RuntimeError`` for shapes that do not match, and for ``ignore_index`` with probabilities.
    """
    shape = _logits_shape(input, linear_weight, linear_bias)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if reduction in REDUCTIONS and not label_smoothing and target.dtype is int64 and linear_weight.ndim == 2:
            return _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            f"label_smoothing == 0, target.dtype == int64, out_features == (). Got reduction={reduction!r}, "
            f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={tuple(linear_weight.shape[1:-1])}.",
            stacklevel=3,
        )
    if linear_weight.ndim > 2:
        count = math.prod(linear_weight.shape[:-1])
        linear_weight = linear_weight.reshape(count, linear_weight.shape[-1])
        linear_bias = None if linear_bias is None else linear_bias.reshape(count)
    logits = linear.function(input, linear_weight, linear_bias).reshape(shape)
    out: Tensor = cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )
    return out


def _logits_shape(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    """Return the shape (N, C, *) or (C,) of the logits. Raises ``RuntimeError`` for shapes that do not match."""
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.ndim}")
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if bias is not None and tuple(bias.shape) != tuple(weight.shape[:-1]):
        raise RuntimeError(f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_pieces(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignored: int,
    options: Any,
) -> Tensor:
    """Return the loss of classes, whose logits are computed for some rows at a time."""
    batched = input.ndim == 2
    if not batched:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    rows = _rows_per_piece(options, input.shape[0], input.shape[1], linear_weight.shape[0])
    kept = target != ignored
    safe = target.masked_fill(kept.logical_not(), 0)
    # As in cross_entropy, the loss of an ignored row is filled, not multiplied by 0.
    try:
        losses: Tensor = linear_class_losses(input, linear_weight, bias, safe, rows)
    except RuntimeError:
        _check_classes(safe, linear_weight.shape[0])
        raise
    weights = cast(kept, dtype=input.dtype)
    if weight is not None:
        weights = weights * weight.index_select(0, safe)
        losses = losses * weights
    losses = losses.masked_fill(kept.logical_not(), 0)
    if reduction == "none":
        return losses if batched else losses.squeeze(0)
    return losses.sum() / weights.sum() if reduction == "mean" else losses.sum()


def _check_classes(target: Tensor, count: int) -> None:
    """Raise ``IndexError`` for the first target that is not a class, as cross_entropy does."""
    for value in target.tolist():
        if not 0 <= value < count:
            raise IndexError(f"Target {value} is out of bounds.")


def divisor_of(method: str) -> int | None:
    """Return N of the method "aspect_ratio:N", 1 for "aspect_ratio", and None for another method."""
    name, colon, number = method.partition(":")
    number = number if colon else "1"
    return int(number) if name == "aspect_ratio" and number.isdigit() and int(number) > 0 else None


def _rows_per_piece(options: Any, batch: int, in_features: int, num_classes: int) -> int:
    """Return the number of rows whose logits are in memory. Raises ``ValueError`` if size and method disagree."""
    size, method = options.batch_chunk_size, options.chunking_method
    if method is None or (method == "auto" and size is not None):
        return max(1, batch if size is None else min(size, batch))
    # For "aspect_ratio", the logits of a piece are about as large as the input; "auto" takes half of these rows.
    rows = -(-batch // max(1, -(-num_classes // max(1, in_features))))
    found = min((1 << max(0, rows - 1).bit_length()) // (divisor_of(method) or 2), batch)
    if size is not None and size != found:
        raise ValueError(
            f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} vs "
            f"{found}); pass only one."
        )
    return max(1, found)
