"""Tensors as Python numbers and nested lists."""

from __future__ import annotations

import struct

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import instance_of_key
from candelabra._dispatch.tracing import note_break
from candelabra._interchange.host import host_view
from candelabra._keys import UNCERTAIN, active
from candelabra.dtypes import ALL, DTYPE_MASK, dtype

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

_READERS: Final[dict[int, Any]] = {
    d.bit: struct.Struct("=" + d.format).unpack for d in ALL if d.format and not d.is_complex
}
"""Functions that read one number from its bytes, by the dtype's bit."""


def unpacked(data: memoryview, d: dtype) -> list[Any]:
    """Return the numbers in ``data`` as Python's bool, int, float or complex."""
    if d.is_half and d.format:  # a format that memoryview does not support
        return list(struct.unpack(f"{len(data) // 2}{d.format}", data))
    if not d.format:  # bfloat16, the upper half of a float32
        words = memoryview(data).cast("B").cast("H").tolist()
        return list(struct.unpack(f"{len(words)}f", struct.pack(f"{len(words)}I", *[w << 16 for w in words])))
    parts: list[Any] = memoryview(data).cast("B").cast(d.format).tolist() if len(data) else []  # type: ignore[call-overload]
    if d.is_complex:
        return list(map(complex, parts[::2], parts[1::2]))
    return parts


def item(tensor: Tensor) -> Any:
    """Return the only element as a Python number. Raise ``RuntimeError`` for another number of elements."""
    if active:
        note_break("the value of a tensor is read (item, bool, float, int)")
    keys = tensor._keys
    if keys & UNCERTAIN:
        keys = tensor._fresh()._keys
    payload = tensor._payload
    if payload.shape:
        count = tensor.numel()
        if count != 1:
            raise RuntimeError(f"a Tensor with {count} elements cannot be converted to Scalar")
    data = instance_of_key(keys).backend.to_host(payload)
    read = _READERS.get(keys & DTYPE_MASK)
    return read(data)[0] if read is not None else unpacked(data, tensor.dtype)[0]


def nested_list(tensor: Tensor) -> Any:
    """Return the elements as nested lists, one level per dim, or as a number for a 0-d tensor."""
    values = unpacked(host_view(tensor), tensor.dtype)
    shape = tuple(tensor._payload.shape)
    if not shape:
        return values[0]
    if 0 in shape:
        return _empty(shape)
    for size in shape[:0:-1]:
        values = [values[i : i + size] for i in range(0, len(values), size)]
    return values


def _empty(shape: tuple[int, ...]) -> list[Any]:
    return [_empty(shape[1:]) for _ in range(shape[0])] if shape and shape[0] else []
