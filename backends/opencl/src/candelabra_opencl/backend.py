"""OpenCL as a device type, with one index per device across platforms."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from candelabra.backend import Capabilities, DeviceInfo
from candelabra.dtypes import ALL
from candelabra_clike import CLikeBackend

from candelabra_opencl.discovery import OpenCLDevice, find
from candelabra_opencl.engine import OpenCLEngine
from candelabra_opencl.streams import OpenCLStream


class OpenCLBackend(CLikeBackend):
    """Payloads are strided arrays over OpenCL buffers. Work is queued and runs asynchronously.

    ``traits`` override those of every device. Tests use them to run other forms of kernels, such as ``serial=False`` on
    a CPU.
    """

    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True)

    def __init__(self, name: str = "opencl", **traits: Any) -> None:
        self.name = name
        self._traits: Final = traits
        self._lock: Final = threading.Lock()
        self._engines: Final[dict[int, OpenCLEngine]] = {}
        self._device_list: list[OpenCLDevice] | None = None

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(device.name, device.facts) for device in self._devices()]

    def _devices(self) -> list[OpenCLDevice]:
        if self._device_list is None:
            with self._lock:
                if self._device_list is None:
                    self._device_list = find()
        return self._device_list

    def engine(self, index: int) -> OpenCLEngine:
        try:
            return self._engines[index]
        except KeyError:
            pass
        description = self._devices()[index]
        with self._lock:
            if index not in self._engines:
                self._engines[index] = OpenCLEngine(description.device, index, f"{self.name}:{index}", self._traits)
            return self._engines[index]

    # -- order and memory ---------------------------------------------------------------------------------------------
    def stream(self, index: int) -> OpenCLStream:
        return self.engine(index).streams.new()

    def current_stream(self, index: int) -> OpenCLStream:
        """Return the current stream of the calling thread."""
        return self.engine(index).streams.current()

    def default_stream(self, index: int) -> OpenCLStream:
        """Return the stream that is current outside every ``with`` block, in every thread."""
        return self.engine(index).streams.default

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        return self.engine(index).memory.statistics(release)
