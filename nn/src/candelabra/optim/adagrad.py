"""Adagrad (Duchi, Hazan & Singer, JMLR 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, full_like
from candelabra.optim.batches import StepBatch
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_fused, check_options, check_rate
from candelabra.optim.per_parameter import PerParameter, descend
from candelabra.optim.sparse_gradients import refuse_sparse, stored_elements

__all__ = ["Adagrad", "adagrad"]


class Adagrad(PerParameter):
    """Divides the gradient by the root of the sum of all its squares so far.

    ``lr_decay``: divide the rate by ``1 + lr_decay * steps``; ``weight_decay``: added to the gradient, times the
    parameter; ``initial_accumulator_value``: where the sum starts; ``eps``: added to the root; ``maximize``: ascend.
    ``differentiable``: record the step. ``foreach`` and ``fused`` are accepted for PyTorch's programs and change
    nothing. Raises ``ValueError`` for options out of range, and ``RuntimeError`` in a step with a sparse gradient and
    weight decay or ``fused=True``.
    """

    takes_sparse = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        start = initial_accumulator_value
        check_options(
            lr_decay=(lr_decay >= 0, "lr_decay value", lr_decay),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
            start=(start >= 0, "initial_accumulator_value value", start),
            eps=(eps >= 0, "epsilon value", eps),
        )
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": start, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def share_memory(self) -> None:
        """Do nothing: memory is not shared between processes."""

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        value = group["initial_accumulator_value"]
        return {"sum": full_like(p, complex(value, value) if p.is_complex() else value)}

    def batches(self, group: dict[str, Any], parameters: list[Any]) -> list[StepBatch]:
        """Return the batches of the parameters of a group. Raises ``RuntimeError`` for options that exclude sparse
        gradients.
        """
        if group.get("fused"):
            refuse_sparse("Adagrad does not support sparse gradients with fused=True", parameters)
        if group["weight_decay"]:
            refuse_sparse("weight_decay option is not compatible with sparse gradients", parameters)
        return super().batches(group, parameters)

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        return group["lr"] / (1 + (known["step"] - 1) * group["lr_decay"]), group["eps"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        rate, eps = numbers
        if g.is_sparse:
            _move_stored(p, g, state["sum"], rate, eps)
            return
        state["sum"].addcmul_(g, g)
        descend(p, g / (state["sum"].sqrt() + eps), rate)


def _move_stored(p: Tensor, g: Any, total: Tensor, rate: float, eps: float) -> None:
    """Update a parameter and its sum of squares at the positions of a sparse gradient."""
    positions, values, (p, total) = stored_elements(g, p, total)
    squares = total[positions] + values * values
    total.index_put_(positions, squares)
    p.index_put_(positions, values / (squares.sqrt() + eps) * -rate, accumulate=True)


adagrad = functional_form(
    Adagrad,
    {"grads": "grad", "state_sums": "sum", "state_steps": "step"},
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    "lr weight_decay lr_decay eps maximize",
)


def __dir__() -> list[str]:
    return sorted(__all__)
