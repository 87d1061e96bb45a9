"""The host's processor as an engine of C kernels: memory is NumPy's, and a launch returns when the work is done."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from candelabra.errors import OutOfMemoryError
from candelabra_clike import C, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors

from candelabra_native.finding import find
from candelabra_native.launch import _launch

PARTS: Final = 8
"""What kernels take for the number of processor cores, when they divide their work. It is constant, because the order
of a sum must depend neither on the machine nor on the number of threads."""
CODES: Final = {"": "b", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
"""The types of arguments in the notation of the launcher."""


class NativeEngine(Engine):
    """The processor. Thread-safe: each thread has its own record of errors, since its calls return when all is done."""

    dialect = C
    index = 0
    traits = Traits(
        serial=True, compute_units=PARTS, group=1, local_memory=0, memory=1 << 62, largest=1 << 62, cache=32 << 20
    )

    def __init__(self) -> None:
        self._launches: Final[dict[Source, Launch]] = {}
        self._lock: Final = threading.Lock()
        self._thread: Final = threading.local()

    def __repr__(self) -> str:
        return "cpu"

    @property
    def errors(self) -> DeviceErrors:  # type: ignore[override]
        """The errors that the kernels of this thread's call reported."""
        try:
            return self._thread.errors  # type: ignore[no-any-return]
        except AttributeError:
            self._thread.errors = errors = DeviceErrors(self)
            return errors

    # -- memory -------------------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Any:
        try:
            return _launch.allocate(nbytes)
        except MemoryError as error:
            raise OutOfMemoryError(f"cannot allocate {nbytes} bytes on the CPU: {error}") from error

    def read(self, buffer: Any, offset: int, nbytes: int) -> memoryview:
        if buffer.__class__ is not np.ndarray:  # a block of memory; every call that may report errors reads one
            return memoryview(bytes(memoryview(buffer)[offset : offset + nbytes]))
        return memoryview(_bytes_of(buffer)[offset : offset + nbytes].tobytes())

    def write(self, buffer: Any, offset: int, data: memoryview) -> None:
        content = np.frombuffer(data, np.uint8)
        _bytes_of(buffer)[offset : offset + content.size] = content

    def copy(self, destination: Any, to: int, source: Any, start: int, nbytes: int) -> None:
        _bytes_of(destination)[to : to + nbytes] = _bytes_of(source)[start : start + nbytes]

    # -- kernels ------------------------------------------------------------------------------------------------------
    def compile(self, source: Source) -> Launch:
        launch = self._launches.get(source)
        if launch is None:
            with self._lock:
                launch = self._launches.get(source)
                if launch is None:
                    types = "".join(CODES[type] for type in source.types())
                    launch = self._launches[source] = _launch.kernel(find(source), types, source.name)
        return launch

    def synchronize(self) -> None:
        """Do nothing: a launch returns when its work is done."""


def _bytes_of(buffer: Any) -> Any:
    """Return the bytes of a buffer in the order of memory."""
    return np.asarray(buffer).reshape(-1, order="A", copy=False).view(np.uint8)
