"""One OpenCL device: its context, its queue, its memory pool and its compiled kernels."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyopencl as cl
from candelabra.errors import OutOfMemoryError
from candelabra_clike import OPENCL, Engine, Launch, Source, Traits
from candelabra_clike.faults import Faults
from pyopencl.tools import ImmediateAllocator, MemoryPool

NUMBERS: Final = {
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64, "": None,
}  # fmt: skip
"""The type of a kernel's argument, as PyOpenCL wants to be told it; None for buffers."""


class OpenCLEngine(Engine):
    """A device of one OpenCL driver."""

    dialect = OPENCL

    def __init__(self, device: Any, index: int, place: str, traits: Mapping[str, Any]) -> None:
        self.device: Final = device
        self.index = index
        self.place: Final = place
        self.context: Final = cl.Context([device])
        self.queue: Final = cl.CommandQueue(self.context)
        self.pool: Final = MemoryPool(ImmediateAllocator(self.queue))
        found = Traits(
            serial=bool(device.type & cl.device_type.CPU),
            compute_units=device.max_compute_units,
            group=device.max_work_item_sizes[0],
            local_memory=device.local_mem_size,
            float64=bool(device.double_fp_config),
            exact_division=bool(device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
            memory=device.global_mem_size,
            largest=device.max_mem_alloc_size,
        )
        self.traits = replace(found, **traits)
        self.faults = Faults(self)
        self._kernels: Final[dict[Source, Launch]] = {}
        self._lock: Final = threading.Lock()

    def __repr__(self) -> str:
        return self.place

    def allocate(self, nbytes: int) -> Any:
        try:
            return self.pool.allocate(nbytes)
        except cl.MemoryError as error:
            raise OutOfMemoryError(f"{self} has no room for {nbytes} bytes: {error}") from error

    def read(self, buffer: Any, offset: int, nbytes: int) -> memoryview:
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            cl.enqueue_copy(self.queue, data, buffer, src_offset=offset, is_blocking=True)
        return memoryview(data)

    def write(self, buffer: Any, offset: int, data: memoryview) -> None:
        content = np.frombuffer(data, np.uint8)
        cl.enqueue_copy(self.queue, buffer, content, dst_offset=offset, is_blocking=True)

    def copy(self, destination: Any, to: int, source: Any, start: int, nbytes: int) -> None:
        cl.enqueue_copy(self.queue, destination, source, dst_offset=to, src_offset=start, byte_count=nbytes)

    def synchronize(self) -> None:
        self.queue.finish()

    def compile(self, source: Source) -> Launch:
        with self._lock:
            found = self._kernels.get(source)
            if found is None:
                # On a processor a work-item is a loop. Left to themselves some drivers make vectors of work-items
                # instead (Intel's: ten times slower), or one work-group of all of them.
                whole = replace(source, group=1) if self.traits.serial and source.group is None else source
                found = self._kernels[source] = Kernel(self, whole)
            return found


class Kernel:
    """A compiled kernel. OpenCL keeps a kernel's arguments in the kernel, so every thread has one of its own."""

    def __init__(self, engine: OpenCLEngine, source: Source) -> None:
        self._queue: Final = engine.queue
        self._name: Final = source.name
        self._types: Final = [NUMBERS[type] for type in source.types()]
        self._local: Final = (source.group,) if source.group else None
        options = list(OPENCL.options)
        if engine.traits.exact_division:
            options += OPENCL.rounding
        if engine.device.type & cl.device_type.CPU:
            options += OPENCL.processor
        self._program: Final = cl.Program(engine.context, source.program(OPENCL)).build(options)
        self._mine: Final = threading.local()

    def _of_this_thread(self) -> Any:
        kernel = cl.Kernel(self._program, self._name)
        kernel.set_scalar_arg_dtypes(self._types)
        self._mine.kernel = kernel
        return kernel

    def __call__(self, count: int | tuple[int, ...], /, *arguments: Any) -> None:
        try:
            kernel = self._mine.kernel
        except AttributeError:
            kernel = self._of_this_thread()
        if self._local is None:
            if count:
                kernel(self._queue, (count,), None, *arguments)
            return
        groups = count if isinstance(count, tuple) else (count,)
        if 0 not in groups:
            local = self._local + (1,) * (len(groups) - 1)
            kernel(self._queue, tuple(g * s for g, s in zip(groups, local)), local, *arguments)
