"""Collectives that return new tensors, and through which gradients flow. As ``torch.distributed.nn.functional``.

Each function calls an operator of ``candelabra_distributed.collectives``, where the derivatives are.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._collectives import root_of
from candelabra.distributed._process_group import resolved
from candelabra.library import ReduceOp
from candelabra_distributed.collectives import (
    SUMS,
    c10d_all_gather,
    c10d_all_reduce,
    c10d_all_to_all,
    c10d_broadcast,
    c10d_gather,
    c10d_reduce,
    c10d_reduce_scatter,
    c10d_scatter,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def _sum(op: ReduceOp, call: str) -> str:
    name = op.name.lower()
    if name not in SUMS:
        raise ValueError(f"{call} has derivatives for ReduceOp.SUM and ReduceOp.AVG, got {op}")
    return name


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of the rank ``src``, on every rank."""
    g = resolved(group, "broadcast")
    return c10d_broadcast(tensor, root_of(g, src, None, "src", "broadcast"), g.group_name)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or the average over the ranks, on the rank ``dst``; zeros elsewhere."""
    g = resolved(group, "reduce")
    return c10d_reduce(tensor, root_of(g, dst, None, "dst", "reduce"), _sum(op, "reduce"), g.group_name)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or the average over the ranks, on every rank."""
    return c10d_all_reduce(tensor, _sum(op, "all_reduce"), resolved(group, "all_reduce").group_name)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, in their order."""
    g = resolved(group, "all_gather")
    return tuple(c10d_all_gather(tensor, g.size(), g.group_name).unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on the rank ``dst``; zeros elsewhere."""
    g = resolved(group, "gather")
    return tuple(c10d_gather(tensor, g.size(), root_of(g, dst, None, "dst", "gather"), g.group_name).unbind(0))


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Return one tensor of the list of the rank ``src`` on each rank. All lists have tensors of the same shape."""
    g = resolved(group, "scatter")
    return c10d_scatter(cd.stack(list(tensors)), root_of(g, src, None, "src", "scatter"), g.group_name)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return this rank's element of the lists' sum or average over the ranks. ``output`` is not used."""
    g = resolved(group, "reduce_scatter")
    return c10d_reduce_scatter(cd.stack(list(input_list)), _sum(op, "reduce_scatter"), g.group_name)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Return what each rank sends to this one, which gets the parts of ``input`` in return. ``output`` is not used."""
    g = resolved(group, "all_to_all_single")
    return c10d_all_to_all(input, output_split_sizes, input_split_sizes, g.group_name)


def __dir__() -> list[str]:
    return sorted(__all__)
