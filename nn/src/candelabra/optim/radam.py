"""RAdam: Adam with a rectified variance (Liu et al., ICLR 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.optim.adam import check_averages, update_averages
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT
from candelabra.optim.per_parameter import PerParameter, descend

__all__ = ["RAdam", "radam"]


class RAdam(PerParameter):
    """Adam that descends along the mean alone until the variance of its mean square is finite, and corrects it then.

    ``betas``: the decay rates of the averages; ``eps``: added to the root; ``weight_decay``: added to the gradient,
    times the parameter, or with ``decoupled_weight_decay`` subtracted from the parameter, times the rate;
    ``maximize``: ascend. ``differentiable``: record the step. ``foreach`` and ``capturable`` are accepted for PyTorch's
    programs and change nothing. Raises ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_averages(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        (beta1, beta2), step = group["betas"], known["step"]
        # The length of the average, and its limit: equation 4 of the paper. The variance is finite above 4, and the
        # authors' program takes it into account above 5.
        bias = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / bias
        rectified, factor = length > 5, 1.0
        if rectified:
            shares = (length - 4) * (length - 2) * longest, (longest - 4) * (longest - 2) * length
            factor = (shares[0] / shares[1]) ** 0.5 * bias**0.5
        return 1 - beta1, beta2, 1 - beta2, 1 - beta1**step, rectified, factor, group["eps"], group["lr"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        *weights, bias, rectified, factor, eps, lr = numbers
        mean, root = update_averages(g, state, *weights)
        direction = mean / bias
        if rectified:
            direction = direction * factor / (root + eps)
        descend(p, direction, lr)


radam = functional_form(
    RAdam,
    {"grads": "grad", "exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"},
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    "beta1 beta2 lr weight_decay eps",
)


def __dir__() -> list[str]:
    return sorted(__all__)
