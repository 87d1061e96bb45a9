"""Learning rate schedulers. Call ``step()`` once per epoch, after the optimizer's ``step()``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from candelabra.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "StepLR",
]  # fmt: skip


class LRScheduler:
    """The base class. A subclass defines ``rate(base, epoch, group)``, the learning rate in closed form.

    ``base`` is the initial rate of a group, which stores it as "initial_lr". Raises ``TypeError`` if ``optimizer`` is
    not an Optimizer, and ``KeyError`` if training is resumed (``last_epoch`` is given) without "initial_lr".
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming an optimizer"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = [group["lr"] for group in optimizer.param_groups]
        self.step()

    def rate(self, base: float, epoch: int, group: int) -> float:
        """Return the learning rate of one group in one epoch."""
        raise NotImplementedError(f"{type(self).__name__} must define rate()")

    def get_last_lr(self) -> list[float]:
        """Return the current rates, one per group."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Advance by one epoch, or to the given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for number, (base, group) in enumerate(zip(self.base_lrs, self.optimizer.param_groups)):
            group["lr"] = self.rate(base, self.last_epoch, number)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer and functions."""
        return {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The base rate times a function of the epoch, or one function per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        listed = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if listed else [lr_lambda] * len(optimizer.param_groups)
        )
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return base * self.lr_lambdas[group](epoch)


class StepLR(LRScheduler):
    """Multiplies the rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return float(base * self.gamma ** (epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Multiplies the rate by ``gamma`` at each of the milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return float(base * self.gamma ** sum(milestone <= epoch for milestone in self.milestones))


class ExponentialLR(LRScheduler):
    """Multiplies the rate by ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return float(base * self.gamma**epoch)


class ConstantLR(LRScheduler):
    """Multiplies the base rate by ``factor`` for the first ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return base * (self.factor if epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Changes the rate linearly from ``start_factor`` to ``end_factor`` of the base rate in ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate to ``eta_min`` in ``T_max`` epochs, along half a cosine (Loshchilov & Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, epoch: int, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2


def __dir__() -> list[str]:
    return sorted(__all__)
