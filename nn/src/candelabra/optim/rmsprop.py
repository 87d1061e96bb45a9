"""RMSprop (Hinton, Neural Networks for Machine Learning, lecture 6, 2012)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_options, check_rate
from candelabra.optim.per_parameter import PerParameter, descend

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(PerParameter):
    """Divides the gradient by the root of a decaying average of its squares.

    ``alpha``: the decay rate of the average; ``eps``: added to the root; ``weight_decay``: added to the gradient, times
    the parameter; ``momentum``: the decay rate of a sum of the steps; ``centered``: divide by the standard deviation
    (Graves, 2013); ``maximize``: ascend. ``differentiable``: record the step. ``foreach`` and ``capturable`` are
    accepted for PyTorch's programs and change nothing. Raises ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_options(
            eps=(eps >= 0, "epsilon value", eps),
            momentum=(momentum >= 0, "momentum value", momentum),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
            alpha=(alpha >= 0, "alpha value", alpha),
        )
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] > 0 else []
        names += ["grad_avg"] if group["centered"] else []
        return {name: zeros_like(p) for name in names}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        alpha, momentum = group["alpha"], group["momentum"]
        return alpha, 1 - alpha, group["eps"], momentum, group["lr"], bool(group["centered"]), momentum > 0

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        alpha, share, eps, momentum, lr, centered, heavy = numbers
        square = state["square_avg"]
        square.mul_(alpha).addcmul_(g, g, value=share)
        if centered:
            mean = state["grad_avg"]
            mean.lerp_(g, share)
            square = square.addcmul(mean, mean, value=-1)
        direction = g / (square.sqrt() + eps)
        if heavy:
            direction = state["momentum_buffer"].mul_(momentum).add_(direction)
        descend(p, direction, lr)


rmsprop = functional_form(
    RMSprop,
    {
        "grads": "grad",
        "square_avgs": "square_avg",
        "grad_avgs": "grad_avg",
        "momentum_buffer_list": "momentum_buffer",
        "state_steps": "step",
    },
    "foreach maximize differentiable capturable has_complex",
    "lr alpha eps weight_decay momentum centered",
)


def __dir__() -> list[str]:
    return sorted(__all__)
