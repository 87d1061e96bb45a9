"""Methods by which Python and other libraries read a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from candelabra_conformance.literals import host_list
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
ON_HOST = np.arange(6, dtype="float32").reshape(2, 3)
"""The content of the samples' tensor in the host's memory."""


def number(x: Array) -> Any:
    """Return the only element."""
    return host_list(x.reshape(()))


references({
    "Tensor.__float__": lambda x: float(number(x)),
    "Tensor.__int__": lambda x: int(number(x)),
    "Tensor.__complex__": lambda x: complex(number(x)),
    "Tensor.__index__": lambda x: int(number(x)),
    "Tensor.__floor__": lambda x: math.floor(number(x)),
    "Tensor.__ceil__": lambda x: math.ceil(number(x)),
    "Tensor.__trunc__": lambda x: math.trunc(number(x)),
    "Tensor.is_pinned": lambda x: False,
    "Tensor.is_shared": lambda x: False,
    "Tensor.share_memory_": lambda x: ON_HOST,
    "Tensor.pin_memory": lambda x, device=None: ON_HOST,
    "Tensor.__copy__": lambda x: x,
    "resolve_conj": lambda x: x,
    "resolve_neg": lambda x: x,
})  # fmt: skip


@reference("Tensor.__round__")
def rounded(x: Array, ndigits: int | None = None) -> Array:
    """Call NumPy's function."""
    return np.round(x, ndigits or 0)


@reference("Tensor.__divmod__")
def divmod_of(x: Array, other: Any) -> tuple[Array, Array]:
    """Call NumPy's function."""
    return x // other, x % other


@reference("Tensor.__rdivmod__")
def divmod_by(x: Array, other: Any) -> tuple[Array, Array]:
    """Call NumPy's function."""
    return other // x, other % x


@reference("Tensor.numpy", as_given=True)
def numpy(x: Array, force: bool = False) -> Array:
    """Return the array."""
    return x


@reference("Tensor.__array__", as_given=True)
def array(x: Any, dtype: Any = None, copy: bool | None = None) -> Array:
    """Return the array, cast to the dtype."""
    return ON_HOST if dtype is None else ON_HOST.astype(dtype)


@reference("Tensor.__array_interface__")
def array_interface(x: Any) -> Any:
    """Return NumPy's interface."""
    return ON_HOST.__array_interface__


@reference("Tensor.__buffer__")
def buffer(x: Any, flags: int) -> memoryview:
    """Return NumPy's buffer."""
    return ON_HOST.data


@reference("Tensor.__dlpack__")
def dlpack(x: Any, max_version: tuple[int, int] | None = None) -> Any:
    """Return NumPy's capsule."""
    return ON_HOST.__dlpack__(max_version=max_version)


@reference("Tensor.__dlpack_device__")
def dlpack_device(x: Any) -> Any:
    """Return NumPy's device as Python's numbers."""
    return tuple(int(part) for part in ON_HOST.__dlpack_device__())


@reference("Tensor.__array_wrap__", as_given=True)
def array_wrap(x: Any, array: Array, context: Any = None) -> Array:
    """Return the array, bools as uint8."""
    return array.astype(np.uint8) if array.dtype == bool else array


@reference("Tensor.data_ptr")
def data_ptr(x: Any) -> int:
    """Return NumPy's pointer, or 0 for an array without elements."""
    return 0 if isinstance(x, np.ndarray) else int(ON_HOST.ctypes.data)


@reference("Tensor.untyped_storage", "Tensor.storage")
def storage(x: Array) -> bytes:
    """Return the bytes of the elements."""
    return x.tobytes()


@reference("Tensor.__deepcopy__")
def deep_copy(x: Array, memo: dict[int, Any]) -> Array:
    """Return the values."""
    return x


@reference("Tensor.__reduce_ex__")
def reduced(x: Array, protocol: int) -> Any:
    """Return a function that returns the values."""
    return (lambda values: values), (x,)
