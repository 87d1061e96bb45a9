"""OpenCL as a device type, with one index per device across platforms."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final
from weakref import WeakSet

from candelabra.backend import Capabilities, DeviceInfo, HostMapping
from candelabra.dtypes import ALL, complex128, float64
from candelabra.graph import Graph
from candelabra_clike import CLikeBackend, StridedArray

from candelabra_opencl.discovery import OpenCLDevice, find
from candelabra_opencl.engine import OpenCLEngine, after_fork
from candelabra_opencl.mapping import mapping
from candelabra_opencl.prepared import compiled
from candelabra_opencl.streams import OpenCLStream

_backends: Final[WeakSet[OpenCLBackend]] = WeakSet()


def _after_fork() -> None:
    for backend in list(_backends):
        backend.after_fork()


@cache
def _finish_at_exit() -> None:
    """Let the process end after the devices' work: PoCL compiles a kernel when it runs, into a folder that may be
    temporary. Called when the folder exists, so that it is removed later.
    """
    atexit.register(_finish)


def _finish() -> None:
    for backend in list(_backends):
        backend.finish()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


class OpenCLBackend(CLikeBackend):
    """Payloads are strided arrays over OpenCL buffers. Work is queued and runs asynchronously.

    ``traits`` override those of every device. Tests use them to run other forms of kernels, such as ``serial=False`` on
    a CPU.
    """

    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True)

    def __init__(self, name: str = "opencl", **traits: Any) -> None:
        self.name = name
        self._traits: Final = traits
        self._lock = threading.Lock()
        self._engines: Final[dict[int, OpenCLEngine]] = {}
        self._device_list: list[OpenCLDevice] | None = None
        self._of_parent: dict[int, OpenCLEngine] | None = None
        """In a forked process, the engines of the process that it was forked from, if that had loaded the drivers."""
        _backends.add(self)

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
        if self._of_parent is not None:
            raise after_fork(f"{self.name}:{index}")
        description = self._devices()[index]
        with self._lock:
            if index not in self._engines:
                self._engines[index] = OpenCLEngine(description.device, index, f"{self.name}:{index}", self._traits)
                _finish_at_exit()
            return self._engines[index]

    def finish(self) -> None:
        """Wait for the work of all devices. Errors have no one to tell: the process ends."""
        for engine in list(self._engines.values()):
            with suppress(RuntimeError):
                engine.streams.finish()

    def after_fork(self) -> None:
        """Forbid the devices in a forked process. Drivers that the other process had not loaded work as usual."""
        self._lock = threading.Lock()  # another thread may have held it
        if self._device_list is not None and self._of_parent is None:
            self._of_parent = dict(self._engines)
            self._engines.clear()
            for engine in self._of_parent.values():
                engine.forbid()

    def capabilities_of(self, index: int) -> Capabilities:
        """What the device can do. Without float64 it holds and moves such tensors, but does not compute in them."""
        if self._traits.get("float64", self._devices()[index].facts["fp64"]):
            return self.capabilities
        return replace(self.capabilities, arithmetic=self.capabilities.arithmetic - {float64, complex128})

    def compile(self, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
        values = (*graph.inputs, *[v for node in graph.nodes for v in node.results])
        device = next(v.spec.device for v in values if v.spec is not None)
        return compiled(self.engine(device.index), graph)

    # -- order and memory ---------------------------------------------------------------------------------------------
    def stream(self, index: int) -> OpenCLStream:
        return self.engine(index).streams.new()

    def current_stream(self, index: int) -> OpenCLStream:
        """Return the current stream of the calling thread."""
        return self.engine(index).streams.current()

    def default_stream(self, index: int) -> OpenCLStream:
        """Return the stream that is current outside every ``with`` block, in every thread."""
        return self.engine(index).streams.default

    def map_host(self, payload: StridedArray, index: int, read: bool, write: bool) -> HostMapping | None:
        return mapping(payload, read, write) if payload.contiguous and payload.size else None

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        return self.engine(index).memory.statistics(release)

    def reset_peak(self, index: int) -> bool:
        self.engine(index).memory.reset_peak()
        return True
