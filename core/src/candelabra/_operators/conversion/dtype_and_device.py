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
    ALL,
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
@operator(like_input, promote=unpromoted, out=False, public=False)
def cast(input: Tensor, *, dtype: DType) -> Tensor:
    """The values in another dtype: integer dtypes truncate floats, real ones drop the imaginary part."""
    ...


def uncast(g: Tensor, input_spec: Any) -> Tensor:
    """A gradient in the dtype of the tensor that it belongs to; of a complex one, the real part where that is real."""
    return g if g.dtype is input_spec.dtype else cast(g, dtype=input_spec.dtype)


cast.vjp(input=uncast)


@operator(like_input, promote=unpromoted, out=False, method=False, public=False)
def moved(input: Tensor, target: device, *, dtype: DType | None = None) -> Tensor:
    """A copy on another device, in another dtype if one is given.

    The cast happens on the device that holds both dtypes, the source where it can.
    """
    from candelabra._dispatch.fallback import move_payload
    from candelabra._keys import INFERENCE, state
    from candelabra._tensor import wrap

    source, destination = input._instance, open_device(target)
    wanted = input.dtype if dtype is None else dtype
    destination.keys_for(wanted)
    if wanted is not input.dtype and wanted in source.keys:
        input = cast(input, dtype=wanted)
    keys = destination.keys_for(input.dtype) | state.bits & INFERENCE
    out = wrap(move_payload(input._payload, source, destination), keys)
    return out if out.dtype is wanted else cast(out, dtype=wanted)


moved.vjp(input=lambda g, input_spec: uncast(moved(g, input_spec.device), input_spec))


def converted(input: Tensor, d: dtype, place: Device = None) -> Tensor:
    """``input`` in dtype ``d`` on a device (None: where it is); itself where nothing changes."""
    kept = input.dtype
    if place is None and d is kept:
        return input
    if kept.is_complex and d.category not in (BOOL, COMPLEX):
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
    if place is not None:
        instance = as_device(place)
        if instance is not input._instance:
            return moved.function(input, instance.device, dtype=None if d is kept else d)
        if d is kept:
            return input
    return cast.function(input, dtype=d)


# -- to ---------------------------------------------------------------------------------------------------------------
@public(is_function=False)
def to(
    input: Tensor, *args: Tensor | DType | Device | bool, **kwargs: Tensor | DType | Device | bool | memory_format
) -> Tensor:
    """The tensor in another dtype and/or on another device: ``to(dtype)``, ``to(device, dtype)``, ``to(other)``.

    Returns the tensor itself where nothing changes, unless ``copy=True``. Recorded by autograd, across devices too.
    ``non_blocking`` is a hint. ``memory_format`` may ask for channels last; a copy is in C order otherwise. Raises
    ``TypeError`` for arguments that fit no overload.
    """
    if len(args) == 1 and not kwargs and args[0].__class__ is dtype:
        return converted(input, args[0], None)
    bound = _bound(args, kwargs)
    other = bound.get("other")
    if other is not None:
        d, place = other.dtype, other.device
    else:
        wanted = bound.get("dtype")
        d, place = input.dtype if wanted is None else as_dtype(wanted), bound.get("device")
    out = converted(input, d, place)
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
    """The arguments of ``to`` by name, whichever overload was meant."""
    if args:
        first = args[0]
        kind = "other" if hasattr(first, "_payload") else "dtype" if _is_dtype(first) else "device"
    else:
        kind = "other" if "other" in kwargs else "device"
    names = _OVERLOADS[kind]
    found = {**dict(zip(names, args)), **kwargs}
    allowed = {*names[len(args) :], "memory_format"}
    wanted = found.get("dtype")
    fits = (wanted is None or _is_dtype(wanted)) and not any(_is_dtype(found.get(n)) for n in ("non_blocking", "copy"))
    if len(args) > len(names) or not kwargs.keys() <= allowed or not fits:
        given = ", ".join([kind_of(a) for a in args] + [f"{k}={kind_of(v)}" for k, v in kwargs.items()])
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({given}), but expected one of:\n"
            " * (device device = None, dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
            "memory_format)\n"
            " * (dtype dtype, bool non_blocking = False, bool copy = False, *, memory_format)\n"
            " * (Tensor other, bool non_blocking = False, bool copy = False, *, memory_format)"
        )
    return found


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype) or value is bool or value is int or value is float or value is complex


@public(is_function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.to(other)``: the dtype and the device of ``other``."""
    return converted(input, other.dtype, other.device)


@public(is_function=False)
def to_device(input: Tensor, device: Device, /, *, stream: None = None) -> Tensor:
    """The tensor on ``device``; itself where it is there. The method of the Array API standard.

    Raises ``ValueError`` for a ``stream``: the device's own is used.
    """
    if stream is not None:
        raise ValueError(f"to_device(): only stream=None is supported, got {stream!r}")
    return converted(input, input.dtype, device)


# -- one dtype --------------------------------------------------------------------------------------------------------
@public(is_function=False)
def type(input: Tensor, dtype: DType | str | None = None, non_blocking: bool = False) -> str | Tensor:
    """Without ``dtype`` the name of the tensor's type, ``"candelabra.FloatTensor"``; with one, a cast.

    ``dtype`` may be a dtype or such a name. Raises ``ValueError`` for any other string.
    """
    if dtype is None:
        return f"candelabra.{input.dtype.title}Tensor"
    if isinstance(dtype, str):
        named = {f"{d.title}Tensor": d for d in ALL}
        found = named.get(dtype.rpartition(".")[2])
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}")
        dtype = found
    return converted(input, as_dtype(dtype))


def _cast_to(input: Tensor, d: dtype, memory_format: memory_format | None) -> Tensor:
    """``input`` in dtype ``d``, itself where it has it; ``memory_format`` as in :func:`to`."""
    out = converted(input, d)
    if memory_format is None or physical_order(input.ndim, memory_format) is None:
        return out
    return out.contiguous(memory_format)


@public(name="float", is_function=False)
def to_float(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``float32``; itself where it is that already."""
    return _cast_to(input, float32, memory_format)


@public(name="double", is_function=False)
def to_double(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``float64``; itself where it is that already."""
    return _cast_to(input, float64, memory_format)


@public(name="half", is_function=False)
def to_half(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``float16``; itself where it is that already."""
    return _cast_to(input, float16, memory_format)


@public(name="bfloat16", is_function=False)
def to_bfloat16(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``bfloat16``; itself where it is that already."""
    return _cast_to(input, bfloat16, memory_format)


@public(name="int", is_function=False)
def to_int(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``int32``; itself where it is that already."""
    return _cast_to(input, int32, memory_format)


@public(name="long", is_function=False)
def to_long(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``int64``; itself where it is that already."""
    return _cast_to(input, int64, memory_format)


@public(name="short", is_function=False)
def to_short(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``int16``; itself where it is that already."""
    return _cast_to(input, int16, memory_format)


@public(name="char", is_function=False)
def to_char(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``int8``; itself where it is that already."""
    return _cast_to(input, int8, memory_format)


@public(name="byte", is_function=False)
def to_byte(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``uint8``; itself where it is that already."""
    return _cast_to(input, uint8, memory_format)


@public(name="bool", is_function=False)
def to_bool(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``bool``; itself where it is that already."""
    return _cast_to(input, bool_, memory_format)


@public(name="cfloat", is_function=False)
def to_cfloat(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``complex64``; itself where it is that already."""
    return _cast_to(input, complex64, memory_format)


@public(name="cdouble", is_function=False)
def to_cdouble(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """The tensor as ``complex128``; itself where it is that already."""
    return _cast_to(input, complex128, memory_format)
