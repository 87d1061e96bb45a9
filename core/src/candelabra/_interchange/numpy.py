"""NumPy arrays: tensors over their memory, and arrays over a tensor's memory.

NumPy is imported only if a user requests an array. An argument that is an array is recognised without importing it.
"""

from __future__ import annotations

import sys
import warnings

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import open_device
from candelabra._dispatch.deferring import shares_memory
from candelabra._dispatch.tracing import note_break, tracer_here
from candelabra._interchange.host import host_view, upload
from candelabra._plugins import registry
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra._versions import expose
from candelabra.dtypes import BY_NAME, dtype

if TYPE_CHECKING:
    from candelabra._device import Instance
SUPPORTED: Final = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
    "and bool"
)


def is_ndarray(value: Any) -> bool:
    """Return whether a value is a NumPy array. If NumPy was not imported, none is."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def dtype_of_array(array: Any) -> dtype:
    """Return the dtype of an array's elements (bfloat16: of ``ml_dtypes``), or raise PyTorch's error."""
    found = BY_NAME.get(array.dtype.name)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype.type.__module__}.{array.dtype.type.__name__}. The only "
            f"supported types are: {SUPPORTED}."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    return found


def is_irregular(array: Any) -> bool:
    """Return whether an array has strides that no tensor has: negative, or no multiples of the element's size."""
    return any(step < 0 or step % array.itemsize for step in array.strides)


def copied_array(array: Any, instance: Instance) -> Tensor:
    """Return a tensor with a copy of an array's elements, on any device.

    A graph copies the array at each run, which may have other elements then, if a tensor can show its memory.
    """
    d = dtype_of_array(array)
    if tracer_here() is not None and array.flags.writeable and instance.backend.capabilities.host:
        shown = None if is_irregular(array) else instance.backend.from_dlpack(array, instance.index, None)
        if shown is not None:
            copy: Tensor = OPERATORS["clone"].canonical(wrap(shown, instance.keys_for(d)))
            return copy
    flat = (array if array.flags.c_contiguous else array.copy()).reshape(-1).view("u1")
    return upload(memoryview(flat), d, tuple(array.shape), instance)


def shared_buffer(buffer: memoryview, dtype: dtype) -> Tensor:
    """Return a 1-d tensor of ``dtype`` over the memory of a writable buffer."""
    import numpy

    if dtype.name == "bfloat16":
        import ml_dtypes

        return shared_array(numpy.frombuffer(buffer, ml_dtypes.bfloat16))
    return shared_array(numpy.frombuffer(buffer, dtype.name))


def shared_array(array: Any) -> Tensor:
    """Return a tensor over an array's memory on the host's device. A write to either is visible in the other.

    A read-only array is copied, with a warning; PyTorch would allow writes. Raises ``ValueError`` for negative strides
    and for strides that are not a multiple of the element's size.
    """
    d = dtype_of_array(array)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    instance = open_device(registry.reference_device())
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable. candelabra copies it, so that a write to the tensor does not reach "
            "memory that is meant to be constant; pass a copy to silence this warning.",
            UserWarning,
            stacklevel=4,
        )
        return copied_array(array, instance)
    payload = instance.backend.from_dlpack(array, instance.index, None)
    if payload is None:
        return copied_array(array, instance)
    made = wrap(payload, instance.keys_for(d))
    expose(made._counter)
    return made


def as_ndarray(tensor: Tensor, force: bool = False) -> Any:
    """Return a NumPy array over a tensor's memory (bfloat16: of the ``ml_dtypes`` type); see ``Tensor.numpy``."""
    if force:
        tensor = tensor.detach()
    elif tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    import numpy

    note_break("the memory of a tensor is shared with NumPy")
    shares_memory()
    expose(tensor._counter)
    backend = tensor._fresh()._instance.backend
    if not backend.capabilities.host and not force:
        if tensor._instance.depth:
            host_view(tensor)  # values of a batch cannot be read: the error says why
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. Copy the tensor to the host's memory first: "
            "tensor.numpy(force=True), or tensor.to(...)"
        )
    payload = tensor._payload
    if isinstance(payload, numpy.ndarray):
        return payload.view()
    if tensor.dtype.name == "bfloat16":
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = tensor.dtype.name
    return numpy.frombuffer(bytearray(host_view(tensor)), kind).reshape(tuple(payload.shape))
