"""A tensor as bytes in the host's memory and back: what files, pickles and Python numbers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import Any
from candelabra._device import Instance, open_device
from candelabra._keys import INFERENCE, state
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import BY_NAME, dtype

Bytes = bytes | bytearray | memoryview


def host_view(tensor: Tensor) -> memoryview:
    """The elements as bytes in C order, native endianness; no copy where the backend needs none."""
    tensor._fresh()
    return tensor._instance.backend.to_host(tensor._payload)


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """The elements as bytes in C order, native endianness: a copy. Complex numbers are (real, imaginary) pairs."""
    return bytes(host_view(tensor))


def tensor_from_bytes(data: Bytes, dtype_name: str | dtype, shape: Sequence[int], device: Any = None) -> Tensor:
    """A new tensor of bytes in C order.

    Raises ``ValueError`` for a dtype name that does not exist, and where the bytes are too few or too many.
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
    return place(view, d, sizes, open_device(device))


def place(view: memoryview, d: dtype, shape: tuple[int, ...], instance: Instance) -> Tensor:
    """A new tensor on a device, of bytes that are known to be as many as they must be."""
    keys = instance.keys_for(d)
    return wrap(instance.backend.from_host(instance.index, view, shape, d), keys | state.bits & INFERENCE)
