"""SparseAdam, which needs sparse gradients."""

from __future__ import annotations

from typing import Any

from candelabra.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Raises ``NotImplementedError``: there are no sparse tensors yet. Adam takes the dense gradients of Embedding."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        raise NotImplementedError(
            "SparseAdam updates parameters with sparse gradients, and candelabra has no sparse tensors yet; use Adam, "
            "which takes the dense gradients that Embedding has"
        )


def __dir__() -> list[str]:
    return sorted(__all__)
