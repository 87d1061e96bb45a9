"""One CUDA device: its memory, its current stream and its compiled kernels."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from candelabra.errors import BackendError
from candelabra_clike import CUDA, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors

from candelabra_cuda.launching import CudaKernel
from candelabra_cuda.memory import CudaMemoryPool, DeviceMemory, Staging

if TYPE_CHECKING:
    from candelabra_cuda.compiling import Compiler
    from candelabra_cuda.graphs import GraphMemory

MAX_STREAMS: Final = 32
"""The number of streams that are created, as in PyTorch. They are never destroyed, because deferred frees wait for all
of them."""


class CudaEngine(Engine):
    """A device of the CUDA driver. ``cupy`` is the module; tests pass a replacement."""

    dialect = CUDA
    type = "cuda"
    has_cublas = True
    """Whether cuBLAS computes matrix products."""
    captures = True
    """Whether compiled functions capture their launches as graphs of the driver."""

    def __init__(self, cupy: Any, index: int, several: bool) -> None:
        self.cupy: Final = cupy
        self.runtime: Final = cupy.cuda.runtime
        self.driver: Final = cupy.cuda.driver
        self.index = index
        self.blocking = os.environ.get("CANDELABRA_BLOCKING", "") not in ("", "0")
        self._several: Final = several
        self._current_stream: Final = cupy.cuda.get_current_stream
        properties = self.runtime.getDeviceProperties(index)
        self.capability: Final = f"{properties['major']}{properties['minor']}"
        self.traits = Traits(
            serial=False,
            compute_units=properties["multiProcessorCount"],
            group=properties["maxThreadsPerBlock"],
            local_memory=properties["sharedMemPerBlock"],
            memory=properties["totalGlobalMem"],
            largest=properties["totalGlobalMem"],
            multiplies=not self.has_cublas,
        )
        self.pool: Final = CudaMemoryPool(cupy, f"{self.type}:{index}", self.enter)
        if not several:
            self.allocate = self.pool.allocate  # type: ignore[method-assign]
        self.errors = DeviceErrors(self)
        self._staging: Final = Staging(cupy)
        self._kernels: Final[dict[Source, Launch]] = {}
        self._lock: Final = threading.Lock()
        self._streams: Final[deque[Any]] = deque()
        self._graph_memory: Callable[[], GraphMemory | None] = lambda: None
        self.host_calls = 0
        """Counts the calls that wait for the device, upload values or use CuPy: graphs cannot contain them."""

    def __repr__(self) -> str:
        return f"{self.type}:{self.index}"

    # -- order --------------------------------------------------------------------------------------------------------
    def enter(self) -> int:
        """Make this device current in the thread, and return the address of its current stream."""
        if self._several:
            self.runtime.setDevice(self.index)
        pointer: int = self._current_stream().ptr
        return pointer

    def stream(self) -> Any:
        """Return CuPy's object of the thread's current stream on this device."""
        self.enter()
        return self._current_stream()

    def another_stream(self) -> Any:
        """Return a stream of CuPy other than the default one.

        After :data:`MAX_STREAMS` streams they are reused in turn.
        """
        with self._lock:
            if len(self._streams) < MAX_STREAMS:
                self.runtime.setDevice(self.index)
                self._staging.share()
                stream = self.cupy.cuda.Stream(non_blocking=True)
                self.pool.share(stream)
            else:
                stream = self._streams.popleft()
            self._streams.append(stream)
            return stream

    def synchronize(self) -> None:
        self.enter()
        self.wait_for(None)

    def wait_for(self, name: str | None) -> None:
        """Wait for the device. ``name`` is the kernel that an error refers to, if it is known."""
        self.host_calls += 1
        try:
            self.runtime.deviceSynchronize()
        except self.runtime.CUDARuntimeError as error:
            blame = (
                f"{name!r} failed"
                if name
                else "an earlier operation failed (set the environment variable CANDELABRA_BLOCKING=1 to see which one)"
            )
            raise RuntimeError(f"{self}: {blame}: {error}") from error

    # -- libraries ----------------------------------------------------------------------------------------------------
    @cached_property
    def cublas(self) -> Any:
        """CuPy's binding of cuBLAS, loaded at the first matrix product."""
        from cupy_backends.cuda.libs import cublas

        return cublas

    def blas_handle(self) -> int:
        """Return cuBLAS's handle of this thread and device, which uses the current stream."""
        handle: int = self.cupy.cuda.device.get_cublas_handle()
        return handle

    # -- memory -------------------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> DeviceMemory:
        self.enter()
        return self.pool.allocate(nbytes)  # without several devices this is all that there is: see `__init__`

    @contextmanager
    def allocating_by(self, allocate: Callable[[int], DeviceMemory]) -> Iterator[None]:
        """Let this thread allocate by another function within the block."""
        usual, thread = self.allocate, threading.get_ident()

        def chosen(nbytes: int) -> DeviceMemory:
            return (allocate if threading.get_ident() == thread else usual)(nbytes)

        self.allocate = chosen  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.allocate = usual  # type: ignore[method-assign]

    def graph_memory(self) -> GraphMemory:
        """Return what captured graphs of this device share. It exists as long as one of them does."""
        from candelabra_cuda.graphs import GraphMemory

        with self._lock:
            found = self._graph_memory()
            if found is None:
                found = GraphMemory(self)
                self._graph_memory = weakref.ref(found)
            return found

    def memory(self, release: bool) -> dict[str, int]:
        """Return the statistics of the contract's ``memory``. What graphs keep counts as allocated."""
        found, graphs = self.pool.statistics(release), self._graph_memory()
        kept = 0 if graphs is None else graphs.pool.statistics(False)["reserved"]
        return {name: size + kept for name, size in found.items()}

    def read(self, buffer: DeviceMemory, offset: int, nbytes: int) -> memoryview:
        data = np.empty(nbytes, np.uint8)
        self.host_calls += 1
        if nbytes:
            stream = self.stream()
            self.runtime.memcpyAsync(
                data.ctypes.data, buffer + offset, nbytes, self.runtime.memcpyDeviceToHost, stream.ptr
            )
            try:
                stream.synchronize()
            except self.runtime.CUDARuntimeError:
                self.wait_for(None)
                raise
        return memoryview(data)  # type: ignore[arg-type]

    def write(self, buffer: DeviceMemory, offset: int, data: memoryview) -> None:
        self.host_calls += 1
        self._staging.write(buffer + offset, data, self.stream())

    def copy(self, destination: DeviceMemory, to: int, source: DeviceMemory, start: int, nbytes: int) -> None:
        self.runtime.memcpyAsync(
            destination + to, source + start, nbytes, self.runtime.memcpyDeviceToDevice, self.enter()
        )

    # -- kernels ------------------------------------------------------------------------------------------------------
    @cached_property
    def compiler(self) -> Compiler:
        """The compiler for this device's compute capability."""
        from candelabra_cuda.compiling import Compiler, prebuilt_cache, usual_cache

        return Compiler(self.capability, usual_cache(), prebuilt_cache())

    def compile(self, source: Source) -> Launch:
        with self._lock:
            launch = self._kernels.get(source)
            if launch is None:
                launch = self._kernels[source] = self._loaded(source)
            return launch

    def _loaded(self, source: Source) -> Launch:
        compiler = self.compiler
        code = compiler.machine_code(source)
        self.runtime.setDevice(self.index)
        try:
            module = self.driver.moduleLoadData(code)
        except self.driver.CUDADriverError:
            try:
                module = self.driver.moduleLoadData(compiler.rebuilt(source))
            except self.driver.CUDADriverError as error:
                raise BackendError(
                    f"{self}: the driver does not take the machine code of {source.name!r} for compute capability "
                    f"{self.capability}: {error}. A newer driver may; `candelabra devices` shows this one's version"
                ) from error
        return CudaKernel(self, source, self.driver.moduleGetFunction(module, source.name), module).launch
