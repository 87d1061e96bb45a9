"""Optimizers whose step is one operator over many parameters, with the options of a group as its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from candelabra import Tensor, is_grad_enabled
from candelabra.library import Operator
from candelabra.optim.optimizer import Optimizer
from candelabra.optim.scalars import scalar

__all__ = ["RowBatch", "Row", "RowOptimizer", "plain", "step"]

Row = tuple[Any, ...]
"""A parameter, its gradient and its state: the tensors of a step's record, in its order."""
Group = dict[str, Any]
State = dict[str, Any]


class RowBatch(NamedTuple):
    """Parameters that one call of a step's record updates."""

    rows: list[Row]
    states: list[State]
    """Their states, if these count steps: they share the tensor "step" from this step on."""
    number: float = 1.0
    """The number of the step, from 1 on."""
    first: bool = False
    """Whether they have no momentum yet."""


class RowOptimizer(Optimizer):
    """An optimizer that defines the operator of its step, the rows that it takes, and the arguments after them.

    Compiled functions record such a step as a node of their graph, see :mod:`candelabra.optim.recorded`.
    """

    def operator(self, group: Group) -> Operator[..., Any]:
        """Return the record of the step of a group."""
        raise NotImplementedError(f"{type(self).__name__} must define operator()")

    def batches(self, group: Group, parameters: list[Any]) -> list[RowBatch]:
        """Return the rows of the parameters of a group. State that does not exist is created."""
        raise NotImplementedError(f"{type(self).__name__} must define batches()")

    def arguments(self, group: Group, batch: RowBatch) -> tuple[Any, ...]:
        """Return the operator's arguments after the rows: numbers, and flags as bools."""
        raise NotImplementedError(f"{type(self).__name__} must define arguments()")

    def update(self, group: Group, parameters: list[Any]) -> None:
        """Do one step of one group."""
        batches = self.batches(group, parameters)
        group = plain(group, group.get("differentiable", False))
        for batch in batches:
            step(self.operator(group), batch.rows, group, *self.arguments(group, batch))
            count(batch.states, batch.number)


def count(states: Sequence[State], number: float) -> None:
    """Set the number of steps in all states, to one tensor."""
    if states:
        counted = scalar(number)
        for kept in states:
            kept["step"] = counted


def step(op: Operator[..., Any], rows: Sequence[Row], group: Group, *options: Any) -> None:
    """Do the step ``op`` of all rows in place: by one call, or for ``fused=False`` by operators for each row."""
    for cls in set(map(type, map(itemgetter(0), rows))):  # of the parameters, mostly one class
        if hasattr(cls, "to_local") and not is_grad_enabled():
            rows = [tuple(map(_part, row)) for row in rows]
            break
    if group.get("fused") is not False:
        op.over_rows(rows, *options)
        return
    assert op.inplace_body is not None
    for row in rows:
        op.inplace_body(*row, *options)


def _part(tensor: Tensor) -> Tensor:
    """Return a rank's part of a distributed tensor, whose elements a step updates as it updates any others."""
    found: Tensor = tensor.to_local().detach() if hasattr(tensor, "to_local") else tensor
    return found


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
