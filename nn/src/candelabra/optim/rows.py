"""Optimizers whose step is one operator over many parameters, with the options of a group as its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from candelabra import Tensor, is_grad_enabled
from candelabra.library import Operator
from candelabra.optim.batches import BatchOptimizer, Group, StepBatch

__all__ = ["RowOptimizer"]


class RowOptimizer(BatchOptimizer):
    """An optimizer that defines the operator of its step. The rows of its batches have the operator's tensors."""

    def operator(self, group: Group) -> Operator[..., Any]:
        """Return the record of the step of a group."""
        raise NotImplementedError(f"{type(self).__name__} must define operator()")

    def apply(self, group: Group, batch: StepBatch, arguments: Sequence[Any]) -> None:
        """Update a batch and its state in place: by one call, or for ``fused=False`` by operators for each row."""
        op, rows = self.operator(group), batch.rows
        for cls in set(map(type, map(itemgetter(0), rows))):  # of the parameters, mostly one class
            if hasattr(cls, "to_local") and not is_grad_enabled():
                rows = [tuple(map(_part, row)) for row in rows]
                break
        if group.get("fused") is not False:
            op.over_rows(rows, *arguments)
            return
        assert op.inplace_body is not None
        for row in rows:
            op.inplace_body(*row, *arguments)


def _part(tensor: Tensor) -> Tensor:
    """Return a rank's part of a distributed tensor, whose elements a step updates as it updates any others."""
    found: Tensor = tensor.to_local().detach() if hasattr(tensor, "to_local") else tensor
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
