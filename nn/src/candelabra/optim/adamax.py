"""Adamax (Kingma & Ba, ICLR 2015, section 7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.optim.adam import check_averages
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT
from candelabra.optim.per_parameter import PerParameter, descend

__all__ = ["Adamax", "adamax"]


class Adamax(PerParameter):
    """Adam with the decaying maximum of the gradient's magnitude in place of the root of its mean square.

    ``betas``: the decay rates of the mean and of the maximum; ``eps``: added to the magnitude; ``weight_decay``: added
    to the gradient, times the parameter; ``maximize``: ascend. ``differentiable``: record the step. ``foreach`` and
    ``capturable`` are accepted for PyTorch's programs and change nothing. Raises ``ValueError`` for options out of
    range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_averages(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return 1 - beta1, beta2, group["eps"], group["lr"] / (1 - beta1 ** known["step"])

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        share, keep, eps, rate = numbers
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(g, share)
        largest.copy_((largest * keep).maximum(g.abs() + eps))
        descend(p, mean / largest, rate)


adamax = functional_form(
    Adamax,
    {"grads": "grad", "exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"},
    "foreach maximize differentiable capturable has_complex",
    "eps beta1 beta2 lr weight_decay",
)


def __dir__() -> list[str]:
    return sorted(__all__)
