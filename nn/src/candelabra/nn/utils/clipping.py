"""Clipping of gradients (Pascanu et al., 2013)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from candelabra import Tensor, no_grad, stack, zeros

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]


def _gradients(parameters: Iterable[Any] | Tensor) -> list[Any]:
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in found if parameter.grad is not None]


def _norm(x: Any, order: float) -> Any:
    if order == math.inf:
        return x.abs().amax() if x.numel() else x.sum()
    return (x * x).sum().sqrt() if order == 2 else (x.abs() ** order).sum() ** (1.0 / order)


def get_total_norm(tensors: Iterable[Any] | Tensor, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Return the norm of all tensors as one vector.

    With ``error_if_nonfinite``, raises ``RuntimeError`` if it is not finite.
    """
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not found:
        return zeros(())
    order = float(norm_type)
    first = found[0].device
    norms: Any = stack([_norm(x, order).to(first) for x in found])
    total = _norm(norms, order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Iterable[Any] | Tensor, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """Scale all gradients in place so that their total norm is at most ``max_norm``. Returns the norm before."""
    gradients = _gradients(parameters)
    with no_grad():
        total = get_total_norm(gradients, norm_type, error_if_nonfinite)
        if gradients:
            factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
            for g in gradients:
                g.mul_(factor.to(g.device).to(g.dtype))
    return total


def clip_grad_value_(parameters: Iterable[Any] | Tensor, clip_value: float) -> None:
    """Limit every element of all gradients to [-clip_value, clip_value], in place."""
    limit = float(clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(min=-limit, max=limit)


def __dir__() -> list[str]:
    return sorted(__all__)
