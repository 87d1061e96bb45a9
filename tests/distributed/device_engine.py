"""An engine of devices whose ranks are threads: it computes with the devices' operators, in the order of streams."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._threads import ThreadCommunicator
from candelabra.distributed.engine import Communicator, DeviceCommunicator, DeviceEngine, Message
from candelabra.library import open_device


class Devices(DeviceEngine):
    """It serves the device types that it is created for."""

    name = "devices"

    def __init__(self, *device_types: str) -> None:
        self.device_types = device_types
        self.connected: list[tuple[int, str]] = []

    def connect(self, communicator: Communicator, device: str) -> DeviceCommunicator:
        self.connected.append((communicator.rank, device))
        assert isinstance(communicator, ThreadCommunicator)
        return DeviceThreads(communicator, cd.device(device))


class DeviceThreads(DeviceCommunicator):
    """One rank's end: it sends copies, with the events after which they may be read. All ranks share a device."""

    def __init__(self, communicator: ThreadCommunicator, device: Any) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._job: Any = communicator._job
        self._meet = communicator.subset(range(self.size))._meet  # type: ignore[union-attr]
        instance = open_device(device)
        self._stream: Any = lambda: instance.backend.current_stream(instance.index)

    def _met(self, value: Tensor | None) -> list[Any]:
        """Return the tensors of all ranks, for work that is submitted from now on."""
        found = self._meet("device", None if value is None else (value.clone(), self._stream().record()))
        for each in found:
            if each is not None:
                each[1].wait(self._stream())
        return [None if each is None else each[0] for each in found]

    def broadcast(self, buffer: Tensor, root: int) -> None:
        sent = self._met(buffer if self.rank == root else None)[root]
        if self.rank != root:
            buffer.copy_(sent)

    def all_reduce(self, buffer: Tensor, dtype: str, op: str) -> None:
        assert buffer.dtype.name == dtype
        assert buffer.dim() == 1
        self.reduce_gathered(buffer, op)

    def all_gather(self, send: Tensor, receive: Tensor) -> None:
        receive.copy_(cd.cat(self._met(send)))

    def exchange(self, messages: Sequence[Message]) -> None:
        job = self._job
        for each in messages:
            if each.sends:
                with job.changed:
                    box = job.mail.setdefault((DeviceThreads, self.rank, each.rank), deque())
                    box.append((each.buffer.clone(), self._stream().record()))
                    job.changed.notify_all()
        for each in messages:
            if not each.sends:
                with job.changed:
                    box = job.mail.setdefault((DeviceThreads, each.rank, self.rank), deque())
                    while not box:
                        job.check()
                        job.changed.wait()
                    tensor, event = box.popleft()
                event.wait(self._stream())
                each.buffer.copy_(tensor)
