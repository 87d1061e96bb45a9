"""Adam (Kingma & Ba, ICLR 2015) and AdamW (Loshchilov & Hutter, ICLR 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra.fronts.creation import zeros_like
from candelabra.nn.operators.steps import adam_step, amsgrad_step, descend_adaptively
from candelabra.optim.fused import step_by_kernel
from candelabra.optim.optimizer import Optimizer, check_options

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Steps of size ``lr`` along the mean of the gradient over the root of its mean square, both decaying averages.

    ``betas``: how much of the averages each step keeps; ``eps``: added to the root; ``weight_decay``: added to the
    gradient, times the parameter; ``amsgrad``: divide by the largest mean square so far (Reddi et al., ICLR 2018);
    ``maximize``: uphill. A device with a kernel for the whole step uses it, unless ``fused=False``; ``foreach``,
    ``capturable`` and ``differentiable`` are accepted for PyTorch's programs and change nothing. Raises ``ValueError``
    for options out of range.
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
        self._fused = fused is not False

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
        kept = self._state_of(p, group["amsgrad"])
        kept["step"] = step = float(kept["step"]) + 1
        averages = p, p.grad, kept["exp_avg"], kept["exp_avg_sq"]
        options = (
            step, group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
            group["maximize"],
        )  # fmt: skip
        largest = kept["max_exp_avg_sq"] if group["amsgrad"] else None
        if self._fused:
            op, tensors = (adam_step, averages) if largest is None else (amsgrad_step, (*averages, largest))
            if step_by_kernel(op, tensors, *options):
                return
        descend_adaptively(*averages, largest, *options)


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
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, fused=fused)
