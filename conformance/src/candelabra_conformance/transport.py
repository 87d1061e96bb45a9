"""Copy data between NumPy arrays and tensors of any device, with only the two copies of the backend contract.

If the suite used operators to copy its data, a broken operator could not be distinguished from a broken copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra import Tensor
from candelabra.library import Instance, open_device, wrap

from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype

Array = np.ndarray[Any, Any]


def to_device(array: Array, device: Any) -> Tensor:
    """Return a contiguous tensor with the array's values. ``device`` is a name, a device or a live instance."""
    instance = device if isinstance(device, Instance) else open_device(device)
    d = device_dtype(array.dtype)
    keys = instance.keys_for(d)
    held = np.ascontiguousarray(array)
    data = memoryview(held.reshape(-1).view(np.uint8).data)
    return wrap(instance.backend.from_host(instance.index, data, tuple(array.shape), d), keys)


def to_host(tensor: Tensor) -> Array:
    """Return the values as a NumPy array of the tensor's dtype, after synchronising."""
    tensor._fresh()
    backend = tensor._instance.backend
    return payload_to_host(backend, tensor._payload, tuple(tensor._payload.shape), tensor.dtype)


def payload_to_host(backend: Any, payload: Any, shape: tuple[int, ...], d: Any) -> Array:
    """Return the content of a backend's own array."""
    data = np.frombuffer(backend.to_host(payload), dtype=np.uint8).copy()
    expected = int(np.prod(shape, dtype=np.int64)) * host_dtype(d).itemsize
    if data.size != expected:
        raise AssertionError(f"to_host() returned {data.size} bytes, expected {expected} for {d.name}{list(shape)}")
    if d.name == "bool" and data.max(initial=0) > 1:
        raise AssertionError(f"to_host() returned a bool with the byte {data.max()}, expected 0 or 1")
    return data.view(host_dtype(d)).reshape(shape)
