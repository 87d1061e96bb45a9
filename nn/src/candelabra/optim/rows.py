"""One step of many parameters by one operator, and the options of a group as its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.library import Operator

__all__ = ["Row", "plain", "step"]

Row = tuple[Any, ...]
"""A parameter, its gradient and its state: the tensors of a step's record, in its order."""
Group = dict[str, Any]


def step(op: Operator[..., Any], rows: Sequence[Row], group: Group, *options: Any) -> None:
    """Do the step ``op`` of all rows in place: by one call, or for ``fused=False`` by operators for each row."""
    if group.get("fused") is not False:
        op.over_rows(rows, *options)
        return
    assert op.inplace_body is not None
    for row in rows:
        op.inplace_body(*row, *options)


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
