"""Tensors over the memory of other objects: NumPy arrays, exporters of DLPack, buffers."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import open_device
from candelabra._interchange import dlpack
from candelabra._interchange import numpy as arrays
from candelabra._interchange.host import upload
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Tensor


@public(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """Return a tensor over the memory of a NumPy array: a write to one changes the other.

    A read-only array is copied, with a warning. Raises ``TypeError`` for an object that is not an array and for a dtype
    that candelabra does not have, ``ValueError`` for negative strides and foreign byte order.
    """
    if not arrays.is_ndarray(ndarray):
        kind = type(ndarray)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    return arrays.shared_array(ndarray)


@public(method=False)
def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of any object with ``__dlpack__`` (NumPy, PyTorch, CuPy, …), without a copy.

    ``device`` moves the result to that device; ``copy=True`` copies, ``copy=False`` raises ``ValueError`` if a copy is
    needed. Raises ``TypeError`` for an object without the protocol, ``BufferError`` for memory that no installed
    backend accepts.
    """
    return dlpack.imported(ext_tensor, device, copy)


def shared(data: Any) -> Tensor:
    """Return a tensor over the memory of a NumPy array or an exporter of DLPack."""
    return arrays.shared_array(data) if arrays.is_ndarray(data) else dlpack.imported(data)


def has_buffer(data: Any) -> bool:
    """Return whether an object has the buffer protocol."""
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


@public(method=False, factory=("requires_grad",))
def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0) -> Tensor:
    """Return a 1-d tensor over the memory of an object with the buffer protocol.

    It has ``count`` elements (-1: all), starting at byte ``offset``. A read-only buffer is copied, with a warning.
    Raises ``ValueError`` if the buffer is too small, or if its size is not a multiple of the element size.
    """
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    count = _count_in(len(view), dtype.itemsize, count, offset)
    part = view[offset : offset + count * dtype.itemsize]
    if part.readonly:
        warnings.warn(
            "The given buffer is not writable. candelabra copies it, so that a write to the tensor does not reach it; "
            "pass a copy (a bytearray) to silence this warning.",
            UserWarning,
            stacklevel=3,
        )
        return upload(part, dtype, (count,), open_device())
    return arrays.shared_buffer(part, dtype)


def _count_in(length: int, size: int, count: int, offset: int) -> int:
    """Return the number of elements of ``size`` bytes to read from a buffer of ``length`` bytes. Raise ``ValueError``
    if they do not fit.
    """
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({size})"
            )
        return (length - offset) // size
    if offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    return count
