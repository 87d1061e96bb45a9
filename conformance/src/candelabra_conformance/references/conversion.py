"""Methods that convert a tensor to another dtype or device, or to Python values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from candelabra.dtypes import BY_NAME, PYTHON_NAMES
from candelabra.dtypes import dtype as DType

from candelabra_conformance.literals import host_list
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references.creation import cast
from candelabra_conformance.references.registry import Reference, reference, references
from candelabra_conformance.samples.conversion import NAMED

Array = np.ndarray[Any, Any]


def to_named(name: str) -> Reference:
    """Return the reference of a cast that is named after its dtype."""
    return lambda x: cast(x, BY_NAME[name])


references({f"Tensor.{method}": to_named(name) for method, name in NAMED.items()}, as_given=True)


@reference("Tensor.to", as_given=True)
def to(x: Array, *args: Any, dtype: DType | None = None, **options: Any) -> Array:
    """Cast to the dtype in the arguments, or to that of a tensor."""
    like = next((device_dtype(a.dtype) for a in args if isinstance(a, np.ndarray)), None)
    wanted = dtype or like or next((a for a in args if isinstance(a, DType)), None)
    return x if wanted is None else cast(x, wanted)


@reference("Tensor.to_dense", as_given=True)
def same_elements(x: Array, dtype: DType | None = None) -> Array:
    """Return the array, cast to the dtype."""
    return x if dtype is None else cast(x, dtype)


@reference("Tensor.type_as", as_given=True)
def type_as(x: Array, other: Array) -> Array:
    """Cast to the dtype of the other tensor."""
    return x.astype(other.dtype)


@reference("Tensor.type", as_given=True)
def type_of(x: Array, dtype: Any = None) -> Any:
    """Return the name of the type, or cast."""
    if dtype is None:
        return f"candelabra.{PYTHON_NAMES[device_dtype(x.dtype).name]}Tensor"
    return cast(x, BY_NAME["float32"] if isinstance(dtype, str) else dtype)


@reference("Tensor.copy_", as_given=True)
def copied(x: Array, source: Any) -> Array:
    """Return the source in the shape and the dtype of the target."""
    return np.broadcast_to(np.asarray(source), x.shape).astype(x.dtype)


@reference("Tensor.item")
def item(x: Array) -> Any:
    """Call NumPy's method."""
    return host_list(x.reshape(()))


@reference("Tensor.tolist")
def tolist(x: Array) -> Any:
    """Call NumPy's method."""
    return host_list(x)


@reference("Tensor.to_device")
def to_device(x: Array, device: Any) -> Array:
    """Return the values."""
    return x


@reference("Tensor.__array_namespace__")
def namespace(x: Array, api_version: str | None = None) -> Any:
    """Return an object with the expected name of the module."""
    return SimpleNamespace(__name__="candelabra.array_api")
