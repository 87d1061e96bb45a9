"""Tensors from Python values, arrays and buffers, by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import BY_NAME
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.references.factories import DEFAULTS, held
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("tensor", "as_tensor", "asarray", as_given=True)
def tensor(data: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Array:
    """Return NumPy's array, for Python's numbers in candelabra's default dtypes."""
    if isinstance(data, bytearray) and dtype is not None:
        return np.frombuffer(bytes(data), host_dtype(dtype))
    made = np.asarray(data)
    if dtype is not None:
        return made.astype(host_dtype(dtype))
    return made if isinstance(data, np.ndarray) else made.astype(host_dtype(BY_NAME[DEFAULTS[made.dtype.kind]]))


@reference("from_numpy", "from_dlpack", as_given=True)
def the_array(data: Array, device: Any = None, copy: bool | None = None) -> Array:
    """Return the array itself."""
    return data


@reference("frombuffer", as_given=True)
def frombuffer(buffer: Any, dtype: DType, count: int = -1, offset: int = 0) -> Array:
    """Call NumPy's function."""
    return np.frombuffer(bytes(buffer), host_dtype(dtype), count, offset)


@reference("scalar_tensor", as_given=True)
def scalar_tensor(s: Any, dtype: DType | None = None) -> Array:
    """Return a 0-d NumPy array."""
    return np.asarray(s).astype(held(dtype))


@reference("Tensor.new_tensor", as_given=True)
def new_tensor(x: Array, data: Any, dtype: DType | None = None) -> Array:
    """Return NumPy's array in the dtype of the tensor."""
    return np.asarray(data).astype(held(dtype, device_dtype(x.dtype)))
