"""NAdam: Adam with Nesterov's momentum (Dozat, ICLR workshop 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.optim.adam import check_averages, update_averages
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_options
from candelabra.optim.per_parameter import PerParameter, descend
from candelabra.optim.scalars import kept_value, scalar

__all__ = ["NAdam", "nadam"]


class NAdam(PerParameter):
    """Adam whose step looks ahead along the mean of the gradient.

    The momentum of step t is ``betas[0] * (1 - 0.96 ** (t * momentum_decay) / 2)``. ``betas``: the decay rates of the
    averages; ``eps``: added to the root; ``weight_decay``: added to the gradient, times the parameter, or with
    ``decoupled_weight_decay`` subtracted from the parameter, times the rate; ``maximize``: ascend. ``differentiable``:
    record the step. ``foreach`` and ``capturable`` are accepted for PyTorch's programs and change nothing. Raises
    ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_averages(lr, betas, eps, weight_decay)
        check_options(momentum=(momentum_decay >= 0, "momentum_decay value", momentum_decay))
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    kept_numbers = ("step", "mu_product")

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"mu_product": scalar(1.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def advanced(self, known: Mapping[str, float], group: dict[str, Any]) -> Mapping[str, float]:
        """Return the numbers of a state after a step."""
        return {"step": known["step"], "mu_product": known["mu_product"] * _momentum(known["step"], group)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        (beta1, beta2), step = group["betas"], known["step"]
        mu, mu_next = _momentum(step, group), _momentum(step + 1, group)
        product = kept_value(known["mu_product"] * mu)
        of_gradient, of_mean = (1 - mu) / (1 - product), mu_next / (1 - product * mu_next)
        return 1 - beta1, beta2, 1 - beta2, (1 - beta2**step) ** 0.5, group["eps"], of_gradient, of_mean, group["lr"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        *weights, bias, eps, of_gradient, of_mean, lr = numbers
        mean, root = update_averages(g, state, *weights)
        root = root / bias + eps
        descend(p, g / root * of_gradient + mean / root * of_mean, lr)


def _momentum(step: float, group: dict[str, Any]) -> Any:
    """Return the momentum of a step."""
    return group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))


nadam = functional_form(
    NAdam,
    {
        "grads": "grad",
        "exp_avgs": "exp_avg",
        "exp_avg_sqs": "exp_avg_sq",
        "mu_products": "mu_product",
        "state_steps": "step",
    },
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)


def __dir__() -> list[str]:
    return sorted(__all__)
