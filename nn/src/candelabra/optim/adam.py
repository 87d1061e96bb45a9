"""Adam (Kingma & Ba, ICLR 2015) and AdamW (Loshchilov & Hutter, ICLR 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from candelabra import zeros_like
from candelabra.dtypes import ALL
from candelabra.nn._operators.steps import adam_step, amsgrad_step, descend_adaptively
from candelabra.optim.fused import Row, steps_by_kernel
from candelabra.optim.optimizer import Optimizer, check_options

__all__ = ["Adam", "AdamW"]

COMPLEX: Final = sum(d.bit for d in ALL if d.is_complex)
"""The bits of a complex tensor's key. Testing them takes a tenth of the time of ``is_complex()``."""


class Adam(Optimizer):
    """Steps of ``lr`` times the mean of the gradient divided by the root of its mean square, both decaying averages.

    ``betas``: the decay rates of the averages; ``eps``: added to the root; ``weight_decay``: added to the
    gradient, times the parameter; ``amsgrad``: divide by the largest mean square so far (Reddi et al., ICLR 2018);
    ``maximize``: ascend. If the device has a kernel for whole steps, one call updates many parameters, unless
    ``fused=False``;
    ``foreach``, ``capturable`` and ``differentiable`` are accepted for PyTorch's programs and change nothing. Raises
    ``ValueError`` for options out of range.
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
        """Do one step of one group."""
        amsgrad = group["amsgrad"]
        counted: dict[float, tuple[list[Row], list[dict[str, Any]]]] = {}
        for p in parameters:
            grad = p.grad
            if grad._keys & COMPLEX:
                raise RuntimeError(
                    f"{type(self).__name__} does not take complex parameters: optimize their real and imaginary parts "
                    "with view_as_real"
                )
            kept = self._state_of(p, amsgrad)
            averages = p, grad, kept["exp_avg"], kept["exp_avg_sq"]
            rows, states = counted.setdefault(float(kept["step"]) + 1, ([], []))
            rows.append((*averages, kept["max_exp_avg_sq"]) if amsgrad else averages)
            states.append(kept)
        for step, (rows, states) in counted.items():
            self._step(group, step, rows, states)

    def _state_of(self, p: Any, amsgrad: bool) -> dict[str, Any]:
        kept = self.state.get(p)
        if not kept:
            kept = self.state[p] = {
                "step": 0.0,  # a number, which PyTorch accepts too, although it stores a 0-d tensor
                "exp_avg": zeros_like(p),
                "exp_avg_sq": zeros_like(p),
            }
        if amsgrad and "max_exp_avg_sq" not in kept:
            kept["max_exp_avg_sq"] = kept["exp_avg_sq"].clone()
        return kept

    def _step(self, group: dict[str, Any], step: float, rows: Sequence[Row], states: list[dict[str, Any]]) -> None:
        """Do the step with the given number for the parameters collected so far."""
        options = (
            step, group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["decoupled_weight_decay"],
            group["maximize"],
        )  # fmt: skip
        if self._fused:
            rows = steps_by_kernel(amsgrad_step if group["amsgrad"] else adam_step, rows, *options)
        for kept in states:
            kept["step"] = step
        for param, grad, mean, square, *largest in rows:
            descend_adaptively(param, grad, mean, square, largest[0] if largest else None, *options)


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


def __dir__() -> list[str]:
    return sorted(__all__)
