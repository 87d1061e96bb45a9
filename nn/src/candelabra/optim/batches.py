"""The base of optimizers whose step is the same operators for many parameters, with numbers that the host computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from candelabra import Tensor
from candelabra.library import Operator
from candelabra.optim.optimizer import Optimizer
from candelabra.optim.scalars import number_in, scalar

__all__ = ["StepBatch", "BatchOptimizer", "Group", "Row", "State", "plain"]

Row = tuple[Any, ...]
"""A parameter, its gradient and perhaps tensors of its state."""
Group = dict[str, Any]
State = dict[str, Any]


class StepBatch(NamedTuple):
    """Parameters of a group whose step has the same numbers."""

    rows: list[Row]
    states: list[State]
    """Their states, if these have numbers: they share the tensors of the numbers from this step on."""
    known: Mapping[str, float] = {}
    """The numbers of the states before the step, by name. Only "step" counts this step, too: the first is 1."""
    first: bool = False
    """Whether they have no momentum yet."""


class BatchOptimizer(Optimizer):
    """An optimizer that defines the batches of a group, the arguments of their step, and the operators of the step.

    The step reads numbers of the group and of the state in :meth:`arguments` only, and does no arithmetic with them.
    Compiled functions record it as nodes of their graph, with these numbers as inputs of each run, see
    :mod:`candelabra.optim.recorded`.
    """

    kept_numbers: ClassVar[tuple[str, ...]] = ("step",)
    """The names of the numbers in the state, see :mod:`candelabra.optim.scalars`."""

    def operator(self, group: Group) -> Operator[..., Any] | None:
        """Return the record of the step of a group, if it has one."""
        return None

    def batches(self, group: Group, parameters: list[Any]) -> list[StepBatch]:
        """Return the batches of the parameters of a group. State that does not exist is created."""
        raise NotImplementedError(f"{type(self).__name__} must define batches()")

    def arguments(self, group: Group, batch: StepBatch) -> tuple[Any, ...]:
        """Return the arguments of the step of a batch: numbers, which differ from step to step, and what decides which
        operators run, as bools and tuples.
        """
        raise NotImplementedError(f"{type(self).__name__} must define arguments()")

    def apply(self, group: Group, batch: StepBatch, arguments: Sequence[Any]) -> None:
        """Update a batch and its state in place, by operators."""
        raise NotImplementedError(f"{type(self).__name__} must define apply()")

    def advanced(self, known: Mapping[str, float], group: Group) -> Mapping[str, float]:
        """Return the numbers of a state after a step; ``known`` are those in it, see :class:`StepBatch`."""
        return known

    def update(self, group: Group, parameters: list[Any]) -> None:
        """Do one step of one group."""
        batches = self.batches(group, parameters)
        options = plain(group, group.get("differentiable", False))
        for batch in batches:
            self.apply(options, batch, self.arguments(options, batch))
            if batch.states:
                self.count(options, batch)

    def known_in(self, kept: State) -> dict[str, float]:
        """Return the numbers of a state in the step that comes, see :class:`StepBatch`."""
        return {name: number_in(kept[name]) + (name == "step") for name in self.kept_numbers}

    def count(self, group: Group, batch: StepBatch) -> None:
        """Write the numbers after a step into the states of a batch: one tensor for all."""
        if batch.known:
            counted = {name: scalar(value) for name, value in self.advanced(batch.known, group).items()}
            for kept in batch.states:
                kept.update(counted)


def plain(group: Group, differentiable: bool = False) -> Group:
    """Return the options with tensors read as numbers; if ``differentiable``, except those that require gradients."""
    found = {}
    for name, value in group.items():
        if value.__class__ is not float and isinstance(value, Tensor):
            found[name] = _number(value, differentiable)
    betas = group.get("betas")
    if betas is not None and isinstance(betas[0], Tensor):
        found["betas"] = tuple(_number(beta, differentiable) for beta in betas)
    return {**group, **found} if found else group


def _number(value: Tensor, differentiable: bool) -> Any:
    return value if differentiable and value.requires_grad else value.item()


def __dir__() -> list[str]:
    return sorted(__all__)
