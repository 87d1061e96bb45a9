"""Negative log-likelihoods of distributions, as in ``torch.nn.functional``."""

from __future__ import annotations

import math

from candelabra import Tensor
from candelabra.library import NO_GRAD, mode, record
from candelabra.nn._functional.losses import check_reduction, legacy_reduction, reduced

where = record("where")


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """``(log(var) + (input - target)² / var) / 2`` for means ``input`` and variances ``var``, of at least ``eps``.

    ``var`` has the input's shape, or that without the last dim, or with one dim of size 1; ``full`` adds the constant
    ``log(2π) / 2``. Nix and Weigend, Estimating the mean and variance of the target probability distribution, 1994.
    """
    if not isinstance(var, Tensor):
        var = input.new_full(input.shape, var)
    if var.numel() and bool((var < 0).any().item()):
        raise ValueError("var has negative entry/entries")
    shape, sizes = tuple(input.shape), tuple(var.shape)
    if sizes != shape:
        if sizes == shape[:-1]:
            var = var.unsqueeze(-1)
        elif len(sizes) != len(shape) or [v for s, v in zip(shape, sizes, strict=True) if s != v] != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with mode(include=NO_GRAD):
        # The gradient goes past the limit as if there were none, so that a variance can grow out of it.
        var.clamp_min_(eps)
    difference = input - target
    loss = (var.log() + difference * difference / var) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


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
    """``exp(input) - target * input``; with ``log_input=False`` it is ``input - target * log(input + eps)``.

    ``full`` adds Stirling's approximation of ``log(target!)`` where the target is above 1.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        large = where(target > 1, target, 1)
        stirling = large * large.log() - large + 0.5 * (2 * math.pi * large).log()
        loss = loss + where(target > 1, stirling, 0)
    return reduced(loss, reduction)
