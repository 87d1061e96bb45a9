"""Stochastic gradient descent with momentum (Sutskever et al., ICML 2013)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from candelabra import zeros_like
from candelabra.library import Operator
from candelabra.nn._operators.steps import descend, descend_with_momentum, momentum_step, sgd_step
from candelabra.optim.fused import Row, steps_by_kernel
from candelabra.optim.optimizer import Optimizer, check_options

__all__ = ["SGD"]


class SGD(Optimizer):
    """``p -= lr * b``, where ``b = momentum * b + (1 - dampening) * g`` and g includes ``weight_decay * p``.

    ``nesterov``: step along ``g + momentum * b``. ``maximize``: ascend. Raises ``ValueError`` for options out of range.
    If the device has a kernel for whole steps, one call updates many parameters, unless ``fused=False``.
    ``foreach`` and ``differentiable`` are accepted for PyTorch's programs and change nothing.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(
            lr=(lr >= 0, "learning rate", lr),
            momentum=(momentum >= 0, "momentum value", momentum),
            decay=(weight_decay >= 0, "weight_decay value", weight_decay),
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)
        self._fused = fused is not False

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """Do one step of one group."""
        lr, momentum, decay, uphill = group["lr"], group["momentum"], group["weight_decay"], group["maximize"]
        if not momentum:
            rows = [(p, p.grad) for p in parameters]
            self._step(sgd_step, descend, rows, lr, decay, uphill)
            return
        dampened: dict[float, list[Row]] = {}
        for p in parameters:
            kept = self.state.setdefault(p, {})
            buffer, dampening = kept.get("momentum_buffer"), group["dampening"]
            if buffer is None:  # the first step: the buffer becomes the whole gradient, undampened
                buffer = kept["momentum_buffer"] = zeros_like(p)
                dampening = 0.0
            dampened.setdefault(dampening, []).append((p, p.grad, buffer))
        for dampening, some in dampened.items():
            options = (lr, momentum, dampening, decay, group["nesterov"], uphill)
            self._step(momentum_step, descend_with_momentum, some, *options)

    def _step(self, op: Operator[..., Any], descent: Callable[..., None], rows: Sequence[Row], *options: float) -> None:
        """Do a step by the device's kernel of ``op``, or by the function of its operators if there is no kernel."""
        for row in steps_by_kernel(op, rows, *options) if self._fused else rows:
            descent(*row, *options)


def __dir__() -> list[str]:
    return sorted(__all__)
