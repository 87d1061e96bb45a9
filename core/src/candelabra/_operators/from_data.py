"""Tensors from Python values, arrays and buffers."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype, kind_of
from candelabra._device import device as device_type
from candelabra._device import open_device
from candelabra._interchange import dlpack, nested
from candelabra._interchange import numpy as arrays
from candelabra._interchange.host import place
from candelabra._operators.primitives.creation import cast, clone, full
from candelabra._records.callables import public
from candelabra.dtypes import FLOATING, default_for_category, get_default_dtype
from candelabra.dtypes import dtype as dtype_type

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _finished(made: Tensor, requires_grad: bool) -> Tensor:
    if not requires_grad:
        return made
    if made.dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made.requires_grad_()


def _from_values(data: Any, d: dtype_type | None, device: Any) -> Tensor:
    """A new tensor of numbers in nested sequences."""
    kind = type(data)
    if kind in nested.CATEGORY:  # one number: no need for a look at its bytes
        wanted = default_for_category(nested.CATEGORY[kind]) if d is None else d
        if wanted.category >= FLOATING and kind is not complex:
            made: Tensor = full((), data, dtype=wanted, device=open_device(device))
            return made
    flat = nested.flatten(data)
    wanted = flat.inferred if d is None else d
    instance = open_device(device)
    instance.keys_for(wanted)
    view, stored = nested.packed(flat.numbers, wanted)
    made = place(view, stored, flat.shape, instance)
    return made if stored is wanted else cast(made, dtype=wanted)


def _copied(data: Any, d: dtype_type | None, device: Any) -> Tensor:
    """A new tensor of anything: another tensor, an array, an exporter of DLPack, nested sequences."""
    if hasattr(data, "_payload"):
        source = data.detach()
        moved = source.to(device=device, dtype=d)
        return clone(source) if moved is source else moved
    if arrays.is_ndarray(data):
        made = arrays.copied_array(data, open_device(device))
        return made if d is None else made.to(d)
    if hasattr(data, "__dlpack__") and getattr(data, "shape", None) != ():
        made = clone(dlpack.imported(data))
        return made.to(device=device, dtype=d)
    return _from_values(data, d, device)


@public(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor of a number, nested sequences of numbers, an array or a tensor: always a copy, always a leaf.

    The dtype is inferred unless given: bools, int64 for ints, the default dtype for floats, complex; that of an array.
    ``ValueError`` for sequences of unequal length, ``RuntimeError`` for numbers outside the dtype's range.
    ``pin_memory`` is accepted and has no effect.
    """
    if hasattr(data, "_payload"):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than candelabra.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        device = data.device if device is None else device
    d = None if dtype is None else as_dtype(dtype)
    made = _from_values(data, d, device) if type(data) in PLAIN else _copied(data, d, device)
    return _finished(made, requires_grad)


PLAIN = frozenset({float, int, bool, list, tuple})
"""What is no array for sure."""


@public(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, without a copy where it is one already, or a NumPy array on the host."""
    d = None if dtype is None else as_dtype(dtype)
    if hasattr(data, "_payload"):
        if device is None and (d is None or d is data.dtype):
            return data
        return data.to(device=device, dtype=d)
    if arrays.is_ndarray(data):
        if not data.flags.writeable:
            return _copied(data, d, device)
        return arrays.shared_array(data).to(device=open_device(device).device, dtype=d)
    return _copied(data, d, device)


@public(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """``obj`` as a tensor: shared where possible, copied with ``copy=True``; ``copy=False`` forbids copies.

    ``ValueError`` where ``copy=False`` and the dtype, the device or the kind of object takes one. ``requires_grad``
    defaults to that of ``obj``.
    """
    d = None if dtype is None else as_dtype(dtype)
    if copy:
        made = _copied(obj, d, obj.device if device is None and hasattr(obj, "_payload") else device)
    elif hasattr(obj, "_payload") or arrays.is_ndarray(obj) or hasattr(obj, "__dlpack__"):
        shared = obj if hasattr(obj, "_payload") else _shared(obj)
        made = shared.to(device=device, dtype=d)
        if copy is False and made is not shared:
            if made.dtype is not shared.dtype:
                old, new = shared.dtype.title, made.dtype.title
                raise ValueError(f"can't alias tensor with dtype '{old}' into dtype '{new}'.")
            raise ValueError(f"can't alias tensor on device '{shared.device}' into device '{made.device}'.")
    elif _has_buffer(obj) and d is not None:
        made = frombuffer(obj, dtype=d).to(device=device)
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        made = _from_values(obj, d, device)
    if requires_grad is None:
        return made
    if made is obj and made.requires_grad is not requires_grad:
        made = made.detach()
    return _finished(made, requires_grad) if requires_grad else made.detach() if made.requires_grad else made


def _shared(obj: Any) -> Tensor:
    return arrays.shared_array(obj) if arrays.is_ndarray(obj) else dlpack.imported(obj)


def _has_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


@public(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of a NumPy array: a write to one is seen by the other.

    A read-only array is copied, with a warning. ``TypeError`` for what is no array or has no such dtype, ``ValueError``
    for negative strides and foreign byte order.
    """
    if not arrays.is_ndarray(ndarray):
        kind = type(ndarray)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    return arrays.shared_array(ndarray)


@public(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any object with ``__dlpack__`` (NumPy, PyTorch, CuPy, …), without a copy.

    ``device`` moves it there; ``copy=True`` copies, ``copy=False`` forbids that (``ValueError``). ``TypeError`` for an
    object without the protocol, ``BufferError`` for memory that no installed backend takes.
    """
    return dlpack.imported(ext_tensor, device, copy)


@public(method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor over the memory of an object with the buffer protocol.

    ``count`` elements (-1: all) from byte ``offset`` on. A read-only buffer is copied, with a warning. ``ValueError``
    where the bytes don't suffice or don't divide.
    """
    d = as_dtype(dtype)
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, size = len(view), d.itemsize
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
        count = (length - offset) // size
    elif offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    part = view[offset : offset + count * size]
    if part.readonly:
        warnings.warn(
            "The given buffer is not writable. candelabra copies it, so that a write to the tensor does not reach it; "
            "pass a copy (a bytearray) to silence this warning.",
            UserWarning,
            stacklevel=2,
        )
        return _finished(place(part, d, (count,), open_device()), requires_grad)
    import numpy

    if d.name == "bfloat16":
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = d.name
    return _finished(arrays.shared_array(numpy.frombuffer(part, kind)), requires_grad)


@public(method=False)
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor of one number, in the default dtype unless another is given."""
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    return _finished(_from_values(s, d, device), requires_grad)


def legacy_tensor(data: tuple[Any, ...]) -> Tensor:
    """``Tensor(2, 3)``, unspecified content in that shape; ``Tensor([1, 2])``, the values in the default dtype.

    ``Tensor(other)`` is another tensor over the same memory.
    """
    from candelabra._operators.fronts.creation import empty
    from candelabra._size import Size

    if not data:
        return _from_values([], get_default_dtype(), None)
    first = data[0]
    if len(data) == 1 and not (type(first) is int or isinstance(first, Size)):
        if hasattr(first, "_payload"):
            return first.detach()
        if not nested.is_sequence(first):
            raise TypeError(f"new(): data must be a sequence (got {kind_of(first)})")
        if arrays.is_ndarray(first):
            return _copied(first, get_default_dtype(), None)
        return _from_values(first, get_default_dtype(), None)
    made: Tensor = empty(*data)
    return made


# -- like another tensor ----------------------------------------------------------------------------------------------
def _same(input: Tensor, dtype: Any, device: Any) -> tuple[dtype_type, device_type]:
    d = input.dtype if dtype is None else as_dtype(dtype)
    return d, input.device if device is None else open_device(device).device


@public(is_function=False)
def new_tensor(
    input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor of ``data`` with the dtype and on the device of this one, unless given."""
    if hasattr(data, "_payload"):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    d, where = _same(input, dtype, device)
    return _finished(_copied(data, d, where), requires_grad)


@public(is_function=False)
def new_full(
    input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``fill_value`` in shape ``size``, with the dtype and on the device of this tensor unless given."""
    from candelabra._operators.fronts.creation import full

    d, where = _same(input, dtype, device)
    made: Tensor = full(size, fill_value, dtype=d, device=where, requires_grad=requires_grad)
    return made


@public(is_function=False)
def new_zeros(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in shape ``size``, with the dtype and on the device of this tensor unless given."""
    from candelabra._operators.fronts.creation import zeros

    d, where = _same(input, dtype, device)
    made: Tensor = zeros(*size, dtype=d, device=where, requires_grad=requires_grad)
    return made


@public(is_function=False)
def new_ones(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in shape ``size``, with the dtype and on the device of this tensor unless given."""
    from candelabra._operators.fronts.creation import ones

    d, where = _same(input, dtype, device)
    made: Tensor = ones(*size, dtype=d, device=where, requires_grad=requires_grad)
    return made


@public(is_function=False)
def new_empty(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Unspecified content in shape ``size``, with the dtype and on the device of this tensor unless given."""
    from candelabra._operators.fronts.creation import empty

    d, where = _same(input, dtype, device)
    made: Tensor = empty(*size, dtype=d, device=where, requires_grad=requires_grad)
    return made


__all__ = [
    "as_tensor", "asarray", "from_dlpack", "from_numpy", "frombuffer", "legacy_tensor", "scalar_tensor",
    "tensor",
]  # fmt: skip
