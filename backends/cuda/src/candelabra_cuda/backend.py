"""CUDA as a device type."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from candelabra.backend import Capabilities, DeviceInfo, Kernel, declared
from candelabra.dtypes import ALL
from candelabra_clike import CLikeBackend, StridedArray

from candelabra_cuda.discovery import CudaDevice, find, load
from candelabra_cuda.engine import CudaEngine
from candelabra_cuda.streams import CudaStream

if TYPE_CHECKING:
    from candelabra.graph import Graph


class CudaBackend(CLikeBackend):
    """Payloads are strided arrays over CuPy's memory. Work is queued on CUDA streams."""

    name = "cuda"
    hip = False
    engine_type: type[CudaEngine] = CudaEngine
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True, dlpack=2)

    def __init__(self, cupy: Any = None) -> None:
        self._cupy = cupy
        self._lock: Final = threading.Lock()
        self._engines: Final[dict[int, CudaEngine]] = {}
        self._device_list: list[CudaDevice] | None = None

    @property
    def cupy(self) -> Any:
        """CuPy, imported at the first use of a device."""
        if self._cupy is None:
            self._cupy = load(self.hip)
        return self._cupy

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(device.name, device.facts) for device in self._devices()]

    def _devices(self) -> list[CudaDevice]:
        if self._device_list is None:
            with self._lock:
                if self._device_list is None:
                    self._device_list = find(self.cupy, self.hip)
        return self._device_list

    def engine(self, index: int) -> CudaEngine:
        try:
            return self._engines[index]
        except KeyError:
            pass
        devices = self._devices()
        with self._lock:
            if index not in self._engines:
                self._engines[index] = self.engine_type(self.cupy, devices[index].number, len(devices) > 1)
            return self._engines[index]

    def kernels(self) -> Mapping[str, Kernel]:
        from candelabra_cuda.kernels import table

        _ = self.cupy  # where it is missing, the reason is given here, and not by the first module that imports it
        return declared(table(super().kernels(), cublas=not self.hip))

    def transfer(self, payload: StridedArray, source: int, destination: int) -> StridedArray:
        from candelabra_clike.kernels.copies import contiguous

        contiguous_payload = contiguous(payload)
        origin, engine = self.engine(source), self.engine(destination)
        result = engine.empty(payload.shape, payload.dtype)
        nbytes = contiguous_payload.size * contiguous_payload.dtype.itemsize
        start = contiguous_payload.buffer + contiguous_payload.offset * contiguous_payload.dtype.itemsize
        event = origin.stream().record()
        stream = engine.stream()
        stream.wait_event(event)
        if nbytes:
            engine.runtime.memcpyPeerAsync(result.buffer, destination, start, source, nbytes, stream.ptr)
        # The memory of the source must not be reused before the copy is complete, so its stream waits for the copy.
        done = stream.record()
        origin.stream().wait_event(done)
        return result

    def stream(self, index: int) -> CudaStream:
        engine = self.engine(index)
        return CudaStream(engine, engine.another_stream())

    def current_stream(self, index: int) -> CudaStream:
        """Return the current stream of the calling thread."""
        engine = self.engine(index)
        return CudaStream(engine, engine.stream())

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        return self.engine(index).memory(release)

    def reset_peak(self, index: int) -> bool:
        self.engine(index).pool.reset_peak()
        return True

    def compile(self, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
        from candelabra_clike.fusion import planned

        from candelabra_cuda.graphs import VARIABLE, ReplayedGraph

        values = (*graph.inputs, *[v for node in graph.nodes for v in node.results])
        engine = self.engine(next(v.spec.device.index for v in values if v.spec is not None))
        if not engine.captures or os.environ.get(VARIABLE) == "0":
            return super().compile(graph)
        return ReplayedGraph(engine, *planned(engine, graph))

    def to_dlpack(self, payload: StridedArray, index: int, **options: Any) -> Any:
        from candelabra_cuda.arrays import to_cupy

        return to_cupy(payload).__dlpack__(**options)

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> StridedArray | None:
        from candelabra_cuda.arrays import from_cupy

        kind, number = source.__dlpack_device__()
        if (int(kind), int(number)) != (self.capabilities.dlpack, index):
            return None
        engine = self.engine(index)
        engine.enter()
        array = self.cupy.from_dlpack(source)
        return from_cupy(array.copy() if copy else array, engine)
