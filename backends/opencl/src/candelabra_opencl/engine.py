"""One OpenCL device: its context, its queue, its memory and its compiled kernels."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyopencl as cl
from candelabra_clike import OPENCL, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors
from pyopencl import _cl

from candelabra_opencl.compiling import Compiler, usual_cache
from candelabra_opencl.launching import Kernel
from candelabra_opencl.memory import Memory
from candelabra_opencl.streams import Streams

BLOCKING: Final = "CANDELABRA_BLOCKING"
"""The environment variable that makes every launch wait, so that an error has the operator's name."""
SMALL: Final = 1 << 16
"""Bytes up to which data from the host is copied aside, rather than waited for until the device has it."""
CACHE: Final = 32 << 20
"""Bytes that the last cache of a processor has, if a driver says less: some know of an inner one only."""


def traits_of(device: Any) -> Traits:
    """What of a device decides about the form of kernels."""
    return Traits(
        serial=bool(device.type & cl.device_type.CPU),
        compute_units=device.max_compute_units,
        group=min(device.max_work_item_sizes[0], device.max_work_group_size),
        local_memory=device.local_mem_size,
        float64=bool(device.double_fp_config),
        exact_division=bool(device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
        memory=device.global_mem_size,
        largest=device.max_mem_alloc_size,
        cache=max(device.global_mem_cache_size, CACHE),
    )


class OpenCLEngine(Engine):
    """A device of one OpenCL driver. ``traits`` replace what is found of it."""

    dialect = OPENCL

    def __init__(self, device: Any, index: int, place: str, traits: Mapping[str, Any]) -> None:
        self.device: Final = device
        self.index = index
        self.place: Final = place
        self.traits = replace(traits_of(device), **traits)
        self.blocking: Final = os.environ.get(BLOCKING, "") not in ("", "0")
        self.context: Final = cl.Context([device])
        self.errors = DeviceErrors(self)
        self.streams: Final = Streams(place, self.context, self.errors.check, self.blocking)
        self.memory: Final = Memory(
            place, self.streams.default.queue, self.traits.memory, self.traits.largest, self.streams.finish
        )
        # Where a work-item is a lane the engine chooses their groups, and launches whole ones.
        language = replace(OPENCL, rounds_up=True)
        self.compiler: Final = Compiler(place, self.context, device, self.traits, language, usual_cache(device))
        self.allocate = self.memory.allocate  # type: ignore[method-assign]
        self._kernels: Final[dict[Source, Kernel]] = {}
        self._lock: Final = threading.Lock()
        self._underway: Final[deque[Any]] = deque()
        """Events of writes that may not be done: each has the host's data that it reads."""

    def __repr__(self) -> str:
        return self.place

    # -- memory -------------------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Any:  # replaced by the pool's own method: this is on the path of every call
        return self.memory.allocate(nbytes)

    def read(self, buffer: Any, offset: int, nbytes: int) -> memoryview:
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            queue = self.streams.current().queue
            self.streams.failing(lambda: _cl._enqueue_read_buffer(queue, buffer, data, offset, None, True))
        return memoryview(data)  # type: ignore[arg-type]

    def write(self, buffer: Any, offset: int, data: memoryview) -> None:
        content = np.frombuffer(data, np.uint8)
        streams = self.streams
        queue = streams.current().queue
        # Between streams nothing is in order, and nobody waits for an event to use what came from the host.
        if content.size > SMALL or not streams.single:
            streams.failing(lambda: _cl._enqueue_write_buffer(queue, buffer, content, offset, None, True))
            return
        underway = self._underway
        # PyOpenCL waits where such an event is dropped too early.
        underway.append(_cl._enqueue_write_buffer(queue, buffer, content.copy(), offset, None, False))
        try:
            while underway[0].command_execution_status <= 0:
                underway.popleft()
        except IndexError:
            pass

    def copy(self, destination: Any, to: int, source: Any, start: int, nbytes: int) -> None:
        stream = self.streams.current()
        event = _cl._enqueue_copy_buffer(stream.queue, source, destination, nbytes, start, to)
        if not self.streams.single:
            stream.keep(event, (source, destination))

    # -- kernels ------------------------------------------------------------------------------------------------------
    def compile(self, source: Source) -> Launch:
        found = self._kernels.get(source)
        if found is None:
            with self._lock:
                found = self._kernels.get(source)
                if found is None:
                    # On a processor a work-item is a loop. Left to themselves some drivers make vectors of work-items
                    # instead (Intel's: ten times slower), or one work-group of all of them.
                    whole = replace(source, group=1) if self.traits.serial and source.group is None else source
                    found = self._kernels[source] = Kernel(self, whole, self.compiler.program(whole))
        return found.launch

    def synchronize(self) -> None:
        self.streams.finish()
