"""Averaged stochastic gradient descent (Polyak & Juditsky, SIAM J. Control Optim. 30, 1992)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_options, check_rate
from candelabra.optim.per_parameter import PerParameter, descend
from candelabra.optim.scalars import scalar

__all__ = ["ASGD", "asgd"]


class ASGD(PerParameter):
    """Gradient descent with a falling rate, and the average of the parameter as "ax" of its state.

    The rate of step t is ``eta = lr / (1 + lambd * lr * t) ** alpha``, and the parameter decays by ``lambd * eta``.
    ``t0``: the step after which averaging starts; ``weight_decay``: added to the gradient, times the parameter;
    ``maximize``: ascend. ``differentiable``: record the step. ``foreach`` and ``capturable`` are accepted for PyTorch's
    programs and change nothing. Raises ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_options(decay=(weight_decay >= 0, "weight_decay value", weight_decay))
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    kept_numbers = ("step", "eta", "mu")

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"eta": scalar(float(group["lr"])), "mu": scalar(1.0), "ax": p.detach().clone().zero_()}

    def advanced(self, known: Mapping[str, float], group: dict[str, Any]) -> Mapping[str, float]:
        """Return the numbers of a state after a step."""
        lr, step = float(group["lr"]), known["step"]
        eta = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        return {"step": step, "eta": eta, "mu": 1 / max(1.0, step - group["t0"])}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        eta, mu = known["eta"], known["mu"]
        return 1 - group["lambd"] * eta, eta, mu, mu == 1

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        keep, eta, mu, is_whole = numbers
        average = state["ax"]
        p.mul_(keep)
        descend(p, g, eta)
        if is_whole:
            average.copy_(p)
        else:
            average.lerp_(p, mu)


asgd = functional_form(
    ASGD,
    {"grads": "grad", "axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"},
    "foreach maximize differentiable capturable has_complex",
    "lambd lr t0 alpha weight_decay",
)


def __dir__() -> list[str]:
    return sorted(__all__)
