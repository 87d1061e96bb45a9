"""Adam (Kingma & Ba, ICLR 2015) and AdamW (Loshchilov & Hutter, ICLR 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from candelabra.fronts.creation import zeros_like
from candelabra.optim.optimizer import Optimizer, check_options

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Steps of size ``lr`` along the mean of the gradient over the root of its mean square, both decaying averages.

    ``betas``: how much of the averages each step keeps; ``eps``: added to the root; ``weight_decay``: added to the
    gradient, times the parameter; ``amsgrad``: divide by the largest mean square so far (Reddi et al., ICLR 2018);
    ``maximize``: uphill. Raises ``ValueError`` for options out of range.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool | None = None,
    ) -> None:
        check_options(
            lr=(lr >= 0, "learning rate", lr),
            eps=(eps >= 0, "epsilon value", eps),
            beta1=(0 <= betas[0] < 1, "beta parameter at index 0", betas[0]),
            beta2=(0 <= betas[1] < 1, "beta parameter at index 1", betas[1]),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
        )
        decoupled = self.decoupled if decoupled_weight_decay is None else decoupled_weight_decay
        defaults = {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "decoupled_weight_decay": decoupled,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """One step of one group."""
        for p in parameters:
            if p.grad.is_complex():
                raise RuntimeError(
                    f"{type(self).__name__} does not take complex parameters: optimise their real and imaginary parts "
                    "with view_as_real"
                )
            self._step(group, p)

    def _state_of(self, p: Any, amsgrad: bool) -> dict[str, Any]:
        kept = self.state.setdefault(p, {})
        if not kept:
            kept["step"] = 0.0  # a number: PyTorch, which keeps a 0-d tensor, reads it as well
            kept["exp_avg"] = zeros_like(p)
            kept["exp_avg_sq"] = zeros_like(p)
        if amsgrad and "max_exp_avg_sq" not in kept:
            kept["max_exp_avg_sq"] = kept["exp_avg_sq"].clone()
        return kept

    def _step(self, group: dict[str, Any], p: Any) -> None:
        g = -p.grad if group["maximize"] else p.grad
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        kept = self._state_of(p, group["amsgrad"])
        step = kept["step"] = float(kept["step"]) + 1
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            g = g.add(p, alpha=decay)
        mean, square = kept["exp_avg"], kept["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2)
        square.addcmul_(g, g, value=1 - beta2)
        if group["amsgrad"]:
            square = kept["max_exp_avg_sq"].copy_(kept["max_exp_avg_sq"].maximum(square))
        # Both averages began at 0; what they lack by now is divided out (section 3 of the paper).
        root = square.sqrt()
        root.div_(math.sqrt(1 - beta2**step))
        root.add_(group["eps"])
        p.addcdiv_(mean, root, value=-lr / (1 - beta1**step))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, ``p *= 1 - lr * weight_decay``, not the gradient."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
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
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
