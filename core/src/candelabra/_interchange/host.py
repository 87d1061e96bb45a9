"""Convert tensors to bytes in the host's memory and back, for files, pickles and Python numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod

from candelabra._annotations import Any
from candelabra._device import Instance, open_device
from candelabra._dispatch.tracing import note_break, tracer_here
from candelabra._keys import INFERENCE, LAYOUT_MASK, state
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import BY_NAME, dtype

Bytes = bytes | bytearray | memoryview


def host_view(tensor: Tensor) -> memoryview:
    """Return the elements as bytes in C order and native endianness, without a copy if possible."""
    note_break("the elements of a tensor are read (tolist, print, numpy)")
    tensor._fresh()
    if tensor._keys & LAYOUT_MASK:
        raise TypeError("a sparse tensor has no elements in memory to read; use to_dense(), or its indices and values")
    return tensor._instance.backend.to_host(tensor._payload)


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """Copy the elements to bytes in C order and native endianness. Complex numbers are (real, imaginary) pairs."""
    return bytes(host_view(tensor))


def tensor_from_bytes(data: Bytes, dtype_name: str | dtype, shape: Sequence[int], device: Any = None) -> Tensor:
    """Create a tensor from bytes in C order.

    Raises ``ValueError`` for an unknown dtype name, and if the number of bytes does not match shape and dtype.
    """
    if isinstance(dtype_name, dtype):
        d = dtype_name
    elif dtype_name in BY_NAME:
        d = BY_NAME[dtype_name]
    else:
        raise ValueError(f"dtype {dtype_name!r} is not one of {', '.join(BY_NAME)}")
    sizes = tuple(shape)
    view = memoryview(data).cast("B")
    if len(view) != prod(sizes) * d.itemsize:
        raise ValueError(
            f"a tensor of shape {list(sizes)} and {d} takes {prod(sizes) * d.itemsize} bytes, got {len(view)}"
        )
    return upload(view, d, sizes, open_device(device))


def upload(view: memoryview, d: dtype, shape: tuple[int, ...], instance: Instance) -> Tensor:
    """Create a tensor on a device from bytes whose number is known to be correct."""
    keys = instance.keys_for(d)
    payload = instance.backend.from_host(instance.index, view, shape, d)
    tracer = tracer_here()
    if tracer is not None:
        payload = tracer.constant(payload, keys)
    return wrap(payload, keys | state.bits & INFERENCE)


def adopted(view: memoryview, d: dtype, shape: tuple[int, ...], instance: Instance) -> Tensor:
    """Create a tensor over writable memory that nothing else uses; on a device with memory of its own, a copy."""
    numpy = sys.modules.get("numpy")  # a backend over the host's memory has imported it
    if numpy is None or view.readonly or not len(view) or not instance.backend.capabilities.host:
        return upload(view, d, shape, instance)
    if d.name == "bfloat16":
        import ml_dtypes

        array = numpy.frombuffer(view, ml_dtypes.bfloat16)
    else:
        array = numpy.frombuffer(view, d.name)
    payload = instance.backend.from_dlpack(array.reshape(shape), instance.index, None) if array.flags.aligned else None
    if payload is None:
        return upload(view, d, shape, instance)
    return wrap(payload, instance.keys_for(d) | state.bits & INFERENCE)
