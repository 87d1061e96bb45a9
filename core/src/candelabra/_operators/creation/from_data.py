"""Tensors from Python values, arrays and other tensors."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.arguments import as_device, as_dtype, as_sizes, kind_of
from candelabra._device import open_device
from candelabra._dispatch.factories import as_leaf
from candelabra._interchange import dlpack, nested
from candelabra._interchange import numpy as arrays
from candelabra._interchange.host import upload
from candelabra._operators.conversion.copies import clone
from candelabra._operators.conversion.dtype_and_device import cast
from candelabra._operators.creation.filled import full
from candelabra._operators.creation.from_memory import frombuffer, has_buffer, shared
from candelabra._operators.creation.uninitialized import allocated
from candelabra._records.callables import public
from candelabra._size import Size
from candelabra.dtypes import FLOATING, default_for_category, get_default_dtype

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Tensor

PYTHON_DATA: Final = frozenset({float, int, bool, list, tuple})
"""Types that are neither tensors nor arrays."""


def from_values(data: Any, dtype: DType | None, device: Device) -> Tensor:
    """Return a new tensor of numbers in nested sequences."""
    kind = type(data)
    if kind in nested.CATEGORY:  # one number: no need to pack its bytes
        target = default_for_category(nested.CATEGORY[kind]) if dtype is None else dtype
        if target.category >= FLOATING and kind is not complex:
            return full.function((), data, dtype=target, device=device)
    flat = nested.flatten(data)
    target = flat.inferred if dtype is None else dtype
    view, stored = nested.packed(flat.numbers, target)
    result = upload(view, stored, flat.shape, open_device() if device is None else as_device(device))
    return result if stored is target else cast(result, dtype=target)


def copy_of(data: Any, dtype: DType | None, device: Device) -> Tensor:
    """Return a new tensor with the data of a tensor, an array, an exporter of DLPack or nested sequences."""
    if hasattr(data, "_payload"):
        source = data.detach()
        moved = source.to(device=device, dtype=dtype)
        return clone(source) if moved is source else moved
    if arrays.is_ndarray(data):
        result = arrays.copied_array(data, as_device(device))
        return result if dtype is None else result.to(dtype)
    if hasattr(data, "__dlpack__") and getattr(data, "shape", None) != ():
        result = clone(dlpack.imported(data))
        return result.to(device=device, dtype=dtype)
    return from_values(data, dtype, device)


def _warn_of_copy(advised: str) -> None:
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {advised}(sourceTensor).",
        UserWarning,
        stacklevel=4,
    )


@public(method=False, factory=("pin_memory", "requires_grad"))
def tensor(data: Any, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a new tensor with the data of a number, nested sequences of numbers, an array or a tensor.

    It is always a copy and a leaf. By default the dtype is inferred: bool, int64 for ints, the default dtype for
    floats, its complex counterpart for complex numbers, or the dtype of the array. Raises ``ValueError`` for sequences
    of unequal length, ``RuntimeError`` for numbers outside the dtype's range. ``pin_memory`` is accepted and has no
    effect.
    """
    if type(data) in PYTHON_DATA:
        return from_values(data, dtype, device)
    if hasattr(data, "_payload"):
        _warn_of_copy("candelabra.tensor")
        device = data.device if device is None else device
    return copy_of(data, dtype, device)


@public(method=False)
def as_tensor(data: Any, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return ``data`` as a tensor, without a copy if it is a tensor or a NumPy array on the host."""
    if hasattr(data, "_payload"):
        result: Tensor = data if dtype is None and device is None else data.to(device=device, dtype=dtype)
        return result
    target = None if dtype is None else as_dtype(dtype)
    if arrays.is_ndarray(data) and data.flags.writeable:
        return arrays.shared_array(data).to(device=as_device(device).device, dtype=target)
    return copy_of(data, target, device)


@public(method=False)
def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return ``obj`` as a tensor that shares its memory if possible; ``copy=True`` copies, ``copy=False`` forbids
    copies.

    Raises ``ValueError`` with ``copy=False`` if the dtype, the device or the kind of object needs a copy.
    ``requires_grad`` defaults to that of ``obj``; if it is True or False, the result is a leaf.
    """
    result = _shared_or_copied(obj, None if dtype is None else as_dtype(dtype), device, copy)
    if requires_grad is None or result.requires_grad is requires_grad:
        return result
    return as_leaf(result.detach(), requires_grad)


def _shared_or_copied(obj: Any, dtype: DType | None, device: Device, copy: bool | None) -> Tensor:
    is_tensor = hasattr(obj, "_payload")
    if copy:
        return copy_of(obj, dtype, obj.device if device is None and is_tensor else device)
    if is_tensor or arrays.is_ndarray(obj) or hasattr(obj, "__dlpack__"):
        source: Tensor = obj if is_tensor else shared(obj)
        result: Tensor = source.to(device=device, dtype=dtype)
        if copy is False and result is not source:
            if result.dtype is not source.dtype:
                old, new = source.dtype.title, result.dtype.title
                raise ValueError(f"can't alias tensor with dtype '{old}' into dtype '{new}'.")
            raise ValueError(f"can't alias tensor on device '{source.device}' into device '{result.device}'.")
        return result
    if dtype is not None and has_buffer(obj):
        return frombuffer(obj, dtype=dtype).to(device=device)
    if copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    return from_values(obj, dtype, device)


@public(method=False, factory=("layout", "pin_memory", "requires_grad"))
def scalar_tensor(s: Number, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a 0-d tensor with the given number, by default in the default dtype."""
    return from_values(s, get_default_dtype() if dtype is None else dtype, device)


# -- like another tensor ----------------------------------------------------------------------------------------------
@public(is_function=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_tensor(input: Tensor, data: Any, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a new tensor of ``data``, by default with the dtype and on the device of this tensor."""
    if hasattr(data, "_payload"):
        _warn_of_copy("tensor.new_tensor")
    return copy_of(data, dtype or input.dtype, input.device if device is None else as_device(device).device)


@public(is_function=False)
def new(input: Tensor, *data: Any) -> Tensor:
    """Return a tensor with the dtype and on the device of ``input``: uninitialized for sizes, else with the values of
    ``data``.

    ``x.new(2, 3)`` has shape (2, 3); ``x.new([1, 2])`` has the values 1 and 2.
    """
    if len(data) == 1 and not isinstance(data[0], (int, Size)):
        return copy_of(data[0], input.dtype, input.device)
    return allocated(as_sizes(data or (0,)), input.dtype, input._instance)


def legacy_tensor(data: tuple[Any, ...], dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the result of ``Tensor(*data)`` and of its types: uninitialized for sizes, else the values of a sequence.

    ``dtype`` is by default the default one. ``Tensor(other)`` is another tensor over the same memory.
    """
    target = get_default_dtype() if dtype is None else dtype
    if not data:
        return from_values([], target, device)
    first = data[0]
    if len(data) > 1 or type(first) is int or isinstance(first, Size):
        return allocated(as_sizes(data), target, as_device(device))
    if hasattr(first, "_payload"):
        result: Tensor = first.detach()
        return result
    if not nested.is_sequence(first):
        raise TypeError(f"new(): data must be a sequence (got {kind_of(first)})")
    return copy_of(first, target, device)
