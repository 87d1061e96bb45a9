"""Optimizers and learning rate schedulers."""

from __future__ import annotations

from candelabra.optim import lr_scheduler as lr_scheduler
from candelabra.optim.adam import Adam as Adam
from candelabra.optim.adam import AdamW as AdamW
from candelabra.optim.optimizer import Optimizer as Optimizer
from candelabra.optim.sgd import SGD as SGD

__all__ = [
    "Adam", "AdamW", "lr_scheduler", "Optimizer", "SGD",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
