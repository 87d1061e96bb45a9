"""Content of a fake device's memory in the host's memory, copied in the order of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra.backend import HostMapping

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.streams import FakeEvent, StreamWork

if TYPE_CHECKING:
    from candelabra_conformance.fake.backend import FakeAccelerator


class FakeMapping(HostMapping):
    """Memory of the host, as a driver's page-locked memory: it is copied to and from as work of the current stream.

    Memory that is not read contains bytes 0xA5 at first.
    """

    def __init__(self, device: FakeAccelerator, payload: FakeArray, nbytes: int, read: bool, write: bool) -> None:
        self._device, self._payload, self._write = device, payload, write
        self._memory = bytearray(b"\xa5") * nbytes
        self._event: FakeEvent | None = None
        self._ended = False
        if read:
            self._event = self._submit(self._load)

    def wait(self) -> memoryview:
        if self._event is not None:
            self._event.synchronize()
        return memoryview(self._memory)

    def unmap(self) -> None:
        if self._write and not self._ended:
            self._submit(self._store)
        self._ended = True

    def _submit(self, work: Any) -> FakeEvent:
        stream = self._device.schedule.current(self._payload._block.index)
        if self._device.asynchronous:
            stream.put(StreamWork("map_host", work, self._payload))
        else:
            work()
        return stream.record()

    def _load(self) -> None:
        self._memory[:] = self._device.reference.to_host(self._payload._hidden)

    def _store(self) -> None:
        reference, payload = self._device.reference, self._payload
        data = memoryview(self._memory)
        content = reference.from_host(self._device.reference_index, data, payload.shape, payload._dtype)
        reference.copy_(payload._hidden, content)
