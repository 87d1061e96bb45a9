"""Tensors in another dtype, on another device, as Python values."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype, kind_of
from candelabra._device import open_device
from candelabra._interchange import values
from candelabra._interchange.nested import fitted
from candelabra._keys import DEVICE_SHIFT
from candelabra._layout import physical_order
from candelabra._operators.primitives import creation, transfer
from candelabra._operators.shapes.memory_formats import in_memory_format
from candelabra._operators.shapes.permuting import inverse_permutation, permute
from candelabra._records.callables import public
from candelabra.dtypes import (
    BOOL,
    BY_NAME,
    COMPLEX,
    DTYPE_MASK,
    PYTHON_NAMES,
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
    from candelabra._tensor import Tensor


PLACE = DTYPE_MASK | (-1 << DEVICE_SHIFT)
"""The bits of a key that say dtype and device."""


# -- dtype and device -------------------------------------------------------------------------------------------------
def converted(input: Tensor, d: dtype, place: Any = None) -> Tensor:
    """``input`` in dtype ``d`` on a device (None: where it is); itself where nothing changes."""
    kept = input.dtype
    if place is None and d is kept:
        return input
    if kept.is_complex and d.category not in (BOOL, COMPLEX):
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
    if place is not None:
        instance = open_device(place)
        if instance is not input._instance:
            moved: Tensor = transfer.moved(input, instance.device, dtype=None if d is kept else d)
            return moved
        if d is kept:
            return input
    made: Tensor = creation.cast.function(input, dtype=d)
    return made


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
    bound = dict(zip(names, args))
    allowed = {*names[len(args) :], "memory_format"}
    found = {**bound, **kwargs}
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
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype and/or on another device: ``to(dtype)``, ``to(device, dtype)``, ``to(other)``.

    Returns the tensor itself where nothing changes, unless ``copy=True``. Recorded by autograd, across devices too.
    ``non_blocking`` is a hint. ``memory_format`` may ask for channels last; a copy is in C order otherwise.
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
    format = bound.get("memory_format")
    if format is not None and physical_order(input.ndim, format) is not None:
        return in_memory_format(out, format)
    return clone(input) if out is input and bound.get("copy") else out


@public(is_function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.to(other)``: the dtype and the device of ``other``."""
    return converted(input, other.dtype, other.device)


@public(is_function=False)
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Without ``dtype`` the name of the tensor's type, ``"candelabra.FloatTensor"``; with one, a cast.

    ``dtype`` may be a dtype or such a name; ``ValueError`` for any other string.
    """
    if dtype is None:
        return f"candelabra.{PYTHON_NAMES[input.dtype.name]}Tensor"
    if isinstance(dtype, str):
        named = {f"{title}Tensor": BY_NAME[name] for name, title in PYTHON_NAMES.items()}
        found = named.get(dtype.rpartition(".")[2])
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}")
        dtype = found
    return converted(input, as_dtype(dtype))


def cast_to(input: Tensor, d: dtype, memory_format: Any) -> Tensor:
    """``input`` in dtype ``d``, itself where it has it; ``memory_format`` as in :func:`to`."""
    out = converted(input, d)
    return out if physical_order(input.ndim, memory_format) is None else in_memory_format(out, memory_format)


@public(name="float", is_function=False)
def to_float(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``float32``; itself where it is that already."""
    return cast_to(input, float32, memory_format)


@public(name="double", is_function=False)
def to_double(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``float64``; itself where it is that already."""
    return cast_to(input, float64, memory_format)


@public(name="half", is_function=False)
def to_half(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``float16``; itself where it is that already."""
    return cast_to(input, float16, memory_format)


@public(name="bfloat16", is_function=False)
def to_bfloat16(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``bfloat16``; itself where it is that already."""
    return cast_to(input, bfloat16, memory_format)


@public(name="int", is_function=False)
def to_int(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``int32``; itself where it is that already."""
    return cast_to(input, int32, memory_format)


@public(name="long", is_function=False)
def to_long(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``int64``; itself where it is that already."""
    return cast_to(input, int64, memory_format)


@public(name="short", is_function=False)
def to_short(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``int16``; itself where it is that already."""
    return cast_to(input, int16, memory_format)


@public(name="char", is_function=False)
def to_char(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``int8``; itself where it is that already."""
    return cast_to(input, int8, memory_format)


@public(name="byte", is_function=False)
def to_byte(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``uint8``; itself where it is that already."""
    return cast_to(input, uint8, memory_format)


@public(name="bool", is_function=False)
def to_bool(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``bool``; itself where it is that already."""
    return cast_to(input, bool_, memory_format)


@public(name="cfloat", is_function=False)
def to_cfloat(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``complex64``; itself where it is that already."""
    return cast_to(input, complex64, memory_format)


@public(name="cdouble", is_function=False)
def to_cdouble(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as ``complex128``; itself where it is that already."""
    return cast_to(input, complex128, memory_format)


# -- copies -----------------------------------------------------------------------------------------------------------
@public
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own, in C order unless ``memory_format`` asks for channels last. Recorded by autograd."""
    order = None if memory_format is None else physical_order(input.ndim, memory_format)
    if order is not None:
        turned: Tensor = permute(creation.clone(permute(input, order)), inverse_permutation(order))
        return turned
    made: Tensor = creation.clone(input)
    return made


@public(is_function=False)
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write ``src``, a tensor or a number, into this tensor: broadcast, cast and moved as needed. Recorded."""
    if not hasattr(src, "_payload"):
        if isinstance(src, (bool, int, float, complex)):
            filled: Tensor = creation.filled.form("inplace")(input, fitted(src, input.dtype))
            return filled
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {kind_of(src)}")
    same: bool = src is input
    if same:
        return input
    if (src._keys ^ input._keys) & PLACE:
        elsewhere = (src._keys ^ input._keys) >> DEVICE_SHIFT
        src = converted(src, input.dtype, input.device if elsewhere else None)
    written: Tensor = creation.copied.form("inplace")(input, src)
    return written


# -- Python values ----------------------------------------------------------------------------------------------------
@public(is_function=False)
def item(input: Tensor) -> Any:
    """The one element as a Python number; ``RuntimeError`` unless there is exactly one."""
    return values.item(input)


@public(is_function=False)
def tolist(input: Tensor) -> Any:
    """The elements as nested lists; a 0-d tensor gives a number."""
    return values.nested_list(input)
