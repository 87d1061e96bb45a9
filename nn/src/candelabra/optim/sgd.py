"""Stochastic gradient descent, with momentum (Sutskever et al., ICML 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra.optim.optimizer import Optimizer, check_options

__all__ = ["SGD"]


class SGD(Optimizer):
    """``p -= lr * b``, where ``b = momentum * b + (1 - dampening) * g`` and g includes ``weight_decay * p``.

    ``nesterov``: step along ``g + momentum * b``. ``maximize``: uphill. Raises ``ValueError`` for options out of range.
    ``foreach``, ``fused`` and ``differentiable`` are accepted for PyTorch's programs and change nothing but False.
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

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """One step of one group."""
        lr, momentum, decay = group["lr"], group["momentum"], group["weight_decay"]
        for p in parameters:
            g = -p.grad if group["maximize"] else p.grad
            if decay:
                g = g.add(p, alpha=decay)
            if momentum:
                g = self._with_momentum(p, g, momentum, 1 - group["dampening"], group["nesterov"])
            p.sub_(g, alpha=lr)

    def _with_momentum(self, p: Any, g: Any, momentum: float, share: float, nesterov: bool) -> Any:
        kept = self.state.setdefault(p, {})
        buffer = kept.get("momentum_buffer")
        if buffer is None:
            buffer = kept["momentum_buffer"] = g.detach().clone()
        else:
            buffer.mul_(momentum)
            buffer.add_(g, alpha=share)
        return g.add(buffer, alpha=momentum) if nesterov else buffer
