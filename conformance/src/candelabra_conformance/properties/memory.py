"""Level 0, which all other checks need: allocate, copy in and out, item, compare; and exhausted memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from math import prod
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra.dtypes import ALL, dtype
from candelabra.errors import OutOfMemoryError, UnsupportedDType
from candelabra.library import Instance

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import (
    ALIASED,
    CONTIGUOUS,
    MEMORY,
    MIXED,
    PLACEMENTS,
    REPEATING,
    repeated,
    to_layout,
)
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.transport import Array, payload_to_host, to_device, to_host

SHAPES: Final = ((), (1,), (7,), (2, 3), (2, 3, 5), (1, 1, 4), (0,), (3, 0, 2), (1023,))
TOO_MUCH: Final = 2**50
"""A number of bytes that no device has."""


def _stored(level: int) -> Any:
    def axes(context: Context) -> Iterator[Axis]:
        for d in ALL:
            if d in context.instance.capabilities.storage:
                yield Axis(d, "", level)

    return axes


def bit_patterns(d: dtype, shape: tuple[int, ...]) -> Array:
    """Return values with arbitrary bits, including NaNs with payloads and extremes; bools are 0 and 1."""
    count = int(np.prod(shape, dtype=np.int64))
    random = np.random.Generator(np.random.Philox(7))
    if d.name == "bool":
        return (random.random(count) < 0.5).reshape(shape)
    data = random.integers(0, 256, count * d.itemsize, dtype=np.uint8)
    data[: d.itemsize] = 0xFF
    return data.view(host_dtype(d)).reshape(shape)


@device_property("allocate", _stored(0))
def allocate(context: Context, d: dtype, layout: str) -> None:
    """``empty`` returns separate memory of the requested shape and dtype, also without elements."""
    instance = context.instance
    for shape in SHAPES:
        payloads = [instance.backend.empty(instance.index, shape, d) for _ in range(2)]
        for payload in payloads:
            if payload.shape != shape or type(payload.shape) is not tuple:
                kind = type(payload.shape).__name__
                raise Failure(f"empty(): the payload's shape is the {kind} {payload.shape!r}, the tuple {shape} is due")
            if instance.backend.dtype_of(payload) is not d:
                raise Failure(f"empty(): dtype {instance.backend.dtype_of(payload)}, {d.name} is due")
        with context.device:
            a, b = cd.zeros(shape, dtype=d), cd.ones(shape, dtype=d)
        if instance.capabilities.mutable:
            values = bit_patterns(d, shape)
            first = instance.backend.copy_(payloads[0], to_device(values, instance)._payload)
            instance.backend.copy_(payloads[1], _other(instance, shape, d))
            if not same(payload_to_host(instance.backend, first, shape, d), values):
                raise Failure("empty(): two payloads have one memory")
        if a.device != context.device:
            raise Failure(f"zeros(): on {a.device}, {context.device} is due")
        if np.any(to_host(a) != 0) or np.any(to_host(b) != 1):
            raise Failure(f"zeros() and ones() of shape {list(shape)} do not hold zeros and ones")


@device_property("copy", _stored(0))
def copy(context: Context, d: dtype, layout: str) -> None:
    """Copies to the device and back preserve all bits, and the host's buffer may change after the call."""
    instance = context.instance
    for shape in SHAPES:
        values = bit_patterns(d, shape)
        buffer = bytearray(values.tobytes())
        payload = instance.backend.from_host(instance.index, memoryview(buffer), shape, d)
        buffer[:] = bytes(len(buffer))
        if payload.shape != shape or instance.backend.dtype_of(payload) is not d:
            raise Failure(f"from_host(): {payload.shape} of {instance.backend.dtype_of(payload)}, {shape} {d} is due")
        back = payload_to_host(instance.backend, payload, shape, d)
        if not same(back, values):
            raise Failure(f"from_host() and to_host(): other bits come out of shape {list(shape)}")
        if not instance.capabilities.mutable:
            continue  # such arrays are not writable
        other = instance.backend.empty(instance.index, shape, d)
        written = instance.backend.copy_(other, payload)
        for name, found in (("its result", written), ("its destination", other)):
            if not same(payload_to_host(instance.backend, found, shape, d), values):
                raise Failure(f"copy_(): {name} has other bits, shape {list(shape)}")
        again = payload_to_host(instance.backend, payload, shape, d)
        if not same(again, values):
            raise Failure("copy_() changed its source")
        instance.backend.copy_(written, _other(instance, shape, d))
        if not same(payload_to_host(instance.backend, payload, shape, d), values):
            raise Failure("copy_(): its destination shares memory with its source")


def _other(instance: Instance, shape: tuple[int, ...], d: dtype) -> Any:
    """Return a payload of zeros."""
    return instance.backend.from_host(instance.index, memoryview(bytes(prod(shape) * d.itemsize)), shape, d)


@device_property("item", _stored(0))
def item(context: Context, d: dtype, layout: str) -> None:
    """``item()`` returns the exact Python number, also for extremes."""
    for value in _numbers(d):
        got = to_device(np.asarray(value), context.instance).item()
        want = np.asarray(value).item() if d.name != "bfloat16" else float(value)
        if type(got) is not type(want) or (got != want and not (got != got and want != want)):
            raise Failure(f"item(): got {got!r}, {want!r} is due")


def _numbers(d: dtype) -> list[Any]:
    host = host_dtype(d)
    if d.name == "bool":
        return [host.type(False), host.type(True)]
    if not (d.is_floating_point or d.is_complex):
        info = np.iinfo(host)
        return [host.type(v) for v in (0, 1, info.min, info.max, info.max - 1)]
    return list(np.array([0.0, -0.0, 1.0, -2.5, 0.1, np.inf, -np.inf, np.nan, 65504.0]).astype(host))


@device_property("compare", _stored(0))
def compare(context: Context, d: dtype, layout: str) -> None:
    """``==`` and ``equal`` detect a difference in any element. Dtypes that are only stored raise an error."""
    values = Maker("device", d)(1023)
    other = values.copy()
    other[-1] = not other[-1] if d.name == "bool" else other[-1] + values.dtype.type(1)
    a, b, c = (to_device(v, context.instance) for v in (values, values.copy(), other))
    try:
        if not cd.equal(a, b) or cd.equal(a, c):
            raise Failure("equal(): tells wrongly whether tensors are equal")
        if not same(to_host(a == c), values == other):
            raise Failure("==: tells wrongly which elements are equal")
    except (UnsupportedDType, NotImplementedError):
        if context.computes(d):
            raise


def _laid_out(context: Context) -> Iterator[Axis]:
    for d in ALL:
        if d in context.instance.capabilities.storage:
            for layout in MEMORY:
                if layout not in (ALIASED, MIXED):  # those of several operands
                    yield Axis(d, layout, 1)


@device_property("roundtrip", _laid_out)
def roundtrip(context: Context, d: dtype, layout: str) -> None:
    """A view of any layout is copied to the host in C order, and within the device, without a change of its bits."""
    for shape in ((7,), (2, 3), (4, 3, 5), (3, 0, 2), (1, 6)):
        values = bit_patterns(d, shape)
        if layout in REPEATING and values.ndim >= PLACEMENTS[layout].dims and values.size:
            values = np.ascontiguousarray(repeated(values, layout))
        tensor = to_layout(values, layout, context.instance)
        for name, got in (
            ("to_host()", tensor), ("clone()", tensor.clone()), ("contiguous()", tensor.contiguous()),
            ("copy_()", cd.empty(shape, dtype=d, device=context.device).copy_(tensor)),
        ):  # fmt: skip
            if not same(to_host(got), values):
                raise Failure(f"{name} of a {layout} tensor of shape {list(shape)}: other bits come out")
        if layout not in (*REPEATING, CONTIGUOUS):
            tensor.copy_(to_device(values[::-1].copy(), context.instance))
            if not same(to_host(tensor), values[::-1].copy()):
                raise Failure(f"copy_() into a {layout} tensor of shape {list(shape)}: other bits come out")


def _once(level: int) -> Any:
    def axes(context: Context) -> Iterator[Axis]:
        yield Axis(None, "", level)

    return axes


@device_property("overlap", _once(1))
def overlap(context: Context, d: dtype | None, layout: str) -> None:
    """A copy between overlapping parts of one tensor has the same result as with a temporary copy of the source."""
    main = next(d for d in ALL if d in context.instance.capabilities.storage and d.name != "bool")
    values = Maker("device", main)(64)
    for destination, source in (
        (slice(0, 60), slice(4, 64)), (slice(4, 64), slice(0, 60)), (slice(0, 32), slice(16, 48)),
    ):  # fmt: skip
        tensor = to_device(values, context.instance)
        tensor[destination].copy_(tensor[source])
        want = values.copy()
        want[destination] = values[source]
        if not same(to_host(tensor), want):
            raise Failure(f"copy_() from {source} to {destination} of one tensor: the parts overlap, and it shows")


@device_property("out-of-memory", _once(2))
def out_of_memory(context: Context, d: dtype | None, layout: str) -> None:
    """An allocation that is too large raises the typed error, and the device remains usable."""
    instance = context.instance
    held = next(d for d in ALL if d in instance.capabilities.storage)
    try:
        cd.empty((TOO_MUCH,), dtype=held, device=context.device)
    except OutOfMemoryError:
        pass
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error} is raised, OutOfMemoryError is due") from error
    else:
        raise Failure(f"empty() of {TOO_MUCH} elements returned a tensor")
    copy(context, held, CONTIGUOUS)


@device_property("memory", _once(2))
def memory(context: Context, d: dtype | None, layout: str) -> None:
    """``allocated`` increases by the size of new tensors and decreases when they are freed. A peak that can be reset
    does not count what was freed before.
    """
    instance = context.instance
    if "allocated" not in instance.backend.memory(instance.index):
        raise NotApplicable("the backend does not count its memory")
    held = next(d for d in ALL if d in instance.capabilities.storage)
    gc.collect()
    instance.backend.synchronize(instance.index)
    before = instance.backend.memory(instance.index)["allocated"]
    size = 1 << 20
    tensor = to_device(np.zeros(size // held.itemsize, host_dtype(held)), instance)
    instance.backend.synchronize(instance.index)
    during = instance.backend.memory(instance.index)["allocated"]
    if during - before < size:
        raise Failure(f"memory(): allocated rose by {during - before} bytes for a tensor of {size}")
    del tensor
    gc.collect()
    instance.backend.synchronize(instance.index)
    after = instance.backend.memory(instance.index)["allocated"]
    if after > before:
        raise Failure(f"memory(): {after - before} bytes stay allocated after their tensor is gone")
    if instance.backend.reset_peak(instance.index):
        found = instance.backend.memory(instance.index)
        if found["peak"] > found["allocated"]:
            raise Failure(f"reset_peak(): the peak is {found['peak']} bytes, {found['allocated']} are allocated")
