"""Learning rate schedulers. Call ``step()`` once per epoch, after the optimizer's ``step()``."""

from __future__ import annotations

from candelabra.optim.lr_scheduler.base import LRScheduler as LRScheduler
from candelabra.optim.lr_scheduler.composed import ChainedScheduler as ChainedScheduler
from candelabra.optim.lr_scheduler.composed import SequentialLR as SequentialLR
from candelabra.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from candelabra.optim.lr_scheduler.cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from candelabra.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from candelabra.optim.lr_scheduler.cycles import OneCycleLR as OneCycleLR
from candelabra.optim.lr_scheduler.factors import ConstantLR as ConstantLR
from candelabra.optim.lr_scheduler.factors import ExponentialLR as ExponentialLR
from candelabra.optim.lr_scheduler.factors import LambdaLR as LambdaLR
from candelabra.optim.lr_scheduler.factors import LinearLR as LinearLR
from candelabra.optim.lr_scheduler.factors import MultiplicativeLR as MultiplicativeLR
from candelabra.optim.lr_scheduler.factors import MultiStepLR as MultiStepLR
from candelabra.optim.lr_scheduler.factors import PolynomialLR as PolynomialLR
from candelabra.optim.lr_scheduler.factors import StepLR as StepLR
from candelabra.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau

_LRScheduler = LRScheduler  # the name of the class in PyTorch 1, which most programs still use

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
