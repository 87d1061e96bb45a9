"""Tensors filled with one number, in a given shape or in that of another tensor: full, zeros, ones."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._device import instance_of_key
from candelabra._operators.conversion.python_numbers import NUMBERS, number_for
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import BY_BIT, DTYPE_MASK, category_of_scalar, default_for_category, get_default_dtype

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Shape, Tensor


def check_sizes(size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape itself. Raise ``RuntimeError`` for a negative size."""
    negative = [s for s in size if s < 0]
    if negative:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative[0]}: {list(size)}")
    return size


@by
def given_shape(size: tuple[int, ...], *_: object) -> tuple[int, ...]:
    """Return the first argument: the rule of operators whose result has the requested shape."""
    return check_sizes(size)


# -- full -------------------------------------------------------------------------------------------------------------
@operator(given_shape, promote=unpromoted, method=False, out=False, public=False)
def full(size: Shape, fill_value: Number, *, dtype: DType, device: Device) -> Tensor:
    """Return a tensor of shape ``size`` filled with ``fill_value``."""
    ...


@public(public=False, factory=True)
def full_inferred(
    size: Shape, fill_value: Number | Tensor, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return a tensor of shape ``size`` filled with ``fill_value``, a number or a 0-d tensor.

    By default the dtype follows the value: bool, int64, the default floating dtype or its complex counterpart.

    Raises ``RuntimeError`` if the value is out of the range of ``dtype``.
    """
    value = number_of(fill_value)
    if dtype is None:
        dtype = default_for_category(category_of_scalar(value))
    return full.function(size, in_range(value, dtype), dtype=dtype, device=device)


full_overloads = overloads("full", full_inferred, method=False)


def in_range(value: Number, d: DType) -> Number:
    """Return a number as a value of the dtype; see :func:`number_for`. The record refuses other objects."""
    return number_for(value, d) if isinstance(value, NUMBERS) else value


def number_of(value: Number | Tensor) -> Number:
    """Return a number unchanged, or the only element of a tensor or of an array library's scalar."""
    if isinstance(value, (bool, int, float, complex)) or not hasattr(value, "item"):
        return value  # type: ignore[return-value]  # the kernel raises an error for objects without item()
    number: Number = value.item()
    return number


# -- tensors like an operand, for the bodies of operators --------------------------------------------------------------
@operator(by(lambda input, size, *_: check_sizes(size)), promote=unpromoted, out=False, uses="dtype", public=False)
def new_full(input: Tensor, size: Shape, fill_value: Number, *, dtype: DType | None = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with ``fill_value``, on the device of ``input``, by default in its
    dtype.
    """
    keys = input._keys
    return full.canonical(size, fill_value, dtype or BY_BIT[keys & DTYPE_MASK], instance_of_key(keys))


for _record in (full, new_full):
    _record.no_gradient("computed from numbers")


@public(public=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_full_on_device(
    input: Tensor, size: Shape, fill_value: Number | Tensor, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return a tensor of shape ``size`` filled with ``fill_value``, a number or a 0-d tensor.

    By default it has the dtype of ``input`` and is on its device. Raises ``RuntimeError`` if the value is out of the
    range of the dtype.
    """
    target = input._instance if device is None else device
    d = dtype or input.dtype
    return full.function(size, in_range(number_of(fill_value), d), dtype=d, device=target)


new_full_overloads = overloads("new_full", new_full_on_device, is_function=False)


def zeroed(g: Tensor) -> Tensor:
    """Return zeros like ``g``: the gradient of overwritten elements.

    Not ``g * 0``, which is NaN where ``g`` is infinite.
    """
    return new_full.function(g, tuple(g.shape), 0)


# -- zeros and ones ---------------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def zeros(*size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with 0, by default in the default dtype."""
    return full.function(size, 0, dtype=get_default_dtype() if dtype is None else dtype, device=device)


@public(method=False, factory=True)
def ones(*size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with 1, by default in the default dtype."""
    return full.function(size, 1, dtype=get_default_dtype() if dtype is None else dtype, device=device)


@public(is_function=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_zeros(input: Tensor, *size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with 0, by default with the dtype and on the device of this tensor."""
    target = input._instance if device is None else device
    return full.function(size, 0, dtype=dtype or input.dtype, device=target)


@public(is_function=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_ones(input: Tensor, *size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of shape ``size`` filled with 1, by default with the dtype and on the device of this tensor."""
    target = input._instance if device is None else device
    return full.function(size, 1, dtype=dtype or input.dtype, device=target)


# -- in the shape of another tensor -----------------------------------------------------------------------------------
def _filled_like(input: Tensor, value: Number, dtype: DType | None, device: Device) -> Tensor:
    target = input._instance if device is None else device
    return full.function(tuple(input._payload.shape), value, dtype=dtype or input.dtype, device=target)


@public(method=False, factory=True, elementwise=True)
def full_like(
    input: Tensor, fill_value: Number | Tensor, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return a tensor of the shape of ``input`` filled with ``fill_value``, by default with its dtype and on its
    device.

    Raises ``RuntimeError`` if the value is out of the range of the dtype.
    """
    return _filled_like(input, in_range(number_of(fill_value), dtype or input.dtype), dtype, device)


@public(method=False, factory=True, elementwise=True)
def zeros_like(input: Tensor, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of the shape of ``input`` filled with 0, by default with its dtype and on its device."""
    return _filled_like(input, 0, dtype, device)


@public(method=False, factory=True, elementwise=True)
def ones_like(input: Tensor, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return a tensor of the shape of ``input`` filled with 1, by default with its dtype and on its device."""
    return _filled_like(input, 1, dtype, device)
