"""DTensor: the part of a tensor that this rank has, and its place in the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import Tensor
from candelabra.backend import contiguous_strides
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor._movements import moved
from candelabra.distributed.tensor.placement_types import Placement, Replicate, Shard, bounds
from candelabra.library import OVERRIDE, UNGUARDED_METHODS
from candelabra.overrides import DisableTorchFunctionSubclass


class ShardStep(NamedTuple):
    """One step from the whole to a rank's part: a placement along one mesh dim, and the shape before it."""

    mesh: DeviceMesh
    """Of one dim."""
    placement: Placement
    shape: tuple[int, ...]


class DTensor(Tensor):
    """A tensor that ranks have in parts, in replicas, or as terms of a sum. A rank has its part, and the part's place.

    As in PyTorch, ``shape``, ``size()``, ``numel()``, ``stride()`` and ``len()`` are those of the whole, and operations
    compute on the whole and return DTensors; every rank of the mesh makes the same calls. Operations on elements of
    equally divided tensors compute on the parts, without communication. Any other one gathers its DTensors, and each
    rank has the whole result. ``to_local()`` returns the part, ``full_tensor()`` the whole. See
    :mod:`candelabra.distributed.tensor._operations`.

    Create it by :func:`distribute_tensor` or :meth:`from_local`.
    """

    __slots__ = ()
    handles_public_callables = True
    _splits: tuple[ShardStep, ...]
    _copied_by: str | None = None
    """The view operator that has made this tensor of a gathered copy, so that writing to it would have no effect."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Compute the result of an operation; see :mod:`candelabra.distributed.tensor._operations`."""
        from candelabra.distributed.tensor._operations import result_of

        if not all(issubclass(cls, other) for other in types):
            return NotImplemented
        return result_of(func, args, kwargs or {})

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
        with DisableTorchFunctionSubclass():
            return Tensor.view(self, self._payload.shape)

    def full_tensor(self) -> Tensor:
        """Return the whole, on every rank. Each rank of the mesh calls it.

        The ranks compute one loss of it together: the gradient of a part is the part of the gradient.
        """
        with DisableTorchFunctionSubclass():
            found = self.to_local()
            for mesh, placement, shape in reversed(self._splits):
                size = shape[placement.dim] if isinstance(placement, Shard) else None
                found = moved(found, mesh, placement, Replicate(), size).contiguous()
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
    @property
    def data(self) -> Any:
        """The same part without history and with a version counter of its own."""
        with DisableTorchFunctionSubclass():
            return placed(Tensor.data.__get__(self), self._splits)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, local_of(value))  # type: ignore[attr-defined]

    @property
    def grad(self) -> Any:
        """The gradient of the part, with the same place."""
        found = Tensor.grad.__get__(self)
        if type(found) is Tensor:
            _become_part(found, self._splits)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, DTensor) and isinstance(value, Tensor):
            if tuple(value.shape) != tuple(self._payload.shape):
                raise RuntimeError(
                    f"assigned grad has the size {list(value.shape)}, but this rank's part of the DTensor has "
                    f"{list(self._payload.shape)}: assign a DTensor, or the gradient of the part"
                )
            value = placed(value, self._splits)
        Tensor.grad.__set__(self, value)  # type: ignore[attr-defined]

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Copy a DTensor, or this rank's part of a whole tensor."""
        if type(src) is Tensor and src.shape == self.shape:
            src = placed(part_of(src, self._splits), self._splits)
        return self.__torch_function__(Tensor.copy_, (DTensor,), (self, src, non_blocking))

    @property
    def __array_interface__(self) -> Any:
        """Raises ``AttributeError``: NumPy expects it of objects without the interface: then it calls ``__array__``."""
        raise AttributeError("a rank has a part of the memory of a DTensor: use to_local() or full_tensor()")

    def __repr__(self) -> str:
        return f"DTensor(local_tensor={self.to_local()!r}, placements={self.placements})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            made = placed(self.to_local().detach().clone(), self._splits)
            made.requires_grad_(self.requires_grad)
            made._is_param = self._is_param
            memo[id(self)] = made
        return memo[id(self)]


def _whole_method(name: str) -> Callable[..., Any]:
    """Return a method of Tensor that reads the payload, as one that :meth:`DTensor.__torch_function__` serves."""
    function = getattr(Tensor, name)

    def method(self: DTensor, *args: Any, **kwargs: Any) -> Any:
        return self.__torch_function__(function, (DTensor,), (self, *args), kwargs)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


for _name in UNGUARDED_METHODS - vars(DTensor).keys():  # no entry passes their calls to ``__torch_function__``
    setattr(DTensor, _name, _whole_method(_name))


def placed(local: Tensor, splits: tuple[ShardStep, ...]) -> DTensor:
    """Return a part with its place."""
    with DisableTorchFunctionSubclass():
        found: DTensor = local.as_subclass(DTensor)
    found._splits = splits
    return found


def _become_part(tensor: Any, splits: tuple[ShardStep, ...]) -> None:
    """Make a tensor a part, and not a copy of it: autograd goes on to accumulate into it."""
    tensor.__class__ = DTensor
    tensor._keys |= OVERRIDE
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
