"""Clipping of gradients (Pascanu et al., 2013)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import candelabra as cd
from candelabra import Tensor, no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Iterable[Any] | Tensor) -> list[Any]:
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in found if parameter.grad is not None]


def _on(device: Any, x: Any) -> Any:
    """Return a tensor on a device. The comparison costs a fraction of ``to`` on a tensor that is there."""
    return x if x.device == device else x.to(device)


def get_total_norm(
    tensors: Iterable[Any] | Tensor,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Return the norm of all tensors as one vector, on the device of the first.

    ``foreach`` is accepted and has no effect. With ``error_if_nonfinite``, raises ``RuntimeError`` if the norm is not
    finite.
    """
    found: list[Any] = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not found:
        return cd.tensor(0.0)
    order = float(norm_type)
    first = found[0].device
    divided = [x for x in found if hasattr(x, "device_mesh")]
    with no_grad():
        whole = [x for x in found if not hasattr(x, "device_mesh")] if divided else found
        norms = [_on(first, cd.linalg.vector_norm(x, order)) for x in whole]
        if divided:  # parts of tensors, whose norms are those of the whole
            from candelabra.distributed.tensor._dtensor import total_norm

            norms.append(total_norm(divided, order).to(first))
        total: Any = cd.linalg.vector_norm(cd.stack(norms), order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Iterable[Any] | Tensor, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by ``max_norm / total_norm``, if that is less than 1. ``foreach`` has no effect."""
    gradients = _gradients(parameters)
    if not gradients:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(_on(g.device, factor))


def clip_grad_norm_(
    parameters: Iterable[Any] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale all gradients in place so that their total norm is at most ``max_norm``. Returns the norm before.

    ``foreach`` is accepted and has no effect. Raises ``RuntimeError`` with ``error_if_nonfinite``, if the norm is not
    finite.
    """
    found: Any = parameters if isinstance(parameters, Tensor) else list(parameters)
    if isinstance(parameters, Iterator) and not found:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_gradients(found), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(found, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Iterable[Any] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`candelabra.nn.utils.clip_grad_norm` is now deprecated in favor of `candelabra.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Iterable[Any] | Tensor, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of all gradients to [-clip_value, clip_value], in place. ``foreach`` has no effect."""
    limit = float(clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(min=-limit, max=limit)


def __dir__() -> list[str]:
    return sorted(__all__)
