"""Schedulers that multiply the rate by a factor in every epoch, or in some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from candelabra.optim.lr_scheduler.base import LRScheduler, group_values, lambda_states, load_lambda_states
from candelabra.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR",
]  # fmt: skip

Lambda = Callable[[int], float]


class _OfLambdas(LRScheduler):
    """A scheduler with a function of the epoch per group, or one for all. Functions are not part of the state."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Lambda | list[Lambda], last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        given = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(given) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
        self.lr_lambdas: list[Lambda] = given
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer. Of functions, the attributes of callable objects are saved."""
        return {**super().state_dict(), "lr_lambdas": lambda_states(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        load_lambda_states(self.lr_lambdas, state_dict["lr_lambdas"])


class LambdaLR(_OfLambdas):
    """The initial rate times ``lr_lambda(epoch)``, or times a function per group. Raises ``ValueError`` if the number
    of functions is not that of the groups."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * f(self.last_epoch) for base, f in zip(self._initial_rates(), self.lr_lambdas)]


class MultiplicativeLR(_OfLambdas):
    """Multiplies the rate by ``lr_lambda(epoch)``, or by a function per group. Raises ``ValueError`` if the number of
    functions is not that of the groups."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        rates = group_values(self.optimizer, "lr")
        return rates if self._is_initial else [lr * f(self.last_epoch) for lr, f in zip(rates, self.lr_lambdas)]


class _Factor(LRScheduler):
    """A scheduler that multiplies all rates by the same factor."""

    def factor_of(self, epoch: int) -> float:
        """Return the factor between the rate of the epoch before and that of this one."""
        raise NotImplementedError(f"{type(self).__name__} must define factor_of()")

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        factor = self.factor_of(self.last_epoch)
        return [lr if factor == 1 else lr * factor for lr in group_values(self.optimizer, "lr")]


class StepLR(_Factor):
    """Multiplies the rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        return self.gamma if epoch and epoch % self.step_size == 0 else 1.0

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self._initial_rates()]


class MultiStepLR(_Factor):
    """Multiplies the rate by ``gamma`` at each of the milestones, at a repeated one several times."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        return float(self.gamma ** self.milestones[epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = sum(count for milestone, count in self.milestones.items() if milestone <= self.last_epoch)
        return [base * self.gamma**passed for base in self._initial_rates()]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer. The milestones are a dict of counts, which can be saved."""
        return {**super().state_dict(), "milestones": dict(self.milestones)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`, also from a file, whose keys are strings."""
        super().load_state_dict(state_dict)
        self.milestones = Counter({int(epoch): count for epoch, count in self.milestones.items()})


class ExponentialLR(_Factor):
    """Multiplies the rate by ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self._initial_rates()]


class ConstantLR(_Factor):
    """Multiplies the rate by ``factor`` for the first ``total_iters`` epochs.

    Raises ``ValueError`` for a factor outside of 0 to 1.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        if epoch == 0:
            return self.factor
        return 1.0 / self.factor if epoch == self.total_iters else 1.0

    def _get_closed_form_lr(self) -> list[Any]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self._initial_rates()]


class LinearLR(_Factor):
    """Changes the rate linearly from ``start_factor`` to ``end_factor`` of the initial one in ``total_iters`` epochs.

    Raises ``ValueError`` for factors outside of 0 to 1, and for a ``start_factor`` of 0.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1.0
        change = self.end_factor - self.start_factor
        return 1.0 + change / (self.total_iters * self.start_factor + (epoch - 1) * change)

    def _get_closed_form_lr(self) -> list[Any]:
        change = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + change) for base in self._initial_rates()]


class PolynomialLR(_Factor):
    """Lowers the rate to 0 in ``total_iters`` epochs, as ``(1 - epoch / total_iters) ** power``."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def factor_of(self, epoch: int) -> float:
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        now, before = (1.0 - e / self.total_iters for e in (epoch, epoch - 1))
        return float((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        share = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * share**self.power for base in self._initial_rates()]


def __dir__() -> list[str]:
    return sorted(__all__)
