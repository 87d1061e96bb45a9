"""AdamW: Adam with decoupled weight decay (Loshchilov & Hutter, ICLR 2019)."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.optim.adam import Adam
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, ``p *= 1 - lr * weight_decay``, not the gradient."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip


adamw = functional_form(
    AdamW,
    {
        "grads": "grad",
        "exp_avgs": "exp_avg",
        "exp_avg_sqs": "exp_avg_sq",
        "max_exp_avg_sqs": "max_exp_avg_sq",
        "state_steps": "step",
    },
    "foreach capturable differentiable fused grad_scale found_inf has_complex",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
    decoupled_weight_decay=True,
)


def __dir__() -> list[str]:
    return sorted(__all__)
