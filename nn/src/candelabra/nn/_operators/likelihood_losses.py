"""Losses that are negative log-likelihoods of distributions."""

from __future__ import annotations

import math

from candelabra.library import NO_GRAD, highest, mode, operator, record, shape_of
from candelabra.nn._operators.losses import (
    Ints,
    broadcast_to_target,
    check_reduction,
    legacy_reduction,
    loss_rule,
    reduced,
)
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor

where, raise_if_nonzero = record("where"), record("raise_if_nonzero")


def _gaussian_shape(input: Tensor, target: Tensor, var: Tensor | Number, *_: Any) -> Ints:
    shape, sizes = shape_of(input), shape_of(var)
    if hasattr(var, "shape") and sizes not in (shape, shape[:-1]):
        others = [v for s, v in zip(shape, sizes, strict=False) if s != v]
        if len(sizes) != len(shape) or others != [1]:
            raise ValueError("var is of incorrect size")
    return broadcast_to_target(input, target)


@operator(loss_rule(_gaussian_shape), promote=highest, data_dependent=True, out=False, namespace="nn.functional")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | Number, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """``(log(var) + (input - target)² / var) / 2`` for means ``input`` and variances ``var``, of at least ``eps``.

    ``var`` has the input's shape, that shape without the last dim, or with one dim of size 1; ``full`` adds
    ``log(2π) / 2``. Nix and Weigend, Estimating the mean and variance of the target probability distribution, 1994.
    """
    variance: Tensor = var if hasattr(var, "shape") else input.new_full(input.shape, var)  # type: ignore[assignment]
    raise_if_nonzero(variance < 0, "var has negative entry/entries", ValueError)
    _gaussian_shape(input, target, variance)
    if variance.shape != input.shape and variance.shape == input.shape[:-1]:
        variance = variance.unsqueeze(-1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    variance = variance.clone()
    with mode(include=NO_GRAD):
        # Autograd does not see the limit, so a variance below it still gets a gradient and can grow.
        variance.clamp_min_(eps)
    difference = input - target
    loss = (variance.log() + difference * difference / variance) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@operator(loss_rule(broadcast_to_target), promote=highest, out=False, namespace="nn.functional", autocast="float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target * input``; with ``log_input=False``, ``input - target * log(input + eps)``.

    ``full`` adds Stirling's approximation of ``log(target!)`` for targets above 1.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        large = where(target > 1, target, 1)
        stirling = large * large.log() - large + 0.5 * (2 * math.pi * large).log()
        loss = loss + where(target > 1, stirling, 0)
    return reduced(loss, reduction)
