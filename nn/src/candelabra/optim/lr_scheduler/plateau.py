"""ReduceLROnPlateau: lowers the rate when a measurement stops improving."""

from __future__ import annotations

import math
from typing import Any, Literal, SupportsFloat

from candelabra.library import outside_graph
from candelabra.optim.lr_scheduler.base import LRScheduler, check_optimizer, group_values, set_option
from candelabra.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by ``factor`` when ``step(metrics)`` has not improved for more than ``patience`` epochs.

    ``mode``: "min" if smaller is better, or "max"; ``threshold``: by how much a better value has to differ, as a share
    of the best one (``threshold_mode="rel"``) or as such ("abs"); ``cooldown``: the epochs after a change in which
    nothing is counted; ``min_lr``: the lowest rate, one value or one per group; ``eps``: a smaller change of the rate
    is not made. Raises ``ValueError`` for a factor from 1 on, another mode, or a wrong number of ``min_lr``, and
    ``RuntimeError`` if a group without a rate in the list ``min_lr`` was added later.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.factor = factor
        count = len(optimizer.param_groups)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs: list[Any] = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(self.min_lrs)}")
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forget the best value and the counters."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @outside_graph
    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take in the measurement of an epoch, and lower the rates if it is time to."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = group_values(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):  # groups were added later
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau has {len(self.min_lrs)} min_lrs, and the optimizer has {len(groups)} parameter "
                    "groups: set `min_lrs` to a list of one rate per group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs):
            rate = float(group["lr"])
            lowered = max(rate * self.factor, low)
            if rate - lowered > self.eps:
                set_option(group, "lr", lowered)

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted because the rate has changed recently."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            return value * sign > best * sign + self.threshold
        return value * sign > best * sign * (1 + sign * self.threshold)


def __dir__() -> list[str]:
    return sorted(__all__)
