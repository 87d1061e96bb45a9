"""Tensors in another dtype or on another device: to, type, float, int and the other casts."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_device, as_dtype, kind_of
from candelabra._device import open_device
from candelabra._layout import physical_order
from candelabra._records.callables import public
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import like_input
from candelabra.dtypes import (
    BOOL,
    COMPLEX,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)  # fmt: skip

if TYPE_CHECKING:
    from candelabra._device import device
    from candelabra._layout import memory_format
    from candelabra.typing import Device, DType, Tensor


# -- operators --------------------------------------------------------------------------------------------------------
@operator(like_input, promote=unpromoted, out=False, public=False, elementwise=True)
def cast(input: Tensor, *, dtype: DType) -> Tensor:
    """Return the values in another dtype: integer dtypes truncate floats, real dtypes discard the imaginary part.

    A number is rounded once, to nearest and a tie to even; on the way to bfloat16 it may be rounded to float32 first,
    as in PyTorch. NaN stays NaN, whatever its payload.
    """
    ...


def uncast(g: Tensor, input_spec: Any) -> Tensor:
    """Return a gradient in the dtype of its tensor: a real tensor gets the real part of a complex gradient."""
    return g if g.dtype is input_spec.dtype else cast(g, dtype=input_spec.dtype)


cast.vjp(input=uncast)


@operator(like_input, promote=unpromoted, out=False, method=False, public=False)
def moved(input: Tensor, target: device, *, dtype: DType | None = None) -> Tensor:
    """Return a copy on another device, optionally in another dtype.

    The source device casts if it has both dtypes, otherwise the destination.
    """
    from candelabra._dispatch.fallback import move_payload
    from candelabra._dispatch.tracing import note_break
    from candelabra._keys import INFERENCE, state
    from candelabra._tensor import wrap

    note_break("a tensor moves to another device")
    source, destination = input._instance, open_device(target)
    target_dtype = input.dtype if dtype is None else dtype
    destination.keys_for(target_dtype)
    if target_dtype is not input.dtype and target_dtype in source.keys:
        input = cast(input, dtype=target_dtype)
    keys = destination.keys_for(input.dtype) | state.bits & INFERENCE
    out = wrap(move_payload(input._payload, source, destination), keys)
    return out if out.dtype is target_dtype else cast(out, dtype=target_dtype)


moved.vjp(input=lambda g, input_spec: uncast(moved(g, input_spec.device), input_spec))


def converted(input: Tensor, d: dtype, target: Device = None) -> Tensor:
    """Return ``input`` in dtype ``d`` on a device (None: its own), or ``input`` itself if nothing changes."""
    current = input.dtype
    if target is None and d is current:
        return input
    if current.is_complex and d.category not in (BOOL, COMPLEX):
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
    if target is not None:
        instance = as_device(target)
        if instance.depth:  # the level of a function transform: it adopts the tensor in the call that follows
            target = None
            instance = input._instance
        if instance is not input._instance and not (input._instance.depth and input.device == instance.device):
            return moved.function(input, instance.device, dtype=None if d is current else d)
        if d is current:
            return input
    return cast.function(input, dtype=d)


# -- to ---------------------------------------------------------------------------------------------------------------
@public(is_function=False, guarded=False, elementwise=True)
def to(
    input: Tensor, *args: Tensor | DType | Device | bool, **kwargs: Tensor | DType | Device | bool | memory_format
) -> Tensor:
    """Return the tensor in another dtype and/or on another device: ``to(dtype)``, ``to(device, dtype)``, ``to(other)``.

    The result is the tensor itself if nothing changes, unless ``copy=True``. Autograd records the conversion, also
    between devices. ``non_blocking`` is a hint. ``memory_format`` may request channels last; otherwise a copy is in C
    order. Raises ``TypeError`` for arguments that fit no overload.
    """
    if len(args) == 1 and not kwargs and args[0].__class__ is dtype:
        return converted(input, args[0], None)
    bound = _bound(args, kwargs)
    other = bound.get("other")
    if other is not None:
        d, target = other.dtype, other.device
    else:
        requested = bound.get("dtype")
        d, target = input.dtype if requested is None else as_dtype(requested), bound.get("device")
    out = converted(input, d, target)
    format: Any = bound.get("memory_format")
    if format is not None and physical_order(input.ndim, format) is not None:
        return out.contiguous(memory_format=format)
    return input.clone() if out is input and bound.get("copy") else out


_OVERLOADS = {
    "device": ("device", "dtype", "non_blocking", "copy"),
    "dtype": ("dtype", "non_blocking", "copy"),
    "other": ("other", "non_blocking", "copy"),
}


def _bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``to`` by name, for the overload that they match."""
    if args:
        first = args[0]
        kind = "other" if hasattr(first, "_payload") else "dtype" if _is_dtype(first) else "device"
    else:
        kind = "other" if "other" in kwargs else "device"
    names = _OVERLOADS[kind]
    bound = {**dict(zip(names, args)), **kwargs}
    allowed = {*names[len(args) :], "memory_format"}
    requested = bound.get("dtype")
    fits = (requested is None or _is_dtype(requested)) and not any(
        _is_dtype(bound.get(n)) for n in ("non_blocking", "copy")
    )
    if len(args) > len(names) or not kwargs.keys() <= allowed or not fits:
        received = ", ".join([kind_of(a) for a in args] + [f"{k}={kind_of(v)}" for k, v in kwargs.items()])
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({received}), but expected one of:\n"
            " * (device device = None, dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
            "memory_format)\n"
            " * (dtype dtype, bool non_blocking = False, bool copy = False, *, memory_format)\n"
            " * (Tensor other, bool non_blocking = False, bool copy = False, *, memory_format)"
        )
    return bound


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype) or value is bool or value is int or value is float or value is complex


@public(is_function=False, elementwise=True)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.to(other)``: the tensor in the dtype of ``other``, on its device."""
    return converted(input, other.dtype, other.device)


@public(is_function=False, elementwise=True)
def to_device(input: Tensor, device: Device, /, *, stream: None = None) -> Tensor:
    """Return the tensor on ``device``, or the tensor itself if it is on that device. A method of the Array API
    standard.

    Raises ``ValueError`` if ``stream`` is not None: the device uses its own stream.
    """
    if stream is not None:
        raise ValueError(f"to_device(): only stream=None is supported, got {stream!r}")
    return converted(input, input.dtype, device)


# -- one dtype --------------------------------------------------------------------------------------------------------
@public(is_function=False, elementwise=True)
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> str | Tensor:
    """Return the name of the tensor's type, such as ``"candelabra.FloatTensor"``; with ``dtype``, convert the tensor.

    ``dtype`` may be a dtype, a type (``candelabra.LongTensor``) or the name of a type. A type also names a device: that
    without a device in its name is in the host's memory. A name without a package, ``"LongTensor"``, is only a dtype.
    Raises ``ValueError`` for any other string.
    """
    from candelabra._tensor_types import DTYPES, TensorType, type_name, type_named

    if dtype is None:
        return type_name(input)
    wanted = dtype
    if isinstance(dtype, str):
        wanted = DTYPES[dtype] if dtype in DTYPES else type_named(dtype)
    if not isinstance(wanted, TensorType):
        return converted(input, as_dtype(wanted))
    return converted(input, wanted.dtype, None if wanted.holds(input) else wanted.location())


def _cast_to(input: Tensor, d: dtype, memory_format: memory_format | None) -> Tensor:
    """Return ``input`` in dtype ``d``, or ``input`` itself if that is its dtype; ``memory_format`` as in :func:`to`."""
    out = converted(input, d)
    if memory_format is None or physical_order(input.ndim, memory_format) is None:
        return out
    return out.contiguous(memory_format)


@public(name="float", is_function=False, elementwise=True)
def to_float(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``float32``, or the tensor itself if that is its dtype."""
    return _cast_to(input, float32, memory_format)


@public(name="double", is_function=False, elementwise=True)
def to_double(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``float64``, or the tensor itself if that is its dtype."""
    return _cast_to(input, float64, memory_format)


@public(name="half", is_function=False, elementwise=True)
def to_half(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``float16``, or the tensor itself if that is its dtype."""
    return _cast_to(input, float16, memory_format)


@public(name="bfloat16", is_function=False, elementwise=True)
def to_bfloat16(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``bfloat16``, or the tensor itself if that is its dtype."""
    return _cast_to(input, bfloat16, memory_format)


@public(name="int", is_function=False, elementwise=True)
def to_int(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``int32``, or the tensor itself if that is its dtype."""
    return _cast_to(input, int32, memory_format)


@public(name="long", is_function=False, elementwise=True)
def to_long(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``int64``, or the tensor itself if that is its dtype."""
    return _cast_to(input, int64, memory_format)


@public(name="short", is_function=False, elementwise=True)
def to_short(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``int16``, or the tensor itself if that is its dtype."""
    return _cast_to(input, int16, memory_format)


@public(name="char", is_function=False, elementwise=True)
def to_char(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``int8``, or the tensor itself if that is its dtype."""
    return _cast_to(input, int8, memory_format)


@public(name="byte", is_function=False, elementwise=True)
def to_byte(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``uint8``, or the tensor itself if that is its dtype."""
    return _cast_to(input, uint8, memory_format)


@public(name="bool", is_function=False, elementwise=True)
def to_bool(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``bool``, or the tensor itself if that is its dtype."""
    return _cast_to(input, bool_, memory_format)


@public(name="cfloat", is_function=False, elementwise=True)
def to_cfloat(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``complex64``, or the tensor itself if that is its dtype."""
    return _cast_to(input, complex64, memory_format)


@public(name="cdouble", is_function=False, elementwise=True)
def to_cdouble(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor as ``complex128``, or the tensor itself if that is its dtype."""
    return _cast_to(input, complex128, memory_format)
