"""Asynchronous work: streams, late errors, several threads on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import ALL, dtype

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.threads import in_threads
from candelabra_conformance.transport import Array, to_device, to_host

ROUNDS: Final = 20
THREADS: Final = 4
SIZE: Final = 4099


def _once(level: int) -> Callable[[Context], Iterator[Axis]]:
    def axes(context: Context) -> Iterator[Axis]:
        yield Axis(None, "", level)

    return axes


def _whole(context: Context) -> Array:
    """Return small integers in a dtype that the device computes in, so that their sums are exact."""
    from candelabra_conformance.numpy_dtypes import host_dtype

    chosen = next((d for d in ALL if d.name in ("float32", "int64", "int32", "float16") and context.computes(d)), None)
    if chosen is None:
        raise NotApplicable("the device computes in none of the usual dtypes")
    return (np.arange(SIZE) % 5).astype(host_dtype(chosen))


@device_property("synchronize", _once(2))
def synchronize(context: Context, d: dtype | None, layout: str) -> None:
    """A chain of calls and writes without a wait has the right values, whenever the host reads them."""
    values = _whole(context)
    for length in range(1, ROUNDS):
        tensor = to_device(values, context.instance)
        total = tensor
        for _ in range(length):
            total = total + tensor
            tensor.mul_(1)
        tensor.zero_()
        moved = _moved(context, total)
        if not same(to_host(total), values * values.dtype.type(length + 1)):
            raise Failure(f"a chain of {length} sums, whose operand was overwritten after it: other values come out")
        if not same(moved, to_host(total)):
            raise Failure(f"a chain of {length} sums without a wait reaches another device with other values")
    context.instance.backend.synchronize(context.instance.index)


def _moved(context: Context, tensor: Tensor) -> Array:
    """Return the values after a move to another device of the type, if there is one."""
    for index in range(len(context.instance.backend.devices())):
        if index != context.instance.index:
            return to_host(tensor.to(cd.device(context.device.type, index)))
    return to_host(tensor)


@device_property("streams", _once(2))
def streams(context: Context, d: dtype | None, layout: str) -> None:
    """The work of a stream runs in order, and after an event or a synchronisation another stream sees its results."""
    backend, index = context.instance.backend, context.instance.index
    try:
        first, second = backend.stream(index), backend.stream(index)
    except NotImplementedError as error:
        raise NotApplicable(str(error)) from error
    values = _whole(context)
    want = values * values.dtype.type(4)
    for _ in range(ROUNDS):
        tensor = to_device(values, context.instance)
        with first:
            doubled = tensor + tensor
            fourfold = doubled + doubled
        first.synchronize()
        if not same(to_host(fourfold), want):
            raise Failure("after synchronize() of its stream a result is not there")
        with first:
            doubled = tensor + tensor
            event = first.record()
        event.synchronize()
        with second:
            fourfold = doubled + doubled
        second.synchronize()
        if not same(to_host(fourfold), want):
            raise Failure("after an event's synchronize() another stream does not see what was recorded before it")
        with first:
            fourfold = (tensor + tensor) + (tensor + tensor)
        backend.synchronize(index)
        if not same(to_host(fourfold), want):
            raise Failure("after synchronize() of the device a stream's result is not there")


@device_property("late-error", _once(2))
def late_error(context: Context, d: dtype | None, layout: str) -> None:
    """An error caused by values is raised once, by the call or the next synchronisation, with its reason."""
    instance = context.instance
    with context.device:
        table = to_device(_whole(context), instance)
        places = cd.tensor([0, SIZE + 5], dtype=cd.int64)
        try:
            to_host(table.index_select(0, places))
            instance.backend.synchronize(instance.index)
        except (IndexError, RuntimeError) as error:
            if "index" not in str(error):
                raise Failure(f"the error does not say what failed: {error}") from error
        else:
            raise Failure("an index out of range raised nothing")
    instance.backend.synchronize(instance.index)
    synchronize(context, d, layout)


@device_property("threads", _once(3))
def threads(context: Context, d: dtype | None, layout: str) -> None:
    """Threads that allocate, compute and copy concurrently on one device do not affect each other."""
    values = _whole(context)

    def work(own: int) -> None:
        for turn in range(ROUNDS):
            mine = values + values.dtype.type(own)
            tensor = to_device(mine, context.instance)
            total: Any = tensor + tensor
            total.add_(tensor)
            if not same(to_host(total), mine * values.dtype.type(3)):
                raise Failure(f"thread {own}, turn {turn}: other values come out")

    in_threads(THREADS, work)
