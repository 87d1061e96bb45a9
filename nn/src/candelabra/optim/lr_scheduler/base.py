"""The base of learning rate schedulers."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from candelabra import Tensor
from candelabra.library import outside_graph
from candelabra.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "copied", "group_values", "lambda_states", "load_lambda_states", "set_option"]

ORDER = (
    "In PyTorch 1.1.0 and later, you should call them in the opposite order: `optimizer.step()` before "
    "`lr_scheduler.step()`. Otherwise the first value of the schedule is skipped."
)
EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()`. With an epoch, the schedule's closed form is used where there is one, which ignores rates "
    "that other schedulers or the program have set."
)


class LRScheduler:
    """The base class. A subclass defines ``get_lr()``, which returns the new rate of each group.

    ``get_lr`` computes the rates from those in the groups, ``group["lr"]``, so that several schedulers and changes by
    the program combine, and from ``last_epoch``, the number of the step, which is 0 during construction. The rate that
    a group had at first is its "initial_lr". ``last_epoch``: the step after which training is resumed, or -1. A
    subclass may define ``_get_closed_form_lr()``, which ``step(epoch)`` calls.

    Raises ``TypeError`` if ``optimizer`` is not an Optimizer, and ``KeyError`` if training is resumed without
    "initial_lr".
    """

    _opaque_to_compile = True
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copied(group["lr"]))
        else:
            for number, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                        "last_epoch >= 0: load the state of the optimizer first"
                    )
        self.base_lrs: list[Any] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        if optimizer._opt_called is None:
            optimizer._opt_called = False
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0  # also of a scheduler that was used before, as a part of a SequentialLR
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_last_lr(self) -> list[Any]:
        """Return the rates that the scheduler has set last, one per group."""
        return list(self._last_lr)

    def get_lr(self) -> list[Any]:
        """Return the new rate of each group. Subclasses define it, and only :meth:`step` calls it."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    @outside_graph
    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, after the optimizer's step. ``epoch``: of that one (deprecated)."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                f"Detected call of `lr_scheduler.step()` before `optimizer.step()`. {ORDER}", UserWarning, stacklevel=2
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._within_step():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._set_rates(rates)

    def _set_rates(self, rates: Sequence[Any]) -> None:
        groups = self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ValueError(
                f"{type(self).__name__} has rates for {len(rates)} parameter groups, and the optimizer has "
                f"{len(groups)}: give its options for all groups, after the last group has been added"
            )
        for group, rate in zip(groups, rates):
            set_option(group, "lr", rate)
        self._last_lr = group_values(self.optimizer, "lr")

    def _initial_rates(self) -> list[Any]:
        """Return ``base_lrs``, and the first rates of groups that were added later."""
        later = self.optimizer.param_groups[len(self.base_lrs) :]
        return self.base_lrs + [group.setdefault("initial_lr", copied(group["lr"])) for group in later]

    @contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`. The rates in the optimizer do not change."""
        self.__dict__.update(state_dict)


def check_optimizer(optimizer: Any) -> None:
    """Raise ``TypeError`` unless ``optimizer`` is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    """Return a copy of a tensor, or any other value itself."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, name: str) -> list[Any]:
    """Return an option of every group; tensors are copied."""
    return [copied(group[name]) for group in optimizer.param_groups]


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group. A tensor is filled, because programs and graphs hold it."""
    present = group[name]
    if isinstance(present, Tensor):
        present.detach().fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def per_group(optimizer: Optimizer, name: str, values: Any) -> list[Any]:
    """Return a value per group, from one value or one for each. Raises ``ValueError`` for a wrong number of them."""
    count = len(optimizer.param_groups)
    if not isinstance(values, (list, tuple)):
        return [values] * count
    if len(values) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, "
            f"param_groups has {count}."
        )
    return list(values)


def lambda_states(lambdas: Sequence[Callable[..., Any]]) -> list[dict[str, Any] | None]:
    """Return the attributes of callable objects, and None for functions, which cannot be saved."""
    return [None if isinstance(f, types.FunctionType) else vars(f).copy() for f in lambdas]


def load_lambda_states(lambdas: Sequence[Callable[..., Any]], states: Sequence[dict[str, Any] | None]) -> None:
    """Load states of :func:`lambda_states`."""
    for f, state in zip(lambdas, states):
        if state is not None:
            vars(f).update(state)


def __dir__() -> list[str]:
    return sorted(__all__)
