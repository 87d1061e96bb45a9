"""Stochastic gradient descent with momentum (Sutskever et al., ICML 2013)."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, zeros_like
from candelabra.library import Operator
from candelabra.nn._operators.steps import momentum_step, sgd_step
from candelabra.optim.batches import StepBatch
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_fused, check_options, check_rate
from candelabra.optim.rows import RowOptimizer
from candelabra.optim.sparse_gradients import refuse_sparse

__all__ = ["SGD", "sgd"]


class SGD(RowOptimizer):
    """``p -= lr * b``, where ``b = momentum * b + (1 - dampening) * g`` and g includes ``weight_decay * p``.

    ``nesterov``: step along ``g + momentum * b``. ``maximize``: ascend. ``differentiable``: record the step. If the
    device has a kernel for whole steps, one call updates many parameters, unless ``fused=False``. ``foreach`` is
    accepted for PyTorch's programs and changes nothing. Raises ``ValueError`` for options out of range, and
    ``RuntimeError`` in a step with a sparse gradient and ``weight_decay`` or ``fused=True``.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_options(
            momentum=(momentum >= 0, "momentum value", momentum),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def operator(self, group: dict[str, Any]) -> Operator[..., Any]:
        """Return the record of the step of a group."""
        return momentum_step if group["momentum"] else sgd_step

    def batches(self, group: dict[str, Any], parameters: list[Any]) -> list[StepBatch]:
        """Return the rows of the parameters of a group, apart for those without a momentum buffer."""
        if group["weight_decay"] or group.get("fused"):
            option = "fused=True" if group.get("fused") else "weight_decay"
            refuse_sparse(f"SGD does not support sparse gradients with {option}", parameters)
        if not group["momentum"]:
            return [StepBatch([(p, p._grad) for p in parameters], [])]
        found = {first: StepBatch([], [], first=first) for first in (False, True)}
        for p in parameters:
            kept = self.state[p]
            buffer = kept.get("momentum_buffer")
            first = buffer is None
            if first:
                buffer = kept["momentum_buffer"] = zeros_like(p)
            found[first].rows.append((p, p._grad, buffer))
        return [batch for batch in found.values() if batch.rows]

    def arguments(self, group: dict[str, Any], batch: StepBatch) -> tuple[Any, ...]:
        """Return the operator's arguments after the rows. In the first step the buffer becomes the whole gradient."""
        lr, momentum, decay, uphill = group["lr"], group["momentum"], group["weight_decay"], group["maximize"]
        if not momentum:
            return lr, decay, uphill
        return lr, momentum, 0.0 if batch.first else group["dampening"], decay, group["nesterov"], uphill


sgd = functional_form(
    SGD,
    {"d_p_list": "grad", "momentum_buffer_list": "momentum_buffer"},
    "has_sparse_grad foreach fused grad_scale found_inf",
    "weight_decay momentum lr dampening nesterov maximize",
)


def __dir__() -> list[str]:
    return sorted(__all__)
