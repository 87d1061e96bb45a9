"""Tensors from one placement to another, with gradients.

Ranks that divide a tensor compute one loss together, so a gradient of a replicated tensor is the same on every rank,
and the derivative of the loss, not of a sum of the ranks' losses. Backward of "gather" therefore takes this rank's part
of the gradient, and backward of "sum" passes the gradient on, unlike those of ``candelabra.distributed.nn``.
"""

from __future__ import annotations

from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.autograd.function import Function
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, bounds


def moved(tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement, size: int | None = None) -> Tensor:
    """Return a tensor of one placement in another one.

    ``size``: that of the whole along the dim of the source, if it is known; otherwise the ranks add up theirs.
    """
    source, target = (_counted_from_front(each, tensor.dim()) for each in (source, target))
    if source == target:
        return tensor
    found: Tensor = Move.apply(tensor, mesh, source, target, size)
    return found


def _counted_from_front(placement: Placement, rank: int) -> Placement:
    return Shard(placement.dim % rank) if isinstance(placement, Shard) else placement


SUMS: Final = ("sum", "avg")
"""The reductions of partial tensors that have derivatives."""


class Move(Function):
    """From one placement to another; backward goes back."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement, size: int | None
    ) -> Tensor:
        ctx.mesh, ctx.source, ctx.target = mesh, source, target
        return _moved(tensor, mesh, source, target, size)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if not isinstance(ctx.source, Partial):
            return moved(g, ctx.mesh, ctx.target, ctx.source), None, None, None, None
        # The gradient of a sum is that of each of its terms.
        if ctx.source.reduce_op not in SUMS:
            raise NotImplementedError(f"the gradient of {ctx.source}: only sums and averages have one")
        g = moved(g, ctx.mesh, ctx.target, Replicate())
        return (g if ctx.source.reduce_op == "sum" else g / ctx.mesh.size()), None, None, None, None


class Enter(Function):
    """A replicated tensor enters a layer in which each rank has a part of the weights: backward adds up."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, mesh: DeviceMesh) -> Tensor:
        ctx.mesh = mesh
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return moved(g, ctx.mesh, Partial(), Replicate()), None


def _moved(tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement, size: int | None = None) -> Tensor:
    if isinstance(source, Replicate) and isinstance(target, Shard):
        low, high = bounds(tensor.shape[target.dim], mesh.size(), mesh.get_local_rank())
        return tensor.narrow(target.dim, low, high - low).clone()
    if isinstance(source, Shard) and isinstance(target, Replicate):
        return gathered(tensor, source.dim, _whole_size(tensor, source.dim, mesh) if size is None else size, mesh)
    if isinstance(source, Partial) and isinstance(target, Replicate):
        total = tensor.contiguous().clone()
        dist.all_reduce(total, dist.ReduceOp[source.reduce_op.upper()], mesh.get_group())
        return total
    if isinstance(source, Partial) and isinstance(target, Shard):
        return _scattered(tensor, target.dim, mesh, source)
    if isinstance(source, Shard) and isinstance(target, Shard):
        return _moved(_moved(tensor, mesh, source, Replicate()), mesh, Replicate(), target)
    raise NotImplementedError(f"tensor parallelism does not move tensors from {source} to {target}")


def _whole_size(tensor: Tensor, dim: int, mesh: DeviceMesh) -> int:
    size = cd.tensor([tensor.shape[dim]])
    dist.all_reduce(size, group=mesh.get_group())
    return int(size.item())


def gathered(part: Tensor, dim: int, size: int, mesh: DeviceMesh) -> Tensor:
    """Return the whole of parts along a dim, of ``size`` together. Parts of ``chunk`` are filled up to equal sizes."""
    ranks = mesh.size()
    missing = -(-size // ranks) - part.shape[dim]
    if missing:
        filler = part.new_zeros((*part.shape[:dim], missing, *part.shape[dim + 1 :]))
        part = cd.cat([part, filler], dim)
    part = part.contiguous()
    rows = part.new_empty((ranks, *part.shape))
    dist.all_gather_into_tensor(rows, part, mesh.get_group())
    return cd.cat(list(rows.unbind(0)), dim).narrow(dim, 0, size)


def _scattered(tensor: Tensor, dim: int, mesh: DeviceMesh, source: Partial) -> Tensor:
    """Return this rank's part of the sum: a reduce-scatter where sizes are equal."""
    ranks, size = mesh.size(), tensor.shape[dim]
    if size % ranks:
        return _moved(_moved(tensor, mesh, source, Replicate()), mesh, Replicate(), Shard(dim))
    rows = cd.stack(tensor.chunk(ranks, dim))
    out = rows.new_empty(rows.shape[1:])
    dist.reduce_scatter_tensor(out, rows, dist.ReduceOp[source.reduce_op.upper()], mesh.get_group())
    return out
