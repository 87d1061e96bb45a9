"""A double of CuPy for machines without a GPU: its control flow on host memory, without computation.

Streams, events, pools and errors behave as CuPy documents them; a launch only records its arguments. cuBLAS is the
one exception: its double multiplies with NumPy as cuBLAS's documentation defines the call, since the tests check the
calls. These tests say nothing about results of CUDA.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np


class CUDARuntimeError(RuntimeError):
    """The error of CuPy with this name."""


class CUDADriverError(RuntimeError):
    """The error of CuPy with this name."""


class OutOfMemoryError(MemoryError):
    """The error of CuPy with this name."""


class Pointer:
    """An address in a block of host memory."""

    def __init__(self, block: Any, offset: int = 0) -> None:
        self.block = block
        self.offset = offset

    @property
    def ptr(self) -> int:
        return ctypes.addressof(self.block) + self.offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.block, self.offset + offset)


class Pool:
    """A pool that counts used and free bytes, and refuses allocations above ``capacity``.

    A freed block is given to the next allocation of its size on its stream, as CuPy's pool does.
    """

    capacity = 2**30

    def __init__(self) -> None:
        self.used = self.kept = 0
        self.blocks: dict[tuple[int, int], list[Any]] = {}

    def malloc(self, nbytes: int) -> Pointer:
        if nbytes > self.capacity:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes")
        size = -(-nbytes // 512) * 512  # CuPy's pool rounds sizes, too.
        self.used += size
        key = (Stream.current[-1].ptr, size)
        free = self.blocks.get(key)
        if free:
            self.kept -= size
        made = Pointer(free.pop() if free else (ctypes.c_char * max(size, 1))())
        weakref.finalize(made, self.free, key, made.block)
        return made

    def free(self, key: tuple[int, int], block: Any) -> None:
        self.used -= key[1]
        self.kept += key[1]
        self.blocks.setdefault(key, []).append(block)

    def used_bytes(self) -> int:
        return self.used

    def free_bytes(self) -> int:
        return self.kept

    def total_bytes(self) -> int:
        return self.used + self.kept

    def free_all_blocks(self) -> None:
        self.kept = 0
        self.blocks.clear()


class Event:
    """An event that is done when its stream is synchronised."""

    made = 0

    def __init__(self, **options: Any) -> None:
        Event.made += 1
        self.ptr = Event.made
        self.done = False
        self.options = options

    def record(self, stream: Stream) -> None:
        stream.log.append("record")
        stream.events.append(self)

    def synchronize(self) -> None:
        self.done = True


class Graph:
    """The work of a capture. A launch does it."""

    def __init__(self, work: list[Callable[[], None]]) -> None:
        self.work = work

    def launch(self) -> None:
        assert not Stream.current[-1].capturing
        for call in self.work:
            call()


class Stream:
    """A stream that records the calls. While it captures, queued work is kept instead of done."""

    current: ClassVar[list[Stream]] = []
    null: ClassVar[Stream]
    capturing: ClassVar[dict[int, list[Callable[[], None]]]] = {}
    count = 0

    def __init__(self, non_blocking: bool = False) -> None:
        Stream.count += 1
        self.ptr = Stream.count
        self.log: list[Any] = []
        self.events: list[Event] = []
        self.done = True

    def record(self) -> Event:
        event = Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        self.log.append(("wait", event))

    def begin_capture(self) -> None:
        if self is Stream.null:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        assert self.ptr not in Stream.capturing
        Stream.capturing[self.ptr] = []

    def end_capture(self) -> Graph:
        work = Stream.capturing.pop(self.ptr)
        if None in work:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed due to an error during capture")
        return Graph(work)

    @classmethod
    def queue(cls, pointer: int, work: Callable[[], None]) -> None:
        """Do work of a stream, or keep it."""
        if pointer in cls.capturing:
            cls.capturing[pointer].append(work)
        else:
            work()

    @classmethod
    def forbid(cls, pointer: int) -> None:
        """Raise and invalidate the capture if a stream is capturing, as calls do that wait for the stream."""
        if pointer in cls.capturing:
            cls.capturing[pointer].append(None)  # type: ignore[arg-type]
            raise CUDARuntimeError(
                "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"
            )

    def synchronize(self) -> None:
        self.forbid(self.ptr)
        self.log.append("synchronize")
        for event in self.events:
            event.done = True

    def __enter__(self) -> Stream:
        Stream.current.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        Stream.current.pop()


class Runtime:
    """The runtime API with a driver version and a number of devices. The next synchronisation raises ``failing``."""

    CUDARuntimeError = CUDARuntimeError
    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3
    is_hip = False

    def __init__(self, devices: int, driver: int, runtime: int) -> None:
        self.devices, self.driver, self.version = devices, driver, runtime
        self.device = 0
        self.failing: Exception | None = None
        self.copies: list[int] = []
        self.recorded: list[tuple[int, int]] = []

    def getDeviceCount(self) -> int:
        if self.driver < self.version:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return self.devices

    def driverGetVersion(self) -> int:
        return self.driver

    def runtimeGetVersion(self) -> int:
        return self.version

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        return {
            "name": b"Double", "major": 9, "minor": 0, "totalGlobalMem": 80 * 2**30, "multiProcessorCount": 132,
            "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 49152,
        }  # fmt: skip

    def pointerGetAttributes(self, address: int) -> SimpleNamespace:
        return SimpleNamespace(device=self.devices - 1)

    def eventRecord(self, event: int, stream: int) -> None:
        self.recorded.append((event, stream))

    def setDevice(self, index: int) -> None:
        self.device = index

    def memcpyAsync(self, to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self.copies.append(kind)
        Stream.queue(stream, lambda: ctypes.memmove(to, source, nbytes))  # type: ignore[arg-type]

    def memcpy(self, to: int, source: int, nbytes: int, kind: int) -> None:
        self.memcpyAsync(to, source, nbytes, kind, 0)

    def memcpyPeerAsync(self, to: int, device: int, source: int, origin: int, nbytes: int, stream: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def memsetAsync(self, to: int, value: int, nbytes: int, stream: int) -> None:
        Stream.queue(stream, lambda: ctypes.memset(to, value, nbytes))  # type: ignore[arg-type]

    def deviceSynchronize(self) -> None:
        if self.failing is not None:
            error, self.failing = self.failing, None
            raise error


class Driver:
    """The driver API: a module is its code, and a launch is recorded as (grid, block, stream, bytes of arguments)."""

    CUDADriverError = CUDADriverError

    def __init__(self) -> None:
        self.launches: list[tuple[tuple[int, ...], tuple[int, ...], int, bytes]] = []

    def moduleLoadData(self, code: bytes) -> bytes:
        if code[:4] != b"\x7fELF":  # the first bytes of a CUBIN
            raise CUDADriverError("CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid")
        return code

    def moduleGetFunction(self, module: bytes, name: str) -> int:
        assert name.encode() in module
        return 4711

    def launchKernel(self, function: int, *numbers: int) -> None:
        grid, block, (_, stream, parameters, extra) = numbers[:3], numbers[3:6], numbers[6:]
        assert parameters == 0
        words = (ctypes.c_void_p * 5).from_address(extra)
        assert (words[0], words[2], words[4]) == (1, 2, None)
        assert words[1]
        assert words[3]
        size = ctypes.c_size_t.from_address(words[3]).value
        launch = (grid, block, stream, ctypes.string_at(words[1], size))
        Stream.queue(stream, lambda: self.launches.append(launch))


class UnownedMemory:
    """Memory of another library, which ``owner`` keeps alive."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    """An address in memory."""

    def __init__(self, memory: Any, offset: int) -> None:
        self.memory = memory
        self.ptr = memory.ptr + offset


class RawModule:
    """A program for HIPRTC, whose kernels record their launches."""

    made: ClassVar[list[RawModule]] = []

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        self.code, self.options = code, options
        self.launches: list[tuple[Any, ...]] = []
        RawModule.made.append(self)

    def get_function(self, name: str) -> Callable[..., None]:
        assert f"void {name}(" in self.code
        return lambda grid, block, args: self.launches.append((grid, block, args))


DATA: dict[int, Any] = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128}
"""``cudaDataType`` → NumPy dtype."""


class Cublas:
    """``gemmStridedBatchedEx`` on host memory, in column-major order as documented."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def gemmStridedBatchedEx(
        self, handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, atype: int, lda: int,
        stride_a: int, b: int, btype: int, ldb: int, stride_b: int, beta: int, c: int, ctype: int, ldc: int,
        stride_c: int, count: int, compute: int, algorithm: int,
    ) -> None:  # fmt: skip
        assert atype == btype
        d, result = np.dtype(DATA[atype]), np.dtype(DATA[ctype])
        assert ctype == atype or (d.itemsize == 2 and result == np.float32)
        assert lda >= max(1, k if transa else m)
        assert ldb >= max(1, n if transb else k)
        assert ldc >= max(1, m)
        self.calls.append(compute)

        def multiply() -> None:
            for i in range(count):
                left = _matrix(a + i * stride_a * d.itemsize, (k, m) if transa else (m, k), lda, d)
                right = _matrix(b + i * stride_b * d.itemsize, (n, k) if transb else (k, n), ldb, d)
                out = _matrix(c + i * stride_c * result.itemsize, (m, n), ldc, result)
                product = (left.T if transa else left).astype(result) @ (right.T if transb else right).astype(result)
                out[...] = _scale(alpha, d) * product + (_scale(beta, d) * out if _scale(beta, d) else 0)

        Stream.queue(Stream.current[-1].ptr, multiply)


def _scale(address: int, d: np.dtype[Any]) -> Any:
    """Return alpha or beta, in the operands' dtype, or float32 for half types."""
    wide = np.dtype(np.float32) if d.itemsize == 2 else d
    return np.frombuffer((ctypes.c_char * wide.itemsize).from_address(address), wide)[0].astype(d)


def _matrix(address: int, shape: tuple[int, int], leading: int, d: np.dtype[Any]) -> np.ndarray:
    """Return a column-major matrix of the host."""
    memory = (ctypes.c_char * (leading * shape[1] * d.itemsize)).from_address(address)
    return np.ndarray(shape, d, memory, 0, (d.itemsize, leading * d.itemsize))


class ndarray(np.ndarray):
    """An array over existing memory, as CuPy's."""

    def __new__(cls, shape: tuple[int, ...], dtype: Any, memptr: Any, strides: tuple[int, ...]) -> ndarray:
        d = np.dtype(dtype)
        span = d.itemsize + sum((size - 1) * step for size, step in zip(shape, strides)) if 0 not in shape else 0
        memory = (ctypes.c_char * span).from_address(memptr.ptr)
        return super().__new__(cls, shape, d, memory, 0, strides)  # type: ignore[call-overload, no-any-return]

    @property
    def data(self) -> Any:
        """Return the address of the first element."""
        return SimpleNamespace(ptr=self.ctypes.data, array=self)


ALLOCATORS: list[Any] = []
"""The allocators for CuPy's own arrays; the last one is used."""


@contextmanager
def using_allocator(allocator: Any) -> Iterator[None]:
    """Use an allocator within a block, as CuPy's function does."""
    ALLOCATORS.append(allocator)
    try:
        yield
    finally:
        ALLOCATORS.pop()


def double(devices: int = 1, driver: int = 13020, runtime: int = 13020) -> Any:
    """Return a double of the module CuPy."""
    Stream.null = default = Stream()
    Stream.current[:] = [default]
    Stream.capturing.clear()
    current: Callable[[], Stream] = lambda: Stream.current[-1]  # noqa: E731
    cuda = SimpleNamespace(
        runtime=Runtime(devices, driver, runtime),
        driver=Driver(),
        MemoryPool=Pool,
        using_allocator=using_allocator,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        Event=Event,
        Stream=Stream,
        get_current_stream=current,
        UnownedMemory=UnownedMemory,
        MemoryPointer=MemoryPointer,
        alloc_pinned_memory=lambda nbytes: Pointer((ctypes.c_char * nbytes)()),
        get_elapsed_time=lambda start, end: 1.5,
        device=SimpleNamespace(get_cublas_handle=lambda: 1),
    )
    return SimpleNamespace(cuda=cuda, ndarray=ndarray, RawModule=RawModule)


def unpacked(format: str, data: bytes) -> tuple[Any, ...]:
    """Return the arguments of a launch."""
    return struct.unpack(format, data)
