"""The memory that an engine reads or writes for a tensor: the tensor's own, mapped for the host, or a copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.autograd.graph import increment_version
from candelabra.backend import Backend, HostMapping
from candelabra.library import open_device, plugins

__all__ = [
    "DeviceBuffer", "EngineBuffer", "StagedBuffer", "bytes_of", "check_list", "check_tensor", "host_device", "maps",
    "of_tensors",
]  # fmt: skip


@cache
def host_device() -> Any:
    """Return the reference device. To find it takes a millisecond, since it reads the metadata of all plugins."""
    return plugins.reference_device()


def check_tensor(value: Any, name: str, call: str) -> None:
    """Raise unless an argument is a tensor with data."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type candelabra.Tensor\n             but got "
            f"{type(value)} instead."
        )
    if hasattr(type(value), "to_local"):  # the type's: a tensor searches the device types for unknown attributes
        raise TypeError(f"{call}: {name} is a DTensor, but collectives move a rank's own tensors: pass its to_local()")
    if not open_device(value.device).backend.capabilities.data:
        raise ValueError(f"{call}: {name} is on device {value.device}, which has no data that an engine could send")


def check_list(values: Any, name: str, call: str, size: int, like: Tensor | None = None) -> None:
    """Raise unless an argument is a list of ``size`` tensors, all of one dtype."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, Tensor) for value in values):
        kinds = [type(value) for value in values] if isinstance(values, (list, tuple)) else []
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[candelabra.Tensor]\n             but "
            f"got {type(values)} with elements of type {kinds}."
        )
    if len(values) != size:
        raise ValueError(f"{call}: {name} must have a tensor for each of the {size} ranks, got {len(values)}")
    for value in values:
        check_tensor(value, name, call)
    tensors = [*values, *([] if like is None else [like])]
    if len({tensor.dtype for tensor in tensors}) > 1:
        dtypes = ", ".join(str(tensor.dtype) for tensor in tensors)
        raise ValueError(f"Invalid usage of tensors with different dtypes: {name} of {call} has {dtypes}")


def _array(tensor: Tensor) -> Any:
    return (tensor.detach() if tensor.requires_grad else tensor).numpy().reshape(-1).view(np.uint8)


def _host_memory(tensor: Tensor, backend: Backend) -> memoryview | None:
    """Return the tensor's own memory as writable bytes, or None if it is elsewhere or not in C order."""
    capabilities = backend.capabilities
    if not (capabilities.host and capabilities.mutable and capabilities.strided and tensor.is_contiguous()):
        return None
    array = _array(tensor)
    return array.data if array.flags.writeable else None


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the memory of a new contiguous tensor of the host as bytes."""
    memory: memoryview = _array(tensor).data
    return memory


class StagedBuffer(ABC):
    """A tensor whose memory an engine reads or writes, or another one in its place, ``staged``, with its elements.

    ``cast``: the dtype of the bytes, by default the tensor's own. ``read``: the memory starts as the tensor's elements.
    ``write``: the engine writes, and :meth:`store` then updates the tensor.
    """

    def __init__(self, tensor: Tensor, own: bool, device: Any, cast: Any, read: bool) -> None:
        """``own``: the tensor's own memory serves. Otherwise ``device`` is where the copy is made."""
        self.tensor = self.staged = tensor
        self._is_own = own
        if not own:
            with cd.no_grad():
                self.staged = cd.empty(tensor.shape, dtype=cast or tensor.dtype, device=device)
                if read:
                    self.staged.copy_(tensor.detach())

    @property
    @abstractmethod
    def memory(self) -> Any:
        """The memory, for the engine. The group's thread asks for it, since it may have to wait for the device."""

    def store(self) -> None:
        """Write the result into the tensor, or count the write that the engine has made."""
        if self._is_own:
            increment_version(self.tensor)
            return
        with cd.no_grad():
            self.tensor.copy_(self.staged)


class EngineBuffer(StagedBuffer):
    """The bytes of the host's memory that an engine reads or writes for a tensor.

    They are the tensor's own on the host, and where its device maps them for the host; a copy elsewhere.
    """

    def __init__(self, tensor: Tensor, cast: Any = None, read: bool = True, write: bool = True) -> None:
        self._mapping: HostMapping | None = None
        backend = open_device(tensor.device).backend
        if _overrides_map_host(backend):
            super().__init__(tensor, cast is None and tensor.is_contiguous(), tensor.device, cast, read)
            self._mapping = _mapped(self.staged, read, write)
            if self._mapping is not None:
                return
        if not tensor.numel():
            own: memoryview | None = memoryview(bytearray())
        else:
            own = None if cast is not None else _host_memory(tensor, backend)
        super().__init__(tensor, own is not None, host_device(), cast, read)
        self._own = bytes_of(self.staged) if own is None else own

    @property
    def memory(self) -> memoryview:
        return self._own if self._mapping is None else self._mapping.wait()

    def store(self) -> None:
        if self._mapping is not None:
            self._mapping.unmap()
        super().store()


class DeviceBuffer(StagedBuffer):
    """The flat tensor that an engine of a device reads or writes for a tensor, without the host."""

    def __init__(self, tensor: Tensor, cast: Any = None, read: bool = True, write: bool = True) -> None:
        super().__init__(tensor, cast is None and tensor.is_contiguous(), tensor.device, cast, read)
        self._flat: Tensor = self.staged.detach().view(-1)

    @property
    def memory(self) -> Tensor:
        return self._flat


def maps(device: Any) -> bool:
    """Return whether a device may map the content of its tensors for the host."""
    return _overrides_map_host(open_device(device).backend)


def _overrides_map_host(backend: Backend) -> bool:
    return type(backend).map_host is not Backend.map_host


def _mapped(tensor: Tensor, read: bool, write: bool) -> HostMapping | None:
    """Map a contiguous tensor for the host, if its device can."""
    instance = open_device(tensor.device)
    found: HostMapping | None = instance.backend.map_host(tensor._fresh()._payload, instance.index, read, write)
    return found


def of_tensors(tensors: Sequence[Tensor], cast: Any, read: bool, device: Any) -> Tensor:
    """Return a new flat tensor of a device with the elements of several tensors, one after another."""
    dtype = tensors[0].dtype if cast is None else cast
    with cd.no_grad():
        if not read:
            return cd.empty(sum(tensor.numel() for tensor in tensors), dtype=dtype, device=device)
        return cd.cat([tensor.detach().reshape(-1).to(device, dtype) for tensor in tensors])
