"""The two backends."""

from collections.abc import Mapping, Sequence
from typing import Any

import candelabra_arrayapi
import numpy as np
from candelabra.backend import Backend, Capabilities, DeviceInfo, Kernel
from candelabra.dtypes import ALL, dtype
from candelabra.layout import contiguous_strides
from candelabra.operator.record import OPERATORS
from numpy.lib.stride_tricks import as_strided

from tests.lantern.arrays import Glow, Queue, owned, read

HELD = {d: np.dtype(d.name) for d in ALL if d.name not in ("float64", "complex128", "bfloat16")}
NUMPY = {d: np.dtype(d.name) for d in ALL if d.name != "bfloat16"}  # inside a kernel, as a wider register would be
NAMES = {n: d for d, n in HELD.items()}
MISSING = {"cumsum", "cumprod", "sinh", "cosh", "argmin", "expm1", "atan2"}
"""Operators that these devices have no kernel for, so that they fall back."""


class LanternBackend(Backend):
    """Two devices with strided arrays that can be written to."""

    name = "lantern"
    capabilities = Capabilities(storage=frozenset(HELD), arithmetic=frozenset(HELD), asynchronous=True)

    def __init__(self) -> None:
        self.queues = [Queue(), Queue()]

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(f"{self.name} number {i}", {"wick": "short"}) for i in range(len(self.queues))]

    def kernels(self) -> Mapping[str, Kernel]:
        table = candelabra_arrayapi.kernels(np, NUMPY)
        return {name: self.queued(name, k) for name, k in table.items() if name in OPERATORS and name not in MISSING}

    def queued(self, name: str, kernel: Kernel) -> Kernel:
        """A kernel on payloads that returns before anybody may look at its result."""
        parameters = OPERATORS[name].schema.parameters
        place = next((i for i, p in enumerate(parameters) if p.kind == "device"), None)

        def run(*args: Any) -> Any:
            device = args[place] if place is not None else first(args)._device
            inputs = [read(a, device) for a in args]
            failed = None
            try:
                with np.errstate(all="ignore"):
                    result = kernel(*inputs)
            except ZeroDivisionError as error:  # depends on values, which a device sees too late to tell its caller
                failed, result = error, np.zeros(np.broadcast_shapes(*map(np.shape, inputs)), inputs[0].dtype)
            several = isinstance(result, tuple)
            made = [Glow(self.fitting(owned(r)), device, error=failed) for r in (result if several else (result,))]
            for glow in made:
                self.queues[device].put(name, glow)
            return tuple(made) if several else made[0]

        return run

    @staticmethod
    def fitting(array: np.ndarray) -> np.ndarray:
        """The array, which must have a dtype that the device holds: a kernel may not smuggle out a wider one."""
        assert array.dtype in NAMES, f"a kernel made {array.dtype}"
        return array

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Glow:
        return Glow(np.zeros(shape, HELD[dtype]), index)

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Glow:
        return Glow(np.frombuffer(data, HELD[dtype]).reshape(shape).copy(), index)

    def to_host(self, payload: Glow) -> memoryview:
        self.queues[payload._device].drain()
        return memoryview(np.ascontiguousarray(payload._hidden).reshape(-1).view(np.uint8))

    def dtype_of(self, payload: Glow) -> dtype:
        return NAMES[payload._hidden.dtype]

    def copy_(self, destination: Glow, source: Glow) -> Glow:
        np.copyto(destination._hidden, read(source, destination._device))
        return destination

    def synchronize(self, index: int) -> None:
        self.queues[index].drain()

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        return {"allocated": 8 * len(self.queues[index].pending)}

    def layout(self, payload: Glow) -> tuple[tuple[int, ...], int]:
        array, storage = payload._hidden, payload._storage
        size = array.itemsize
        if array.size <= 1:
            steps = contiguous_strides(array.shape)
        else:
            steps = tuple(s // size for s in array.strides)
        return steps, (array.__array_interface__["data"][0] - storage.__array_interface__["data"][0]) // size

    def restride(self, payload: Glow, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Glow:
        storage = payload._storage
        flat = as_strided(storage, (storage.size,), (storage.itemsize,)) if storage.size else storage.reshape(-1)
        steps = [s * storage.itemsize for s in strides]
        return Glow(as_strided(flat[offset:], shape, steps), payload._device, storage)


class EmberBackend(LanternBackend):
    """One device whose arrays never change and have no strides: every view is an array of its own."""

    name = "ember"
    capabilities = Capabilities(
        storage=frozenset(HELD), arithmetic=frozenset(HELD), asynchronous=True, strided=False, mutable=False
    )

    def __init__(self) -> None:
        self.queues = [Queue()]

    def kernels(self) -> Mapping[str, Kernel]:
        views = {n: self.queued(n, self.viewed(n)) for n, op in OPERATORS.items() if op.geometry is not None}
        return {**super().kernels(), **views, "index_put": self.queued("index_put", put)}

    @staticmethod
    def viewed(name: str) -> Kernel:
        """A view as a copy: the record's geometry over C order."""
        geometry = OPERATORS[name].geometry

        def kernel(x: Any, *args: Any) -> Any:
            x = np.ascontiguousarray(x).reshape(x.shape)
            shape, strides, offset = geometry(x.shape, contiguous_strides(x.shape), 0, *args)
            return as_strided(x.reshape(-1)[offset:], shape, [s * x.itemsize for s in strides]).copy()

        return kernel

    def copy_(self, destination: Glow, source: Glow) -> Glow:
        raise AssertionError("the core wrote to an array that never changes")


def put(x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """``index_put`` into a copy."""
    out = x.copy()
    where = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, where, values)
    else:
        out[where] = values
    return out


def first(args: Sequence[Any]) -> Glow:
    """The first payload among a kernel's arguments."""
    for value in args:
        if isinstance(value, Glow):
            return value
        if isinstance(value, (list, tuple)) and any(isinstance(v, Glow) for v in value):
            return first(value)
    raise AssertionError("a kernel was called without a payload")
