"""Collectives that return new tensors, and through which gradients flow. As ``torch.distributed.nn.functional``.

Derivatives: the loss is the sum of the ranks' losses, and a rank's gradient is the derivative of that sum by its own
input. So the gradient of a sum that every rank gets is the sum of all gradients, and that of a tensor that is copied
to all ranks is the same sum, on the source. A tensor that is sent to another rank has a gradient that is sent back.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.autograd.function import Function
from candelabra.distributed import _collectives as collectives
from candelabra.distributed._process_group import resolved
from candelabra.distributed._reductions import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def _sums(op: ReduceOp, call: str) -> None:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"{call} has derivatives for ReduceOp.SUM and ReduceOp.AVG, got {op}")


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        ctx.src, ctx.group = src, group
        out = tensor.detach().clone()
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Reduce.apply(g, ctx.src, ReduceOp.SUM, ctx.group), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, op: ReduceOp, group: Any) -> Tensor:
        ctx.dst, ctx.op, ctx.group = dst, op, group
        out = tensor.detach().clone()
        collectives.reduce(out, dst, op, group)
        g = resolved(group, "reduce")
        return out if g.ranks[g.rank()] == dst else out.zero_()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        found: Tensor = _Broadcast.apply(g, ctx.dst, ctx.group)
        if ctx.op is ReduceOp.AVG:
            found = found / resolved(ctx.group, "reduce").size()
        return found, None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.detach().clone()
        collectives.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _AllReduce.apply(g, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        size = resolved(group, "all_gather").size()
        out = tensor.new_empty((size, *tensor.shape))
        collectives.all_gather_into_tensor(out, tensor.detach(), group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _ReduceScatter.apply(g, ReduceOp.SUM, ctx.group), None


class _ReduceScatter(Function):
    """The tensor has one more dim in front, of the ranks."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: ReduceOp, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.new_empty(tensor.shape[1:])
        collectives.reduce_scatter_tensor(out, tensor.detach(), op, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        found: Tensor = _AllGather.apply(g, ctx.group)
        if ctx.op is ReduceOp.AVG:
            found = found / resolved(ctx.group, "reduce_scatter").size()
        return found, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, outputs: Any, inputs: Any, group: Any) -> Tensor:
        ctx.outputs, ctx.inputs, ctx.group = outputs, inputs, group
        rows = tensor.shape[0] if outputs is None else sum(outputs)
        out = tensor.new_empty((rows, *tensor.shape[1:]))
        collectives.all_to_all_single(out, tensor.detach(), outputs, inputs, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _AllToAll.apply(g.contiguous(), ctx.inputs, ctx.outputs, ctx.group), None, None, None


class _Scatter(Function):
    """The tensor has one more dim in front, of the ranks, on every rank; only that of ``src`` is read."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        ctx.src, ctx.group = src, group
        out = tensor.new_empty(tensor.shape[1:])
        g = resolved(group, "scatter")
        parts = list(tensor.detach().unbind(0)) if g.ranks[g.rank()] == src else None
        collectives.scatter(out, parts, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Gather.apply(g, ctx.src, ctx.group), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, group: Any) -> Tensor:
        ctx.dst, ctx.group = dst, group
        g = resolved(group, "gather")
        out = tensor.new_zeros((g.size(), *tensor.shape))
        parts = [cd.empty_like(tensor) for _ in range(g.size())] if g.ranks[g.rank()] == dst else None
        collectives.gather(tensor.detach(), parts, dst, group)
        return out if parts is None else cd.stack(parts)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Scatter.apply(g, ctx.dst, ctx.group), None, None


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of the rank ``src``, on every rank."""
    found: Tensor = _Broadcast.apply(tensor, src, group)
    return found


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or the average over the ranks, on the rank ``dst``; zeros elsewhere."""
    _sums(op, "reduce")
    found: Tensor = _Reduce.apply(tensor, dst, op, group)
    return found


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or the average over the ranks, on every rank."""
    _sums(op, "all_reduce")
    found: Tensor = _AllReduce.apply(tensor, op, group)
    return found


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, in their order."""
    return tuple(_AllGather.apply(tensor, group).unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on the rank ``dst``; zeros elsewhere."""
    return tuple(_Gather.apply(tensor, dst, group).unbind(0))


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Return one tensor of the list of the rank ``src`` on each rank. All lists have tensors of the same shape."""
    found: Tensor = _Scatter.apply(cd.stack(list(tensors)), src, group)
    return found


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return this rank's element of the lists' sum or average over the ranks. ``output`` is not used."""
    _sums(op, "reduce_scatter")
    found: Tensor = _ReduceScatter.apply(cd.stack(list(input_list)), op, group)
    return found


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Return what each rank sends to this one, which gets the parts of ``input`` in return. ``output`` is not used."""
    found: Tensor = _AllToAll.apply(input, output_split_sizes, input_split_sizes, group)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
