"""Resilient backpropagation (Riedmiller & Braun, IEEE ICNN 1993), without its backtracking of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, full_like, ones_like, zeros_like
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_options, check_rate
from candelabra.optim.per_parameter import PerParameter

__all__ = ["Rprop", "rprop"]


class Rprop(PerParameter):
    """Steps along the sign of the gradient. Each element has a step size, which grows while its sign stays the same.

    ``lr``: the first step sizes; ``etas``: the factors for a sign that has changed, and for one that has not;
    ``step_sizes``: the smallest and the largest step size; ``maximize``: ascend. ``differentiable``: record the step.
    ``foreach`` and ``capturable`` are accepted for PyTorch's programs and change nothing. Raises ``ValueError`` for
    options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_options(etas=(0 < etas[0] < 1 < etas[1], "eta values", f"{etas[0]}, {etas[1]}"))
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = float(group["lr"])
        return {"prev": zeros_like(p), "step_size": full_like(p, complex(lr, lr) if p.is_complex() else lr)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        return *group["etas"], *group["step_sizes"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        shrink, grow, smallest, largest = numbers
        agreement = g * state["prev"]
        turned = agreement < 0
        factor = ones_like(p).masked_fill(turned, shrink).masked_fill(agreement > 0, grow)
        sizes = (state["step_size"] * factor).clamp(smallest, largest)
        g = g.masked_fill(turned, 0)  # after a change of sign, stay, and let the next step be free in its direction
        p.sub_(g.sign() * sizes)
        state["step_size"].copy_(sizes)
        state["prev"].copy_(g)


rprop = functional_form(
    Rprop,
    {"grads": "grad", "prevs": "prev", "step_sizes": "step_size", "state_steps": "step"},
    "foreach capturable maximize differentiable has_complex",
    "step_size_min step_size_max etaminus etaplus",
)


def __dir__() -> list[str]:
    return sorted(__all__)
