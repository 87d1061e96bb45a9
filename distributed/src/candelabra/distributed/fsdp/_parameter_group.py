"""The parameters of one sharded module: gathered by one collective, and their gradients scattered by one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.autograd.function import Function
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.fsdp._policies import MixedPrecisionPolicy
from candelabra.distributed.tensor import DTensor, Replicate, Shard
from candelabra.distributed.tensor._dtensor import ShardStep, local_of, parameter, part_of, splits_of
from candelabra.library import after_backward


class Owner(NamedTuple):
    """A name under which a module has a parameter."""

    module: Any
    name: str


class Sharded:
    """One parameter: its shard, and the modules that have it. The whole may be a part of a larger one (a DTensor)."""

    def __init__(self, whole: Tensor, owners: list[Owner], shard: ShardStep, replicate: ShardStep | None) -> None:
        self.owners = owners
        own = local_of(whole.detach())
        self.shape = tuple(own.shape)
        self.rows = -(-self.shape[0] // shard.mesh.size()) if self.shape else 1
        """The rows of a shard that is filled up to the size of the largest."""
        self.count = self.rows * prod(self.shape[1:])
        outer = () if replicate is None else (replicate,)
        splits = (*splits_of(whole), *outer, shard)
        local = part_of(own, (shard,)).contiguous().clone()
        self.parameter: DTensor = parameter(local, splits, whole.requires_grad)

    def put(self, tensor: Tensor) -> None:
        """Let the modules have a tensor under the names of its owners."""
        for module, name in self.owners:
            module._parameters[name] = tensor

    def filled(self, part: Tensor) -> Tensor:
        """Return a shard as a vector of ``count`` elements."""
        flat = part.reshape(-1)
        missing = self.count - flat.shape[0]
        return flat if not missing else cd.cat([flat, flat.new_zeros(missing)])

    def rows_of(self, gradient: Tensor, ranks: int) -> Tensor:
        """Return a whole gradient as a row of ``count`` elements for each rank."""
        flat = gradient.reshape(-1)
        missing = ranks * self.count - flat.shape[0]
        flat = flat if not missing else cd.cat([flat, flat.new_zeros(missing)])
        return flat.view(ranks, self.count)

    def whole(self, rows: Tensor) -> Tensor:
        """Return the whole tensor from the filled shards of all ranks."""
        return rows.reshape(-1)[: prod(self.shape)].view(self.shape)


class ParameterGroup:
    """The parameters that one module gathers and frees together, all of one dtype and device."""

    def __init__(
        self, owned: Sequence[tuple[Tensor, list[Owner]]], mesh: DeviceMesh, policy: MixedPrecisionPolicy
    ) -> None:
        shards, replicas = (mesh, None) if mesh.ndim == 1 else (mesh.line(1), mesh.line(0))
        self.policy = policy
        self.group = shards.get_group()
        self.ranks = shards.size()
        self.replicas = None if replicas is None else replicas.get_group()
        self.members = [
            Sharded(
                whole,
                owners,
                ShardStep(shards, Shard(0), shape),
                None if replicas is None else ShardStep(replicas, Replicate(), shape),
            )
            for whole, owners, shape in ((*each, tuple(local_of(each[0]).shape)) for each in owned)
        ]
        self.shards = [member.parameter for member in self.members]
        self.dtype = self.shards[0].dtype if policy.param_dtype is None else policy.param_dtype
        self.full: list[Tensor] | None = None
        """The whole parameters, without history, while they are gathered."""
        self.reduces = True
        """Whether a backward pass scatters the gradients, or keeps them for a later one."""
        self.kept: list[Tensor] | None = None
        self._work: Any = None
        self._rows: Tensor | None = None
        self.reshard()

    # -- parameters ---------------------------------------------------------------------------------------------------
    def prefetch(self) -> None:
        """Begin to gather the parameters, unless that has happened."""
        if self.full is not None or self._work is not None:
            return
        with cd.no_grad():
            own = cd.cat([m.filled(m.parameter.to_local().to(self.dtype)) for m in self.members])
            self._rows = own.new_empty((self.ranks, own.shape[0]))
            self._work = dist.all_gather_into_tensor(self._rows, own, self.group, async_op=True)

    def gather(self) -> list[Tensor]:
        """Return the whole parameters, without history."""
        if self.full is None:
            self.prefetch()
            self._work.wait()
            assert self._rows is not None
            parts = self._rows.split([m.count for m in self.members], 1)
            self.full = [m.whole(part) for m, part in zip(self.members, parts, strict=True)]
            self._work = self._rows = None
        return self.full

    def unshard(self) -> None:
        """Let the modules have the whole parameters, through which gradients flow to the shards."""
        whole = Unshard.apply(self, *[m.parameter for m in self.members])
        for member, tensor in zip(self.members, whole, strict=True):
            member.put(tensor)

    def reshard(self) -> None:
        """Let the modules have the shards, and free the whole parameters."""
        for member in self.members:
            member.put(member.parameter)
        self.free()

    def free(self) -> None:
        """Free the whole parameters."""
        if self._work is not None:
            self._work.wait()
        self.full = self._work = self._rows = None

    # -- gradients ----------------------------------------------------------------------------------------------------
    def scatter(self, gradients: Sequence[Tensor]) -> Scatter | None:
        """Begin to average the gradients of all ranks, in shards; None if they are kept for later."""
        grads = list(gradients)
        if self.kept is not None:
            grads = [g + k for g, k in zip(grads, self.kept, strict=True)]
            self.kept = None
        if not self.reduces:
            self.kept = grads
            return None
        dtype = self.policy.reduce_dtype or self.dtype
        rows = cd.cat([m.rows_of(g.to(dtype), self.ranks) for m, g in zip(self.members, grads, strict=True)], 1)
        return Scatter(self, rows)

    def hooked(self) -> bool:
        """Return whether a hook expects the gradient of a shard while the backward pass goes on."""
        return any(getattr(shard._node, "hooks", None) is not None for shard in self.shards)


class Scatter:
    """A reduce-scatter of gradients under way. At most one of a process group is: two would take twice the memory."""

    _last: Final[WeakKeyDictionary[Any, Any]] = WeakKeyDictionary()

    def __init__(self, group: ParameterGroup, rows: Tensor) -> None:
        before = self._last.get(group.group)
        if before is not None:
            before.wait()
        self._group = group
        self._own = rows.new_empty(rows.shape[1])
        self._work: Any = dist.reduce_scatter_tensor(self._own, rows, dist.ReduceOp.AVG, group.group, async_op=True)
        self._last[group.group] = self._work

    def finish(self) -> list[Tensor]:
        """Return this rank's shards of the averages."""
        self._work.wait()
        if self._group.replicas is not None:
            dist.all_reduce(self._own, dist.ReduceOp.AVG, self._group.replicas)
        parts = self._own.split([member.count for member in self._group.members])
        shards = [shard.to_local() for shard in self._group.shards]
        return [part[: p.numel()].view(p.shape).to(p.dtype) for part, p in zip(parts, shards, strict=True)]

    def store(self) -> None:
        """Add the averages to the gradients of the shards."""
        with cd.no_grad():
            for shard, part in zip(self._group.shards, self.finish(), strict=True):
                if not shard.requires_grad:
                    continue
                if shard.grad is None:
                    shard.grad = part
                else:
                    shard.grad.to_local().add_(part)


class Unshard(Function):
    """The whole parameters from the shards; backward averages the gradients and scatters them while other nodes run.

    Its node runs after all nodes that use the parameters, so it also frees them.
    """

    @staticmethod
    def forward(ctx: Any, group: ParameterGroup, *shards: Tensor) -> Any:
        ctx.group = group
        return tuple(tensor.view(tensor.shape) for tensor in group.gather())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        group: ParameterGroup = ctx.group
        with cd.no_grad():
            scatter = group.scatter(gradients)
            group.reshard()
            if scatter is None or (not group.hooked() and after_backward(scatter.store)):
                return (None,) * (1 + len(gradients))
            return None, *scatter.finish()
