"""Schedulers of schedulers: one after another, and several at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from candelabra.library import outside_graph
from candelabra.optim.lr_scheduler.base import LRScheduler, copied, group_values, set_option
from candelabra.optim.lr_scheduler.plateau import ReduceLROnPlateau
from candelabra.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _OfSchedulers(LRScheduler):
    """A scheduler that steps others. Their states are in its state as "_schedulers"."""

    _schedulers: list[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        kind = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{kind} at index {number} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{kind} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {number} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{kind} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {number} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer, and the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_OfSchedulers):
    """Runs schedulers one after another: the next one begins at each of the milestones, with its epoch 0.

    Raises ``ValueError`` if there is not one milestone less than schedulers, or if they belong to several optimizers.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # as before the first steps that all schedulers have made
            set_option(group, "lr", copied(group["initial_lr"]))
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Set the schedulers to the epoch before the step of their construction."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for part in scheduler._schedulers:
                self.recursive_undo(part)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    @outside_graph
    def step(self) -> None:  # type: ignore[override]
        """Step the scheduler of the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def _update_lr(self, epoch: int | None = None) -> None:
        """Begin with the first scheduler, at a milestone of another sequence."""
        self.last_epoch = 0
        self._schedulers[0]._update_lr(0)
        self._last_lr = group_values(self.optimizer, "lr")


class ChainedScheduler(_OfSchedulers):
    """Steps all schedulers, in their order, in every epoch.

    Raises ``ValueError`` if there are none, or if they belong to several optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = group_values(self.optimizer, "lr")

    @outside_graph
    def step(self) -> None:  # type: ignore[override]
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")

    def _update_lr(self, epoch: int | None = None) -> None:
        """Begin with the first epoch of all schedulers, at a milestone of a sequence."""
        for group in self.optimizer.param_groups:
            set_option(group, "lr", copied(group["initial_lr"]))
        for scheduler in self._schedulers:
            self._restart(scheduler)
        self._last_lr = group_values(self.optimizer, "lr")

    def _restart(self, scheduler: LRScheduler) -> None:
        for part in getattr(scheduler, "_schedulers", ()):
            self._restart(part)
        if not hasattr(scheduler, "_schedulers"):
            scheduler.last_epoch = -1
            scheduler._initial_step()


def __dir__() -> list[str]:
    return sorted(__all__)
