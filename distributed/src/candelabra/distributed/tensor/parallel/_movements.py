"""Inputs and outputs of parallel layers: from one placement to another, with gradients.

Ranks of tensor parallelism compute one loss together, so a gradient of a replicated tensor is the same on every rank,
and the derivative of the loss, not of a sum of the ranks' losses. Backward of "gather" therefore takes this rank's part
of the gradient, and backward of "sum" passes the gradient on, unlike those of ``candelabra.distributed.nn``.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.autograd.function import Function
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor._dtensor import gathered
from candelabra.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, bounds


def moved(tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement) -> Tensor:
    """Return a tensor of one placement in another one."""
    source, target = (_counted_from_front(each, tensor.dim()) for each in (source, target))
    if source == target:
        return tensor
    found: Tensor = Move.apply(tensor, mesh, source, target)
    return found


def _counted_from_front(placement: Placement, rank: int) -> Placement:
    return Shard(placement.dim % rank) if isinstance(placement, Shard) else placement


class Move(Function):
    """From one placement to another; backward goes back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement) -> Tensor:
        ctx.mesh, ctx.source, ctx.target = mesh, source, target
        return _moved(tensor, mesh, source, target)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        # The gradient of a sum is that of each of its terms.
        back = Replicate() if isinstance(ctx.source, Partial) else ctx.source
        return moved(g, ctx.mesh, ctx.target, back), None, None, None


class Enter(Function):
    """A replicated tensor enters a layer in which each rank has a part of the weights: backward adds up."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, mesh: DeviceMesh) -> Tensor:
        ctx.mesh = mesh
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return moved(g, ctx.mesh, Partial(), Replicate()), None


def _moved(tensor: Tensor, mesh: DeviceMesh, source: Placement, target: Placement) -> Tensor:
    group = mesh.get_group()
    if isinstance(source, Replicate) and isinstance(target, Shard):
        low, high = bounds(tensor.shape[target.dim], mesh.size(), mesh.get_local_rank())
        return tensor.narrow(target.dim, low, high - low).clone()
    if isinstance(source, Shard) and isinstance(target, Replicate):
        return gathered(tensor, source.dim, _whole_size(tensor, source.dim, mesh), mesh)
    if isinstance(source, Partial) and isinstance(target, Replicate):
        total = tensor.contiguous().clone()
        dist.all_reduce(total, group=group)
        return total
    if isinstance(source, Partial) and isinstance(target, Shard):
        return _scattered(tensor, target.dim, mesh)
    if isinstance(source, Shard) and isinstance(target, Shard):
        return _moved(_moved(tensor, mesh, source, Replicate()), mesh, Replicate(), target)
    raise NotImplementedError(f"tensor parallelism does not move tensors from {source} to {target}")


def _whole_size(tensor: Tensor, dim: int, mesh: DeviceMesh) -> int:
    size = cd.tensor([tensor.shape[dim]])
    dist.all_reduce(size, group=mesh.get_group())
    return int(size.item())


def _scattered(tensor: Tensor, dim: int, mesh: DeviceMesh) -> Tensor:
    """Return this rank's part of the sum: a reduce-scatter where sizes are equal."""
    ranks, size = mesh.size(), tensor.shape[dim]
    if size % ranks:
        return _moved(_moved(tensor, mesh, Partial(), Replicate()), mesh, Replicate(), Shard(dim))
    rows = cd.stack(tensor.chunk(ranks, dim))
    out = rows.new_empty(rows.shape[1:])
    dist.reduce_scatter_tensor(out, rows, group=mesh.get_group())
    return out
