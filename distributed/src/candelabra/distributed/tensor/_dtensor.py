"""DTensor: the part of a tensor that this rank has, and its place in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import Tensor
from candelabra.backend import contiguous_strides
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, bounds
from candelabra.library import disabled_torch_function
from candelabra_distributed.collectives import c10d_all_gather, c10d_all_reduce


class ShardStep(NamedTuple):
    """One step from the whole to a rank's part: a placement along one mesh dim, and the shape before it."""

    mesh: DeviceMesh
    """Of one dim."""
    placement: Placement
    shape: tuple[int, ...]


class DTensor(Tensor):
    """A rank's part of a tensor, which knows its place in the whole.

    ``shape``, ``size()``, ``numel()``, ``stride()`` and ``len()`` are those of the whole, as in PyTorch. Operations
    compute on the part and return plain tensors, so that optimizers update parts as they update tensors; PyTorch's
    compute on the whole and return DTensors. ``to_local()`` returns the part, ``full_tensor()`` the whole.

    Create it by :func:`distribute_tensor` or :meth:`from_local`.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    _splits: tuple[ShardStep, ...]

    # -- the whole ----------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Any:
        """The shape of the whole."""
        return cd.Size(self._splits[0].shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the whole, or the size of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Return the number of elements of the whole."""
        return prod(self.shape)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides of the whole in C order, or that of one dim."""
        strides = contiguous_strides(self.shape)
        return strides if dim is None else strides[dim]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the first placement."""
        return self._splits[0].mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placements, in the order in which the whole has been divided."""
        return tuple(split.placement for split in self._splits)

    def to_local(self) -> Tensor:
        """Return the part as a plain tensor over the same memory. Gradients flow through it."""
        return Tensor.view(self, self._payload.shape)

    def view(self, *shape: Any) -> Any:  # type: ignore[override]
        """Return a view of the part."""
        return self.to_local().view(*shape)

    def reshape(self, *shape: Any) -> Any:  # type: ignore[override]
        """Return the part in another shape."""
        return self.to_local().reshape(*shape)

    def full_tensor(self) -> Tensor:
        """Return the whole, on every rank. Each rank of the mesh calls it."""
        found = self.to_local()
        for split in reversed(self._splits):
            found = _whole(found, split)
        return found

    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None) -> Any:
        """Return the same tensor with other placements. Each rank of the mesh calls it."""
        return distribute_tensor(
            self.full_tensor(), self.device_mesh if device_mesh is None else device_mesh, placements, src_data_rank=None
        )

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
    ) -> DTensor:
        """Return a DTensor of the parts that the ranks have. All parts have one shape."""
        chosen = _checked(device_mesh, placements, local_tensor.dim())
        shape = list(local_tensor.shape)
        splits: list[ShardStep] = []
        for mesh, placement in reversed(list(zip(_lines_of(device_mesh), chosen, strict=True))):
            if isinstance(placement, Shard):
                shape[placement.dim] *= mesh.size()
            splits.insert(0, ShardStep(mesh, placement, tuple(shape)))
        return placed(local_tensor, tuple(splits))

    # -- tensors that keep their place --------------------------------------------------------------------------------
    def detach(self) -> Any:
        """Return the part without history, with its place."""
        return placed(Tensor.detach(self), self._splits)

    @property
    def data(self) -> Any:
        """The part without history and with a version counter of its own."""
        return placed(Tensor.detach(self), self._splits)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]

    @property
    def grad(self) -> Any:
        """The gradient of the part, with the same place."""
        found = Tensor.grad.__get__(self)
        if type(found) is Tensor:
            _become_part(found, self._splits)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if type(value) is Tensor and value.shape == self._payload.shape:
            value = placed(value, self._splits)
        Tensor.grad.__set__(self, value)  # type: ignore[attr-defined]

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Copy a DTensor with the same place, or this rank's part of a whole tensor."""
        if type(src) is Tensor and src.shape == self.shape:
            src = part_of(src, self._splits)
        return Tensor.copy_(self, src, non_blocking)

    def __repr__(self) -> str:
        return f"DTensor(local_tensor={self.to_local()!r}, placements={self.placements})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = placed(Tensor.detach(self).clone(), self._splits)
            made.requires_grad_(self.requires_grad)
            made._is_param = self._is_param
            memo[id(self)] = made
        return memo[id(self)]


def placed(local: Tensor, splits: tuple[ShardStep, ...]) -> DTensor:
    """Return a part with its place."""
    found: DTensor = local.as_subclass(DTensor)
    found._splits = splits
    return found


def _become_part(tensor: Any, splits: tuple[ShardStep, ...]) -> None:
    """Make a tensor a part, and not a copy of it: autograd goes on to accumulate into it."""
    tensor.__class__ = DTensor
    tensor._splits = splits


def parameter(local: Tensor, splits: tuple[ShardStep, ...], requires_grad: bool = True) -> DTensor:
    """Return a part that is a parameter of a module."""
    found = placed(local.detach(), splits)
    found.requires_grad_(requires_grad)
    found._is_param = True
    return found


def splits_of(tensor: Tensor) -> tuple[ShardStep, ...]:
    """Return the place of a DTensor; () for a plain tensor."""
    return tensor._splits if isinstance(tensor, DTensor) else ()


def local_of(tensor: Tensor) -> Tensor:
    """Return the part of a DTensor, and a plain tensor as it is."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def part_of(whole: Tensor, splits: Sequence[ShardStep]) -> Tensor:
    """Return this rank's part, a view of the whole."""
    for split in splits:
        if isinstance(split.placement, Shard):
            low, high = bounds(whole.shape[split.placement.dim], split.mesh.size(), split.mesh.get_local_rank())
            whole = whole.narrow(split.placement.dim, low, high - low)
    return whole


def box_of(splits: Sequence[ShardStep]) -> tuple[list[int], list[int]]:
    """Return the offsets and the sizes of this rank's part in the whole."""
    sizes = list(splits[0].shape)
    offsets = [0] * len(sizes)
    for split in splits:
        if isinstance(split.placement, Shard):
            dim = split.placement.dim
            low, high = bounds(sizes[dim], split.mesh.size(), split.mesh.get_local_rank())
            offsets[dim] += low
            sizes[dim] = high - low
    return offsets, sizes


def _whole(part: Tensor, split: ShardStep) -> Tensor:
    """Undo one split. Gradients flow through it."""
    group = split.mesh.get_group().group_name
    if isinstance(split.placement, Partial):
        return c10d_all_reduce(part, split.placement.reduce_op, group)
    if isinstance(split.placement, Replicate):
        return part
    dim = split.placement.dim  # type: ignore[attr-defined]
    return gathered(part, dim, split.shape[dim], split.mesh)


def gathered(part: Tensor, dim: int, size: int, mesh: DeviceMesh) -> Tensor:
    """Return the whole of parts along a dim, of ``size`` together. Parts of ``chunk`` are filled up to equal sizes."""
    ranks = mesh.size()
    width = -(-size // ranks)
    missing = width - part.shape[dim]
    if missing:
        filler = part.new_zeros((*part.shape[:dim], missing, *part.shape[dim + 1 :]))
        part = cd.cat([part, filler], dim)
    rows = c10d_all_gather(part, ranks, mesh.get_group().group_name)
    return cd.cat(list(rows.unbind(0)), dim).narrow(dim, 0, size)


def _lines_of(mesh: DeviceMesh) -> list[DeviceMesh]:
    """Return the mesh of one dim along each dim that contains this rank."""
    return [mesh] if mesh.ndim == 1 else [mesh.line(dim) for dim in range(mesh.ndim)]


def _checked(mesh: DeviceMesh, placements: Sequence[Placement] | None, rank: int) -> list[Placement]:
    chosen: list[Placement] = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(chosen) != mesh.ndim:
        raise ValueError(f"`placements` must have the same length as `device_mesh.ndim`! {len(chosen)} != {mesh.ndim}")
    for number, placement in enumerate(chosen):
        if not isinstance(placement, Placement):
            raise TypeError(f"a placement is Shard(dim), Replicate() or Partial(), got {placement!r}")
        if isinstance(placement, Shard):
            if not -rank <= placement.dim < rank:
                raise ValueError(f"{placement} of a tensor of {rank} dims")
            chosen[number] = Shard(placement.dim % rank)
    return chosen


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return this rank's part of a tensor, in memory of its own.

    Args:
        tensor: the whole, on each rank of the mesh.
        device_mesh: the ranks.
        placements: one for each dim of the mesh, by default replicas.
        src_data_rank: the rank along each mesh dim whose tensor is divided; None: each rank divides its own.

    Raises:
        ValueError: not one placement per mesh dim, a dim that the tensor does not have, or a partial sum.
    """
    chosen = _checked(device_mesh, placements, tensor.dim())
    if any(placement.is_partial() for placement in chosen):
        raise ValueError("distribute_tensor: a whole tensor cannot be divided into terms of a sum")
    whole = tensor.detach()
    splits: list[ShardStep] = []
    for mesh, placement in zip(_lines_of(device_mesh), chosen, strict=True):
        if src_data_rank is not None and mesh.size() > 1:
            whole = whole.contiguous().clone()
            cd.distributed.broadcast(whole, group=mesh.get_group(), group_src=src_data_rank)
        splits.append(ShardStep(mesh, placement, tuple(whole.shape)))
        whole = part_of(whole, splits[-1:])
    found = placed(whole.contiguous().clone(), tuple(splits))
    found.requires_grad_(tensor.requires_grad)
    return found


def total_norm(tensors: Sequence[DTensor], order: float) -> Tensor:
    """Return the norm of the whole tensors as one vector: one collective for each place that occurs."""
    groups: dict[Any, list[DTensor]] = {}
    for tensor in tensors:
        sharded = [split.mesh.get_group() for split in tensor._splits if split.placement.is_shard()]
        groups.setdefault(tuple(group.group_name for group in sharded), []).append(tensor)
    norms = []
    for members in groups.values():
        own = cd.stack([cd.linalg.vector_norm(member.to_local(), order) for member in members])
        total = cd.linalg.vector_norm(own, order)
        for split in members[0]._splits:
            if split.placement.is_shard():
                rows = cd.empty(split.mesh.size(), dtype=total.dtype, device=total.device)
                cd.distributed.all_gather_into_tensor(rows, total.reshape(1), split.mesh.get_group())
                total = cd.linalg.vector_norm(rows, order)
        norms.append(total)
    found: Tensor = cd.linalg.vector_norm(cd.stack(norms), order)
    return found
