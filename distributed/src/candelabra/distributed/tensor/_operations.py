"""Operations with DTensors: on the parts where each element of the result needs its own only, on the whole elsewhere.

:func:`result_of` is what ``DTensor.__torch_function__`` does. It gets public functions, so a composite runs once, on
plain tensors of one kind, and never sees a part with the sizes of the whole:

1. Replicas only: the operation runs on them as they are, and views are views.
2. An operation that is declared elementwise, with equally divided DTensors and numbers: it runs on the parts.
3. Otherwise all DTensors are gathered, and each rank computes the whole result. What the operation has written into a
   gathered copy (its first argument, ``out=``, running statistics) is written back into the part.

Draws of random numbers have the first rank's seed and offset, so that the replicas stay equal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple

from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor._dtensor import DTensor, ShardStep, part_of, placed
from candelabra.distributed.tensor.placement_types import Replicate
from candelabra.library import (
    OPERATORS,
    Layer,
    Operator,
    OverloadSet,
    PublicCallable,
    callable_of,
    entry_named,
    member_for,
)
from candelabra.overrides import DisableTorchFunctionSubclass


class _Thread(threading.local):
    """Whether plain tensors count as replicas, and the meshes whose first rank draws random numbers."""

    replicates = False
    meshes: tuple[DeviceMesh, ...] = ()


_thread: Final = _Thread()


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside the block, plain tensors in operations with DTensors count as replicas: all ranks must have equal ones."""
    before, _thread.replicates = _thread.replicates, True
    try:
        yield
    finally:
        _thread.replicates = before


def result_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a public function with DTensors among its arguments.

    Raises:
        RuntimeError: plain tensors that are not 0-d, unless :func:`implicit_replication` is active; a write to a copy
            of a DTensor, to terms of a sum, or one that changes a shape; an operation on memory.
        NotImplementedError: memory that a DTensor has only a part of.
    """
    name = function.__name__
    tensors = [*_tensors(args), *_tensors(tuple(kwargs.values()))]
    dtensors = [tensor for tensor in tensors if isinstance(tensor, DTensor)]
    mixed = any(tensor.dim() for tensor in tensors if not isinstance(tensor, DTensor))
    if mixed and not _thread.replicates:
        raise RuntimeError(
            f"{name}: got mixed candelabra.Tensor and DTensor, need to convert all Tensors to DTensor before calling "
            "distributed operators! Use distribute_tensor() or DTensor.from_local(), or compute on to_local()"
        )
    record = _record_of(function, args, kwargs)
    uses = "elements" if record is None else record.uses
    if uses == "memory":
        raise NotImplementedError(
            f"{name}(): a rank has a part of the memory of a DTensor: call it on to_local() or on full_tensor()"
        )
    with DisableTorchFunctionSubclass():
        if uses == "object":
            return function(*args, **kwargs)
        if uses == "dtype" or not any(_is_divided(part) for part in dtensors):
            return _of_parts(function, dtensors, args, kwargs, divided=False)
        if record is not None and record.elementwise and not mixed and _have_same_placement(dtensors):
            return _of_parts(function, dtensors, args, kwargs, divided=True)
        return _of_wholes(function, dtensors, args, kwargs)


def _is_divided(tensor: DTensor) -> bool:
    return not all(isinstance(split.placement, Replicate) for split in tensor._splits)


def _have_same_placement(dtensors: list[DTensor]) -> bool:
    """Return whether the elements at one position of all tensors are on one rank. Single replicated ones may differ."""
    places = {
        tuple([(split.mesh.get_group().group_name, split.placement, split.shape) for split in part._splits])
        for part in dtensors if part._payload.shape or _is_divided(part)
    }  # fmt: skip
    return len(places) == 1 and not any(split.placement.is_partial() for part in dtensors for split in part._splits)


def _record_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Operator[..., Any] | PublicCallable | None:
    """Return the record or the public callable that serves a call; None for a method of the class."""
    entry = _entry_of(function)
    if isinstance(entry, OverloadSet):
        entry = member_for(entry, args, kwargs)
    return entry if isinstance(entry, (Operator, PublicCallable)) else None


@cache
def _entry_of(function: Callable[..., Any]) -> Any:
    """Return the entry that a function is a form of; None for a method of the class."""
    name = function.__name__.removesuffix("_")
    entry = callable_of(function) or entry_named(f"{function.__module__}.{name}".removeprefix("candelabra."))
    if isinstance(entry, OverloadSet):
        forms = [entry.form("function"), *([entry.form("inplace")] if entry.inplace else [])]
        return entry if function in forms else OPERATORS.get(name)  # a record has a form of its own
    return entry or OPERATORS.get(function.__name__) or OPERATORS.get(name)


# -- on the parts -----------------------------------------------------------------------------------------------------
def _of_parts(function: Callable[..., Any], dtensors: list[DTensor], args: Any, kwargs: Any, *, divided: bool) -> Any:
    """Return the result on the parts, which has the place of the divided tensors, or replicas of another shape."""
    locals_ = {id(part): part.to_local() for part in dtensors}
    uses = [Use(part, locals_[id(part)], locals_[id(part)]._version) for part in dtensors]
    like = next((part for part in dtensors if _is_divided(part)), dtensors[0])
    with _draws(like):
        result = function(*_mapped(args, locals_), **_mapped(kwargs, locals_))
    for use in uses:
        use.check(function)
    own = {id(use.plain): use.tensor for use in uses}
    return _placed(result, own, lambda out: placed(out, like._splits if divided else _replicas(like, out)))


def _replicas(like: DTensor, tensor: Tensor) -> tuple[ShardStep, ...]:
    """Return the place of a tensor that every rank of a DTensor's mesh has."""
    return tuple([ShardStep(split.mesh, Replicate(), tuple(tensor.shape)) for split in like._splits])


# -- on the whole -----------------------------------------------------------------------------------------------------
class Use(NamedTuple):
    """A DTensor in a call, the plain tensor in its place, and the version of that before."""

    tensor: DTensor
    plain: Tensor
    version: int

    @property
    def is_written(self) -> bool:
        """Whether the call has written into the plain tensor."""
        return self.plain._version != self.version

    def check(self, function: Callable[..., Any], whole: bool = False) -> None:
        """Raise if the call has written what a DTensor cannot keep."""
        name = function.__name__
        shape = self.tensor.shape if whole else self.tensor._payload.shape
        if tuple(self.plain.shape) != tuple(shape):
            raise RuntimeError(
                f"{name}: the operation changes the shape of a DTensor in place, from {list(shape)} to "
                f"{list(self.plain.shape)}: use the form that returns a new tensor"
            )
        if self.is_written and self.tensor._copied_by is not None:
            raise RuntimeError(
                f"{name}: this DTensor is a copy that {self.tensor._copied_by}() of a divided DTensor has made, so "
                "writing to it does not change that one. Write to the DTensor itself or to its to_local(), or to a "
                "clone() if the copy is wanted"
            )
        if self.is_written and any(split.placement.is_partial() for split in self.tensor._splits):
            raise RuntimeError(f"{name}: cannot write into terms of a sum: redistribute() the DTensor first")

    def store(self) -> None:
        """Write what the call has written into a gathered copy into the part."""
        if self.is_written:
            self.tensor.to_local().copy_(part_of(self.plain, self.tensor._splits))


def _of_wholes(function: Callable[..., Any], dtensors: list[DTensor], args: Any, kwargs: Any) -> Any:
    """Return the result on the whole tensors, as replicas. What has been written is divided again."""
    wholes = {}
    for part in dtensors:
        if id(part) not in wholes:
            wholes[id(part)] = part.full_tensor() if _is_divided(part) else part.to_local()
    uses = [Use(part, wholes[id(part)], wholes[id(part)]._version) for part in dtensors]
    with _draws(dtensors[0]):
        result = function(*_mapped(args, wholes), **_mapped(kwargs, wholes))
    for use in uses:
        use.check(function, whole=True)
    copies = {id(_base(use.plain)) for use in uses if _is_divided(use.tensor)}
    for use in uses:
        if _is_divided(use.tensor):
            use.store()

    def replicated(out: Tensor) -> DTensor:
        found = placed(out, _replicas(dtensors[0], out))
        if id(_base(out)) in copies:
            found._copied_by = function.__name__
        return found

    return _placed(result, {id(use.plain): use.tensor for use in uses}, replicated)


def _base(tensor: Tensor) -> Tensor:
    """Return the tensor that a view is of, or the tensor itself."""
    return tensor._base if tensor._is_view() else tensor


# -- random numbers ---------------------------------------------------------------------------------------------------
class _DrawsOfFirstRank(Layer):
    """The layer in which random operators take the seed and the offset of the mesh's first rank."""

    def handler_for(self, op: Operator[..., Any], inplace: bool) -> Any:
        """Return the handler for an operator that draws; others skip the layer."""
        return self.handler if op.random else None


def _draw(op: Operator[..., Any], next: Callable[..., Any], *args: Any) -> Any:
    places = [index for index, p in enumerate(op.schema.parameters) if p.name in ("seed", "offset")]
    values = [args[place] for place in places]
    for mesh in _thread.meshes:
        dist.broadcast_object_list(values, group=mesh.get_group(), group_src=0)
    changed = list(args)
    for place, value in zip(places, values, strict=True):
        changed[place] = value
    return next(*changed)


_layer: Final = _DrawsOfFirstRank("draws of DTensors", _draw)


@contextmanager
def _draws(like: DTensor) -> Iterator[None]:
    before, _thread.meshes = _thread.meshes, tuple([split.mesh for split in like._splits])
    try:
        with _layer:
            yield
    finally:
        _thread.meshes = before


# -- arguments and results --------------------------------------------------------------------------------------------
def _tensors(values: Any) -> Iterator[Tensor]:
    """Yield the tensors in arguments, also those in sequences."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _mapped(value: Any, plain: dict[int, Tensor]) -> Any:
    """Return arguments with plain tensors in place of DTensors."""
    if isinstance(value, DTensor):
        return plain[id(value)]
    if isinstance(value, dict):
        return {name: _mapped(item, plain) for name, item in value.items()}
    return _rebuilt(value, lambda item: _mapped(item, plain))


def _placed(value: Any, own: dict[int, DTensor], make: Callable[[Tensor], DTensor]) -> Any:
    """Return results with DTensors in place of plain tensors; an argument that is returned stays itself."""
    if isinstance(value, Tensor):
        return own[id(value)] if id(value) in own else make(value)
    return _rebuilt(value, lambda item: _placed(item, own, make))


def _rebuilt(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a sequence with ``function`` applied to its items, or another value as it is."""
    if type(value) not in (tuple, list) and not (isinstance(value, tuple) and hasattr(value, "_fields")):
        return value
    items = [function(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def __dir__() -> list[str]:
    return ["implicit_replication", "result_of"]
