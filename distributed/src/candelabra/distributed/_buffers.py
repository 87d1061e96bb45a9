"""Host memory of tensors: their own where the device is the host's, a copy elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.autograd.graph import increment_version
from candelabra.library import open_device, plugins

__all__ = ["EngineBuffer", "DeviceBuffer", "bytes_of", "check_list", "check_tensor", "host_device", "of_tensors"]

_HOSTED: Final[dict[str, bool]] = {}


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
    if hasattr(value, "to_local"):
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
    return tensor.detach().numpy().reshape(-1).view(np.uint8)


def _host_memory(tensor: Tensor) -> memoryview | None:
    """Return the tensor's own memory as writable bytes, or None if it is elsewhere or not in C order."""
    capabilities = open_device(tensor.device).backend.capabilities
    if not (capabilities.host and capabilities.mutable and capabilities.strided and tensor.is_contiguous()):
        return None
    array = _array(tensor)
    return array.data if array.flags.writeable else None


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the memory of a new contiguous tensor of the host as bytes."""
    memory: memoryview = _array(tensor).data
    return memory


class StagedBuffer:
    """A tensor whose memory an engine reads or writes, or a copy in its place, which is ``_staged``."""

    _tensor: Tensor
    _staged: Tensor | None

    def store(self) -> None:
        """Write the result into the tensor, or count the write that the engine has made."""
        if self._staged is None:
            increment_version(self._tensor)
            return
        with cd.no_grad():
            self._tensor.copy_(self._staged)


class EngineBuffer(StagedBuffer):
    """The bytes that an engine reads or writes for a tensor.

    ``cast``: the dtype of the bytes, by default the tensor's own. ``read``: the bytes start as the tensor's elements.
    After the engine has written, :meth:`store` updates the tensor.
    """

    def __init__(self, tensor: Tensor, cast: Any = None, read: bool = True) -> None:
        self._tensor = tensor
        own = None if cast is not None else _host_memory(tensor)
        self._staged = None
        if own is None:
            with cd.no_grad():
                host = host_device()
                dtype = tensor.dtype if cast is None else cast
                staged = cd.empty(tensor.shape, dtype=dtype, device=host)
                if read:
                    staged.copy_(tensor.detach())
                self._staged = staged
            own = bytes_of(staged)
        self.memory: memoryview = own


class DeviceBuffer(StagedBuffer):
    """The flat tensor that an engine of a device reads or writes for a tensor, without the host."""

    def __init__(self, tensor: Tensor, cast: Any = None, read: bool = True) -> None:
        self._tensor = tensor
        own = cast is None and tensor.is_contiguous()
        with cd.no_grad():
            staged = (
                tensor.detach() if own else cd.empty(tensor.shape, dtype=cast or tensor.dtype, device=tensor.device)
            )
            if read and not own:
                staged.copy_(tensor.detach())
            self.memory: Tensor = staged.view(-1)
        self._staged = None if own else staged


def of_tensors(tensors: Sequence[Tensor], cast: Any = None, read: bool = True, device: Any = None) -> Tensor:
    """Return a new flat tensor, of the host or of a device, with the elements of several ones, one after another."""
    place = host_device() if device is None else device
    dtype = tensors[0].dtype if cast is None else cast
    with cd.no_grad():
        if not read:
            return cd.empty(sum(tensor.numel() for tensor in tensors), dtype=dtype, device=place)
        return cd.cat([tensor.detach().reshape(-1).to(place, dtype) for tensor in tensors])
