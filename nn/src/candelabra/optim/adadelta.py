"""Adadelta (Zeiler, arXiv:1212.5701, 2012)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_options, check_rate
from candelabra.optim.per_parameter import PerParameter, descend

__all__ = ["Adadelta", "adadelta"]


class Adadelta(PerParameter):
    """Multiplies the gradient by the root mean square of past steps over that of past gradients.

    ``rho``: the decay rate of both averages; ``eps``: added inside the roots; ``weight_decay``: added to the gradient,
    times the parameter; ``maximize``: ascend. ``differentiable``: record the step. ``foreach`` and ``capturable`` are
    accepted for PyTorch's programs and change nothing. Raises ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_options(
            rho=(0 <= rho <= 1, "rho value", rho),
            eps=(eps >= 0, "epsilon value", eps),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
        )
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        return group["rho"], 1 - group["rho"], group["eps"], group["lr"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        rho, share, eps, lr = numbers
        state["square_avg"].mul_(rho).addcmul_(g, g, value=share)
        # A sum, and not the tensor of the state, is what the root and its derivative see: the state changes below.
        delta = (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt() * g
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=share)
        descend(p, delta, lr)


adadelta = functional_form(
    Adadelta,
    {"grads": "grad", "square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"},
    "capturable foreach differentiable has_complex",
    "lr rho eps weight_decay maximize",
)


def __dir__() -> list[str]:
    return sorted(__all__)
