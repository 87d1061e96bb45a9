"""The host's processor as an engine of C kernels: memory is NumPy's, and a launch returns when the work is done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from candelabra.errors import OutOfMemoryError
from candelabra_clike import C, Engine, Launch, Source, StridedArray
from candelabra_clike.device_errors import DeviceErrors
from candelabra_clike.templates.indexing.index_arrays import IndexedDim, is_in_bounds

from candelabra_native.arrays import Unsuitable
from candelabra_native.finding import Missing, find
from candelabra_native.launch import _launch
from candelabra_native.processor import level, traits_of

CODES: Final = {"": "b", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
"""The types of arguments in the notation of the launcher."""
MISSING: Final[Any] = object()
"""Stands for the launch of a kernel that is not compiled."""
_launch.raise_instead(OutOfMemoryError)


class OfThread(threading.local):
    """What each thread has of its own."""

    errors: DeviceErrors | None = None
    """Its record of errors, from its first call on that may report one."""


class NativeEngine(Engine):
    """The processor. Thread-safe: each thread has its own record of errors, since its calls return when all is done."""

    dialect = C
    index = 0
    traits = traits_of(level())

    def __init__(self) -> None:
        self._launches: Final[dict[Source, Any]] = {}
        self._lock: Final = threading.Lock()
        self.thread: Final = OfThread()

    def __repr__(self) -> str:
        return "cpu"

    @property
    def errors(self) -> DeviceErrors:  # type: ignore[override]
        """The errors that the kernels of this thread's call reported."""
        errors = self.thread.errors
        if errors is None:
            self.thread.errors = errors = DeviceErrors(self)
        return errors

    # -- memory -------------------------------------------------------------------------------------------------------
    # Every call allocates, so this is the function itself: a built-in function is not bound.
    allocate = _launch.allocate  # type: ignore[assignment]

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
        """Return the launch of a kernel. Raises :class:`Missing` if NumPy has to serve the call.

        The sources that are missing are known from then on, so that looking for them costs one look-up.
        """
        launch = self._launches.get(source)
        if launch is None:
            with self._lock:
                launch = self._launches.get(source)
                if launch is None:
                    launch = self._launches[source] = self._loaded(source)
        if launch is MISSING:
            raise Missing(source.name)
        return launch  # type: ignore[no-any-return]

    def _loaded(self, source: Source) -> Any:
        try:
            address = find(source)
        except Missing:
            return MISSING
        types = "".join(CODES[type] for type in source.types())
        return _launch.kernel(address, types, source.name)

    def offers(self, source: Source) -> bool:
        """Return whether a kernel is compiled or can be compiled."""
        try:
            self.compile(source)
        except Missing:
            return False
        return True

    checks_indices = True

    def before_writing(self, indices: Sequence[StridedArray], indexed: Sequence[IndexedDim], wraps: bool) -> None:
        """Raise :class:`Unsuitable` if an index is out of bounds. The owner's kernel then raises its error."""
        for index, dim in zip(indices, indexed, strict=True):
            if not is_in_bounds(index, dim.size, wraps):
                raise Unsuitable

    def forget_missing(self) -> None:
        """Search again for kernels that were missing, for example when compiling has been allowed."""
        with self._lock:
            for source in [source for source, launch in self._launches.items() if launch is MISSING]:
                del self._launches[source]

    def synchronize(self) -> None:
        """Do nothing: a launch returns when its work is done."""


ENGINE: Final = NativeEngine()


def _bytes_of(buffer: Any) -> Any:
    """Return the bytes of a buffer in the order of memory."""
    return np.asarray(buffer).reshape(-1, order="A", copy=False).view(np.uint8)
