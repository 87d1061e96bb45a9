"""One OpenCL device: its context, queue, memory and compiled kernels."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NoReturn

import numpy as np
import pyopencl as cl
from candelabra_clike import OPENCL, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors
from candelabra_clike.recording import RecordingEngine
from pyopencl import _cl

from candelabra_opencl.compiling import ProgramBuilder, program_cache
from candelabra_opencl.launching import OpenCLKernel
from candelabra_opencl.mapping import PinnedMemory
from candelabra_opencl.memory import OpenCLMemory
from candelabra_opencl.streams import Streams

BLOCKING: Final = "CANDELABRA_BLOCKING"
"""The environment variable that makes every launch wait, so that an error names its operator."""
ASYNC_WRITE_SIZE: Final = 1 << 16
"""The maximum size in bytes of host data that is copied to a temporary instead of waiting for the transfer."""
MIN_CACHE: Final = 32 << 20
"""The assumed minimum size of a CPU's last-level cache. Some drivers report the size of an inner cache."""


def traits_of(device: Any) -> Traits:
    """Return the traits of a device. Processors whose vectors have 64 bytes are those of AVX-512, with 32 registers."""
    serial = bool(device.type & cl.device_type.CPU)
    wide = serial and device.native_vector_width_float >= 16
    return Traits(
        serial=serial,
        compute_units=device.max_compute_units,
        group=min(device.max_work_item_sizes[0], device.max_work_group_size),
        local_memory=device.local_mem_size,
        float64=bool(device.double_fp_config),
        exact_division=bool(device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
        memory=device.global_mem_size,
        largest=device.max_mem_alloc_size,
        cache=max(device.global_mem_cache_size, MIN_CACHE),
        lanes=16 if wide else 8,
        registers=32 if wide else 16,
    )


def after_fork(name: str) -> RuntimeError:
    """Return the error of a device in a forked process."""
    return RuntimeError(
        f"{name} cannot be used in a forked process: the driver's threads exist only in the process that it was forked "
        "from. Start worker processes with multiprocessing's method 'spawn', or use the device only in the workers"
    )


class OpenCLRecorder(RecordingEngine):
    """A device without memory. Its kernels report no errors: a launch that may is not recorded."""

    dialect = OPENCL


class OpenCLEngine(Engine):
    """A device of one OpenCL driver. ``traits`` override those of the device."""

    dialect = OPENCL

    def __init__(self, device: Any, index: int, name: str, traits: Mapping[str, Any]) -> None:
        self.device: Final = device
        self.index = index
        self.name: Final = name
        self.traits = replace(traits_of(device), **traits)
        self.blocking: Final = os.environ.get(BLOCKING, "") not in ("", "0")
        self.context: Final = cl.Context([device])
        self.errors = DeviceErrors(self)
        self.streams: Final = Streams(name, self.context, self.errors.check, self.blocking)
        self.memory: Final = OpenCLMemory(
            name, self.streams.default.queue, self.traits.memory, self.traits.largest, self.streams.finish,
            on_host=bool(device.type & cl.device_type.CPU),
        )  # fmt: skip
        self.shares_memory: bool = bool(device.host_unified_memory)
        """Whether the memory is the host's, so that buffers can be mapped without a copy."""
        self.pinned: Final = PinnedMemory(self)
        # On devices whose work-items are lanes, the engine chooses the work-group size and launches whole groups.
        language = replace(OPENCL, rounds_up=True)
        self.builder: Final = ProgramBuilder(name, self.context, device, self.traits, language, program_cache(device))
        self.allocate = self.memory.allocate  # type: ignore[method-assign]
        self._kernels: Final[dict[Source, OpenCLKernel]] = {}
        self._lock: Final = threading.Lock()
        self.forked = False
        """Whether this is the copy of an engine in a forked process, in which the driver's threads do not exist."""
        self._pending_writes: Final[deque[Any]] = deque()
        """Events of incomplete writes; each keeps the host data that it reads."""

    def __repr__(self) -> str:
        return self.name

    def forbid(self) -> None:
        """Make every use of the device raise. Called in a forked process.

        The objects of the driver are never released, because that would wait for its threads.
        """
        from ctypes import py_object, pythonapi

        for kept in (self.context, *self.streams.queues(), self.memory.pool):
            pythonapi.Py_IncRef(py_object(kept))
        self.forked = True
        for name in ("allocate", "read", "write", "copy", "compile", "synchronize"):
            setattr(self, name, self._refuse)
        for name in ("current", "new", "finish", "wait_for"):
            setattr(self.streams, name, self._refuse)
        for kernel in self._kernels.values():
            kernel.forget_thread()

    def _refuse(self, *_: Any) -> NoReturn:
        raise after_fork(self.name)

    # -- memory -------------------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Any:  # replaced by the pool's method in __init__: every call uses it
        return self.memory.allocate(nbytes)

    def read(self, buffer: Any, offset: int, nbytes: int) -> memoryview:
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            queue = self.streams.current().queue
            self.streams.wait_for(lambda: _cl._enqueue_read_buffer(queue, buffer, data, offset, None, True))
        return memoryview(data)  # type: ignore[arg-type]

    def write(self, buffer: Any, offset: int, data: memoryview) -> None:
        content = np.frombuffer(data, np.uint8)
        streams = self.streams
        queue = streams.current().queue
        # With several streams, the host must wait: no other stream waits for the event of this write.
        if content.size > ASYNC_WRITE_SIZE or not streams.single:
            streams.wait_for(lambda: _cl._enqueue_write_buffer(queue, buffer, content, offset, None, True))
            return
        pending = self._pending_writes
        # PyOpenCL would wait if the event were deleted before the write is complete.
        pending.append(_cl._enqueue_write_buffer(queue, buffer, content.copy(), offset, None, False))
        try:
            while pending[0].command_execution_status <= 0:
                pending.popleft()
        except IndexError:
            pass

    def copy(self, destination: Any, to: int, source: Any, start: int, nbytes: int) -> None:
        stream = self.streams.current()
        event = _cl._enqueue_copy_buffer(stream.queue, source, destination, nbytes, start, to)
        if not self.streams.single:
            stream.keep(event, (source, destination))

    # -- kernels ------------------------------------------------------------------------------------------------------
    def compile(self, source: Source) -> Launch:
        return self.kernel(source).launch

    def kernel(self, source: Source) -> OpenCLKernel:
        """Return the built kernel of a source."""
        kernel = self._kernels.get(source)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(source)
                if kernel is None:
                    # On a CPU a work-item is a loop. Without group=1, some drivers vectorise across work-items (with
                    # Intel's that is ten times slower) or run all of them as one work-group.
                    whole = replace(source, group=1) if self.traits.serial and source.group is None else source
                    kernel = self._kernels[source] = OpenCLKernel(self, whole, self.builder.program(whole))
        return kernel

    @cached_property
    def recorder(self) -> OpenCLRecorder:
        """The device without memory, whose kernels note their launches."""
        return OpenCLRecorder(self, self.kernel)

    def synchronize(self) -> None:
        self.streams.finish()
