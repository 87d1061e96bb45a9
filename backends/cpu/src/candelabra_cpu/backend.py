"""The device type ``cpu``. Its payloads are NumPy arrays. Other devices are tested against it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from ctypes import c_void_p
from typing import Any

import ml_dtypes
import numpy as np
from candelabra.backend import Backend, Capabilities, DeviceInfo, Fact, Kernel, contiguous_strides, declared
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra.errors import OutOfMemoryError
from numpy.lib.stride_tricks import as_strided

TO_NUMPY: dict[dtype, np.dtype[Any]] = {
    d: np.dtype(ml_dtypes.bfloat16 if d.name == "bfloat16" else d.name) for d in ALL
}
FROM_NUMPY: dict[np.dtype[Any], dtype] = {n: d for d, n in TO_NUMPY.items()}


class CpuBackend(Backend):
    """The backend with one device, the host."""

    name = "cpu"
    api = ((1, 1), (1, 1))
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), host=True, dlpack=1)

    def devices(self) -> Sequence[DeviceInfo]:
        facts: dict[str, Fact] = {"cores": os.cpu_count() or 1, "numpy": np.__version__}
        return [DeviceInfo(platform.processor() or platform.machine(), facts)]

    def kernels(self) -> Mapping[str, Kernel]:
        from candelabra_cpu.kernels import table

        return declared(table())

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> np.ndarray:
        return allocate(shape, dtype)

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> np.ndarray:
        return np.frombuffer(data, TO_NUMPY[dtype]).reshape(shape).copy()

    def to_host(self, payload: np.ndarray) -> memoryview:
        if payload.size <= 8:  # copying a few elements is ten times as fast as creating three views
            return memoryview(payload.tobytes())
        return np.ascontiguousarray(payload).reshape(-1).view(np.uint8).data

    def dtype_of(self, payload: np.ndarray) -> dtype:
        return FROM_NUMPY[payload.dtype]

    def copy_(self, destination: np.ndarray, source: np.ndarray) -> np.ndarray:
        np.copyto(destination, source)
        return destination

    def layout(self, payload: np.ndarray) -> tuple[tuple[int, ...], int]:
        shape, owner = payload.shape, payload.base
        if owner is None and payload.flags.c_contiguous:
            return contiguous_strides(shape), 0
        size = payload.itemsize
        strides = []
        for step in payload.strides:
            strides.append(step // size)
        # NumPy leaves the strides of dims of size 0 or 1 arbitrary. Report those that PyTorch reports.
        if 0 in shape:
            strides = list(contiguous_strides(shape))
        elif 1 in shape:
            for i in range(len(shape) - 1, -1, -1):
                if shape[i] == 1 and strides[i] == 0:
                    strides[i] = strides[i + 1] * shape[i + 1] if i + 1 < len(shape) else 1
        if owner is None:
            return tuple(strides), 0
        storage = owner if owner.__class__ is np.ndarray and owner.base is None else storage_of(payload)
        return tuple(strides), (address(payload) - address(storage)) // size

    def restride(
        self, payload: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> np.ndarray:
        storage = storage_of(payload)
        size = payload.itemsize
        steps = [step * size for step in strides]
        try:
            return np.ndarray(shape, payload.dtype, storage, offset * size, steps)
        except ValueError:  # the storage is not in C order: it is foreign memory or was created transposed
            if not storage.size:
                return np.empty(shape, payload.dtype)
            # The storage of a complex array's parts is complex, and that of a view in another dtype has that dtype.
            start = as_strided(storage, (1,), (storage.itemsize,)).view("u1")
            first = as_strided(start, (size,), (1,)).view(payload.dtype)
            return as_strided(as_strided(first, (offset + 1,), (size,))[offset:], shape, steps)

    def to_dlpack(self, payload: np.ndarray, index: int, **options: Any) -> Any:
        from candelabra_cpu.dlpack import to_capsule

        return to_capsule(payload, **options)

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> np.ndarray | None:
        from candelabra_cpu.dlpack import from_exporter

        return from_exporter(source, copy)


def allocate(shape: tuple[int, ...], dtype: dtype) -> np.ndarray:
    """Return an uninitialised array. Raises ``OutOfMemoryError`` if there is not enough memory."""
    try:
        return np.empty(shape, TO_NUMPY[dtype])
    except (MemoryError, ValueError) as error:  # ValueError: the size exceeds the address space
        if any(size < 0 for size in shape):
            raise
        raise OutOfMemoryError(f"cannot allocate {list(shape)} of {dtype} on the CPU: {error}") from error


def zeros(shape: tuple[int, ...], dtype: dtype) -> np.ndarray:
    """Return an array of zeros. Raises the same errors as :func:`allocate`."""
    try:
        return np.zeros(shape, TO_NUMPY[dtype])
    except (MemoryError, ValueError):
        return allocate(shape, dtype)  # raises the error


def storage_of(payload: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of ``payload``, or the outermost array over foreign memory."""
    while True:
        base = payload.base
        if base is not None and not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided() inserts a dummy object between a view and its array
        if not isinstance(base, np.ndarray):
            return payload
        payload = base


def _interface_address(payload: np.ndarray) -> int:
    return int(payload.__array_interface__["data"][0])


def _pointer_address(payload: np.ndarray) -> int:
    # NumPy's C API specifies that the data pointer follows the object header. Reading it there is four times as fast.
    return _pointer_at(id(payload) + _HEADER).value or 0


_pointer_at = c_void_p.from_address
_HEADER = object.__basicsize__
_probe = np.empty(4)[1:]
_is_cpython = sys.implementation.name == "cpython"
address = (
    _pointer_address if _is_cpython and _pointer_address(_probe) == _interface_address(_probe) else _interface_address
)
"""Return the address of the first element of an array."""


__all__ = ["BY_NAME", "CpuBackend", "FROM_NUMPY", "TO_NUMPY"]
