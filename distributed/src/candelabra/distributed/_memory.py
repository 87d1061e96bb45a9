"""Where an engine takes the memory of a call: from the host, or from a device as it is, in the order of streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.distributed._buffers import (
    DeviceBuffer,
    EngineBuffer,
    StagedBuffer,
    host_device,
    maps,
    of_tensors,
)
from candelabra.distributed.engine import divide
from candelabra.library import open_device

if TYPE_CHECKING:
    from candelabra.distributed._process_group import ProcessGroup

Memory = Any
"""A memoryview of the host's memory, or a flat tensor of a device."""


class StagedMemory:
    """The host's memory, into which devices map their tensors, or to and from which they are copied."""

    device: Any = None
    halves = False
    """Whether the engine reduces float16 and bfloat16 itself."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group

    def communicator(self) -> Any:
        """Return the group's communicator for this memory. Called on the group's thread."""
        return self.group.communicator

    def buffer(self, tensor: Tensor, cast: Any = None, read: bool = True, write: bool = True) -> StagedBuffer:
        """Return the memory that an engine reads or writes for a tensor, see :class:`StagedBuffer`."""
        return EngineBuffer(tensor, cast, read, write)

    def flat(self, tensors: Sequence[Tensor], cast: Any = None, read: bool = True, write: bool = True) -> StagedBuffer:
        """Return the memory for a new flat tensor with the elements of several tensors, one after another."""
        devices = {tensor.device for tensor in tensors}
        device = devices.pop() if len(devices) == 1 and maps(tensors[0].device) else host_device()
        return self.buffer(of_tensors(tensors, cast, read, device), read=read, write=write)

    def unit(self, dtype: Any) -> int:
        """Return what an element counts in an all-to-all: its bytes."""
        return int(dtype.itemsize)

    def divide(self, memory: Memory, dtype: str, number: int) -> None:
        """Divide all elements by a number."""
        array = np.frombuffer(memory, dtype)
        divide(array, number, array)


class DirectMemory(StagedMemory):
    """The memory of a device, which an engine takes as it is."""

    halves = True

    def __init__(self, group: ProcessGroup, device: Any) -> None:
        super().__init__(group)
        self.device = device

    def communicator(self) -> Any:
        return self.group.on_device(self.device)

    def buffer(self, tensor: Tensor, cast: Any = None, read: bool = True, write: bool = True) -> StagedBuffer:
        return DeviceBuffer(tensor, cast, read, write)

    def flat(self, tensors: Sequence[Tensor], cast: Any = None, read: bool = True, write: bool = True) -> StagedBuffer:
        return DeviceBuffer(of_tensors(tensors, cast, read, self.device))

    def unit(self, dtype: Any) -> int:
        return 1

    def divide(self, memory: Memory, dtype: str, number: int) -> None:
        memory.div_(number)


def memory_of(group: ProcessGroup, *tensors: Tensor) -> StagedMemory:
    """Return the access of a call: that of its tensors, if an engine of the group takes memory of their device."""
    devices = {tensor.device for tensor in tensors} if group.devices else set()
    if len(devices) == 1:
        device = devices.pop()
        if device.type in group.devices:  # also of a single rank, whose tensors would be copied to the host otherwise
            capabilities = open_device(device).capabilities
            if capabilities.mutable and capabilities.strided:
                return DirectMemory(group, device)
    return StagedMemory(group)


class Queue:
    """A stream on which a group's calls on a device run, while the program's own work goes on."""

    def __init__(self, device: Any) -> None:
        instance = open_device(device)
        self._backend, self._index = instance.backend, instance.index
        try:
            self._stream = self._backend.stream(self._index)
        except NotImplementedError:  # all work of the device runs in its order
            self._stream = None

    def mark(self) -> Any:
        """Return an event after the work that the calling thread has submitted; None without streams."""
        return None if self._stream is None else self._backend.current_stream(self._index).record()

    def run(self, after: Any, task: Callable[[], Any]) -> Any:
        """Submit a task's work, which begins after an event, and return the event of its end."""
        with cd.no_grad():
            if self._stream is None:
                task()
                return None
            with self._stream:
                after.wait()
                task()
                return self._stream.record()
