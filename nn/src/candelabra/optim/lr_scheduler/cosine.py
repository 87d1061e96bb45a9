"""Cosine annealing (Loshchilov & Hutter, SGDR, ICLR 2017)."""

from __future__ import annotations

import math
from typing import Any

from candelabra.library import outside_graph
from candelabra.optim.lr_scheduler.base import LRScheduler, group_values
from candelabra.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    """Lowers the rate to ``eta_min`` in ``T_max`` epochs along half a cosine, and raises it again after that."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        self._initial_rates()  # of groups that were added since the last step
        rates = group_values(self.optimizer, "lr")
        if self._is_initial:
            return rates
        epoch, period, lowest = self.last_epoch, self.T_max, self.eta_min
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - period) % (2 * period) == 0:  # the rate is lowest, so its distance has no ratio to the next
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - lowest) * rise for lr, base in zip(rates, self._initial_rates())]
        now, before = (1 + math.cos(math.pi * e / period) for e in (epoch, epoch - 1))
        return [now / before * (lr - lowest) + lowest for lr in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self._initial_rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Lowers the rate to ``eta_min`` along half a cosine, in periods that restart at the initial rate.

    ``T_0``: the epochs of the first period; ``T_mult``: how many times longer each next one is. ``step(epoch)`` takes
    fractions, for instance ``epoch + batch / batches``. Raises ``ValueError`` if ``T_0`` is not a positive integer,
    ``T_mult`` not an integer from 1 on, or the epoch negative.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self._initial_rates()]

    @outside_graph
    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch, or of the given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._restart(epoch)
        self.last_epoch = math.floor(epoch)
        with self._within_step():
            rates = self.get_lr()
        self._set_rates(rates)

    def _restart(self, epoch: float) -> None:
        """Find the period of an epoch, and the place in it."""
        if epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
        else:
            # Periods 0 to n - 1 take T_0 (T_mult^n - 1) / (T_mult - 1) epochs.
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


def __dir__() -> list[str]:
    return sorted(__all__)
