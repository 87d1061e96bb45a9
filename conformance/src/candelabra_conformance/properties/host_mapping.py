"""Payloads in the host's memory (``Backend.map_host``), which collectives over the host read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.backend import Backend, HostMapping
from candelabra.dtypes import ALL, dtype

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.memory import bit_patterns
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.threads import in_threads
from candelabra_conformance.transport import Array, to_device, to_host

LARGE: Final = 70_001
"""Elements of a large payload: more bytes than a device keeps for small copies, and no multiple of a block."""
SHAPES: Final = ((), (1,), (7,), (2, 3, 5), (3, 0, 2), (LARGE,))
LENGTH: Final = 4099
LAYOUTS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "the first half": lambda x: x[:2000],
    "a slice that starts later": lambda x: x[1000:3001],
    "every second element": lambda x: x[::2],
    "a transposed matrix": lambda x: x[:4096].view(64, 64).t(),
}


def _once(context: Context) -> Iterator[Axis]:
    yield Axis(None, "", 2)


@device_property("host-mapping", _once)
def host_mapping(context: Context, d: dtype | None, layout: str) -> None:
    """A mapping has the content as of the work submitted before, and what it writes is there for the work after it."""
    instance = context.instance
    if type(instance.backend).map_host is Backend.map_host:
        raise NotApplicable("the backend has no map_host()")
    plain = to_device(_numbers(context), instance)
    if instance.backend.map_host(plain._payload, instance.index, True, False) is None:
        raise NotApplicable("map_host() maps no payload of the usual dtypes")
    checks = [_contents, _views, _pending_work, _streams]
    if instance.capabilities.mutable:
        checks += [_writes, _writes_after_work, _slices, _several, _one_after_another]
    else:
        checks += [_immutable]
    for check in checks:
        check(context)


def _numbers(context: Context) -> Array:
    """Return small integers in a dtype that the device computes in."""
    chosen = next((d for d in ALL if d.name in ("float32", "int64", "int32", "float16") and context.computes(d)), None)
    if chosen is None:
        raise NotApplicable("the device computes in none of the usual dtypes")
    return (np.arange(LENGTH) % 5).astype(host_dtype(chosen))


def _mapped(context: Context, tensor: Tensor, read: bool = True, write: bool = True) -> HostMapping | None:
    """Map a tensor's payload, or return None if the backend does not."""
    instance = context.instance
    found = instance.backend.map_host(tensor._fresh()._payload, instance.index, read, write)
    if found is not None and not isinstance(found, HostMapping):
        raise Failure(f"map_host() returned a {type(found).__name__}, a HostMapping or None is due")
    return found


def _array(mapping: HostMapping, like: Array, write: bool = True) -> Array:
    """Return the memory of a mapping as an array of one dim."""
    memory: Any = mapping.wait()
    if not isinstance(memory, memoryview) or memory.nbytes != like.nbytes or not memory.contiguous:
        size = getattr(memory, "nbytes", "no")
        raise Failure(
            f"map_host(): wait() returned a {type(memory).__name__} of {size} bytes, a contiguous memoryview of "
            f"{like.nbytes} bytes is due"
        )
    if write and memory.readonly:
        raise Failure("map_host(): a mapping to write has memory that cannot be written")
    return np.frombuffer(memory, like.dtype)


def _expect(got: Array, want: Array, text: str) -> None:
    if not same(got.reshape(-1), want.reshape(-1)):
        raise Failure(f"map_host(): {text}")


# -- reading ----------------------------------------------------------------------------------------------------------
def _contents(context: Context) -> None:
    """Every dtype and shape, bit for bit; a mapping to read changes nothing, with and without an end."""
    for d in ALL:
        for shape in SHAPES if d in context.instance.capabilities.storage else ():
            values = bit_patterns(d, shape)
            tensor = to_device(values, context.instance)
            for ends in (False, True):
                mapping = _mapped(context, tensor, write=False)
                if mapping is None:
                    continue
                _expect(_array(mapping, values, False), values, f"other bits of {d.name}{list(shape)} are mapped")
                if ends:
                    mapping.unmap()
                del mapping
                _expect(to_host(tensor), values, f"a mapping to read has changed {d.name}{list(shape)}")


def _views(context: Context) -> None:
    """Parts of memory, and other orders of elements: the bytes are in C order, if the backend maps them at all."""
    values = _numbers(context)
    for name, view in LAYOUTS.items():
        tensor = view(to_device(values, context.instance))
        want = to_host(tensor)
        mapping = _mapped(context, tensor, write=False)
        if mapping is not None:
            _expect(_array(mapping, want, False), want, f"other bits of {name} are mapped")
            mapping.unmap()


def _pending_work(context: Context) -> None:
    """Any thread waits for the content, and finds the results of the work that was submitted before the mapping."""
    values = _numbers(context)
    tensor = to_device(values, context.instance)
    total = tensor
    for _ in range(7):
        total = total + tensor
    mapping = _mapped(context, total, write=False)
    if mapping is None:
        return
    want = values * values.dtype.type(8)

    def waits(_: int) -> None:
        _expect(_array(mapping, want, False), want, "work that was submitted before the mapping is missing")

    in_threads(2, waits)
    mapping.unmap()


def _streams(context: Context) -> None:
    """The order is that of the current stream: its work before a mapping, and its work after the end of one."""
    try:
        stream: AbstractContextManager[Any] = context.instance.backend.stream(context.instance.index)
    except NotImplementedError:
        stream = nullcontext()
    values = _numbers(context)
    tensor = to_device(values, context.instance)
    context.instance.backend.synchronize(context.instance.index)
    with stream:
        doubled = tensor + tensor
        mapping = _mapped(context, doubled, write=context.instance.capabilities.mutable)
        if mapping is None:
            return
        want = values * values.dtype.type(2)
        array = _array(mapping, want, context.instance.capabilities.mutable)
        _expect(array, want, "work of the current stream that was submitted before the mapping is missing")
        if context.instance.capabilities.mutable:
            array[:] = 1
        mapping.unmap()
        after = to_host(doubled + doubled)
    due = np.full_like(want, 2) if context.instance.capabilities.mutable else want + want
    _expect(after, due, "work of the current stream after the end of a mapping does not find what was written")


# -- writing ----------------------------------------------------------------------------------------------------------
def _writes(context: Context) -> None:
    """What is written to a mapping is there for calls and copies after its end, also where it was not read before."""
    values = _numbers(context)
    for read in (True, False):
        tensor = to_device(values, context.instance)
        mapping = _mapped(context, tensor, read=read)
        if mapping is None:
            continue
        array = _array(mapping, values)
        want = values + values.dtype.type(2)
        array[:] = array + array.dtype.type(2) if read else want
        mapping.unmap()
        after = tensor + tensor
        _expect(to_host(tensor), want, "what was written to a mapping is not in the payload")
        _expect(to_host(after), want * 2, "a call after the end of a mapping does not find what was written")


def _writes_after_work(context: Context) -> None:
    """Work that was submitted before a mapping does not overwrite what the mapping writes."""
    values = _numbers(context)
    tensor = to_device(values, context.instance)
    total = tensor
    for _ in range(7):
        total = total + tensor
    mapping = _mapped(context, total, read=False)
    if mapping is not None:
        _array(mapping, values)[:] = 3
        mapping.unmap()
        _expect(to_host(total), np.full_like(values, 3), "work before a mapping has overwritten what it wrote")


def _slices(context: Context) -> None:
    """A mapping of a slice leaves the other elements alone, which are written meanwhile."""
    values = _numbers(context)
    tensor = to_device(values, context.instance)
    middle = tensor[1000:2000]
    mapping = _mapped(context, middle)
    if mapping is None:
        return
    _array(mapping, values[1000:2000])[:] = 7
    tensor[:1000].fill_(1)
    tensor[2000:].fill_(2)
    mapping.unmap()
    want = np.concatenate([np.full(n, value, values.dtype) for n, value in ((1000, 1), (1000, 7), (LENGTH - 2000, 2))])
    _expect(to_host(tensor), want, "the mapping of a slice has changed other elements, or they it")


def _several(context: Context) -> None:
    """Mappings that exist at once have separate memory, in whatever order they end."""
    values = _numbers(context)
    tensors = [to_device(values, context.instance) for _ in range(3)]
    mappings = [mapping for mapping in (_mapped(context, each) for each in tensors) if mapping is not None]
    if len(mappings) < len(tensors):
        return
    for number, mapping in enumerate(mappings):
        _array(mapping, values)[:] = number + 10
    for mapping in reversed(mappings):
        mapping.unmap()
    for number, tensor in enumerate(tensors):
        _expect(to_host(tensor), np.full_like(values, number + 10), "mappings that exist at once share memory")


def _one_after_another(context: Context) -> None:
    """The memory of a mapping that has ended is not written again before its content has arrived."""
    values = _numbers(context)
    tensors = [to_device(values, context.instance) for _ in range(3)]
    for number, tensor in enumerate(tensors):
        mapping = _mapped(context, tensor, read=False)
        if mapping is not None:
            _array(mapping, values)[:] = number + 10
            mapping.unmap()
            for other in tensors[number + 1 :]:
                later = _mapped(context, other)
                if later is not None:
                    later.unmap()
    for number, tensor in enumerate(tensors):
        _expect(to_host(tensor), np.full_like(values, number + 10), "a later mapping has overwritten an earlier one")


def _immutable(context: Context) -> None:
    """Arrays that never change are not mapped to be written."""
    tensor = to_device(_numbers(context), context.instance)
    for read in (True, False):
        if _mapped(context, tensor, read=read) is not None:
            raise Failure("map_host(): an array that never changes is mapped to be written, None is due")
