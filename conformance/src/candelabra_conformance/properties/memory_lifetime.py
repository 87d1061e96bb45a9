"""Memory that outlives a call: results in great number, handed-over buffers, exported capsules, every device index."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import ALL, dtype

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.properties.effects import differing, same
from candelabra_conformance.properties.memory import allocate, bit_patterns, copy
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.properties.result_lifetime import ALIVE, other_devices
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.transport import Array, payload_to_host, to_device, to_host

LENGTHS: Final = (17, 65_539, 1_048_579)
"""Numbers of bytes below and beyond the sizes of usual staging buffers, 64 KiB and 1 MiB."""
MANY: Final = 64
"""The number of tensors that are created after a source is freed, to reuse its memory."""


def _first_stored(context: Context) -> dtype:
    """Return the first dtype that the device stores and whose values can differ by more than a bit."""
    return next(d for d in ALL if d in context.instance.capabilities.storage and d.name != "bool")


def _once(level: int) -> Callable[[Context], Iterator[Axis]]:
    def axes(context: Context) -> Iterator[Axis]:
        yield Axis(None, "", level)

    return axes


# -- buffers of the host ----------------------------------------------------------------------------------------------
COPIES: Final[dict[str, Callable[[Array, Any], Tensor]]] = {
    "tensor(array)": lambda a, device: cd.tensor(a, device=device),
    "asarray(array, copy=True)": lambda a, device: cd.asarray(a, device=device, copy=True),
    "from_numpy(array).to(device, copy=True)": lambda a, device: cd.from_numpy(a).to(device, copy=True),
    "copy_(from_numpy(array))": lambda a, device: cd.empty(a.shape, dtype=cd.from_numpy(a).dtype, device=device).copy_(
        cd.from_numpy(a)
    ),
}
"""The ways to copy an array of the host to a device."""


@device_property("handed-over", _once(1))
def handed_over(context: Context, d: dtype | None, layout: str) -> None:
    """A buffer of the host may change as soon as the call returns, whatever its size, and so may what was copied out.

    The second holds for a tensor that was copied to the reference device and then overwritten on its own.
    """
    held = _first_stored(context)
    for length in LENGTHS:
        values = bit_patterns(held, (length // held.itemsize + 1,))
        _through_the_contract(context, held, values)
        for name, copied in COPIES.items():
            array = values.copy()
            tensor = copied(array, context.device)
            array[...] = differing(array)
            if not same(to_host(tensor), values):
                raise Failure(f"{name} of {values.nbytes} bytes: a later change of the array changes the tensor")
        if held in context.reference.backend.capabilities.storage:
            there = tensor.to(context.reference.device, copy=True)
            tensor.copy_(to_device(differing(values), context.instance))
            if not same(to_host(there), values):
                raise Failure(f"{values.nbytes} bytes that were copied to {there.device} change with their source")


def _through_the_contract(context: Context, d: dtype, values: Array) -> None:
    """Check ``from_host`` itself, with two buffers whose copies may still be under way."""
    instance = context.instance
    buffers = [bytearray(values.tobytes()), bytearray(differing(values).tobytes())]
    payloads = [instance.backend.from_host(instance.index, memoryview(b), values.shape, d) for b in buffers]
    for buffer in buffers:
        buffer[:] = bytes(len(buffer))
    for payload, due in zip(payloads, (values, differing(values)), strict=True):
        if not same(payload_to_host(instance.backend, payload, values.shape, d), due):
            raise Failure(f"from_host() of {values.nbytes} bytes: a later change of the buffer changes the payload")


# -- many results -----------------------------------------------------------------------------------------------------
@device_property("alive", _once(2))
def many_alive(context: Context, d: dtype | None, layout: str) -> None:
    """A thousand tensors that are computed, copied and allocated one after the other exist at once and stay apart."""
    held = next((d for d in ALL if d.name in ("int64", "int32", "float32") and context.computes(d)), None)
    if held is None:
        raise NotApplicable("the device computes in none of the usual dtypes")
    zeros = to_device(Maker("device", held)(5) * 0, context.instance)
    kept = []
    for number in range(ALIVE):
        kept.append(zeros + number)
        kept.append(kept[-1].clone())
        kept.append(cd.full((5,), number, dtype=held, device=context.device))
    for place, tensor in enumerate(kept):
        if np.any(to_host(tensor) != place // 3):
            raise Failure(f"tensor {place + 1} of {len(kept)} that exist at once has the values of another one")


# -- exported memory --------------------------------------------------------------------------------------------------
@device_property("dlpack-lifetime", _once(2))
def dlpack_lifetime(context: Context, d: dtype | None, layout: str) -> None:
    """A DLPack capsule keeps its memory after the tensor that it was made from is gone, and so does what imports it."""
    instance = context.instance
    if instance.capabilities.dlpack is None:
        raise NotApplicable("the backend claims no DLPack")
    held = next(
        (d for d in ALL if d.name in ("float32", "int32", "uint8") and d in instance.capabilities.storage), None
    )
    if held is None:
        raise NotApplicable("the device stores none of the usual dtypes")
    values = bit_patterns(held, (4099,))
    exporter = _Exporter(to_device(values, instance))
    _overwritten_after_free(context, values)
    try:
        back = cd.from_dlpack(exporter)
    except (BufferError, NotImplementedError, RuntimeError, TypeError) as error:
        raise NotApplicable(f"{held.name} does not go through DLPack here: {error}") from error
    if not same(to_host(back), values):
        raise Failure("a DLPack capsule has other values once its source is gone")
    del exporter
    _overwritten_after_free(context, values)
    if not same(to_host(back), values):
        raise Failure("a tensor that was imported from a DLPack capsule has other values once the capsule is gone")


class _Exporter:
    """An exporter that keeps only the capsule of a tensor, and gives it away once."""

    def __init__(self, tensor: Tensor) -> None:
        self.device = tensor.device
        self.place = tensor.__dlpack_device__()
        self.capsule: Any = tensor.__dlpack__()

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.place

    def __dlpack__(self, **options: Any) -> Any:
        capsule, self.capsule = self.capsule, None
        return capsule


def _overwritten_after_free(context: Context, values: Array) -> None:
    """Create tensors of the same size as a freed one, which may reuse its memory."""
    gc.collect()
    context.instance.backend.synchronize(context.instance.index)
    for _ in range(MANY):
        to_device(np.zeros_like(values), context.instance)
    gc.collect()


# -- every device index -----------------------------------------------------------------------------------------------
def _stored_elsewhere(context: Context) -> Iterator[Axis]:
    if len(context.instance.backend.devices()) > 1:
        for d in ALL:
            if d in context.instance.capabilities.storage:
                yield Axis(d, "", 1)


@device_property("indices", _stored_elsewhere)
def every_index(context: Context, d: dtype, layout: str) -> None:
    """Every other device of the type allocates, and copies from and to the host, like the one under test."""
    for instance in other_devices(context):
        other = Context(str(instance.device), context.contributions)
        if d not in other.instance.capabilities.storage:
            continue
        for check in (allocate, copy):
            try:
                check(other, d, layout)
            except Failure as failure:
                raise Failure(f"on {instance.device}: {failure}") from None
            except Exception as error:
                raise Failure(f"on {instance.device}: {type(error).__name__}: {error}") from error
