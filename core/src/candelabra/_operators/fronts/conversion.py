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
from candelabra._operators.fronts.registry import front
from candelabra._operators.fronts.shaping import laid_out
from candelabra._operators.primitives import creation, transfer, views
from candelabra._operators.primitives.views import inverse
from candelabra.dtypes import BOOL, BY_NAME, COMPLEX, DTYPE_MASK, PYTHON_NAMES, dtype

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


@front(function=False)
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
    if physical_order(input.ndim, format) is not None:
        return laid_out(out, format)
    return clone(input) if out is input and bound.get("copy") else out


@front(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.to(other)``: the dtype and the device of ``other``."""
    return converted(input, other.dtype, other.device)


@front(function=False)
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


def _declare_cast(name: str, target: str) -> None:
    def cast(input: Tensor, memory_format: Any = None) -> Tensor:
        out = converted(input, BY_NAME[target], None)
        return out if physical_order(input.ndim, memory_format) is None else laid_out(out, memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor as ``{target}``; itself where it is that already. ``memory_format`` as in :func:`to`."
    front(function=False)(cast)


for _name, _target in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32",
    "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64",
    "cdouble": "complex128",
}.items():  # fmt: skip
    _declare_cast(_name, _target)


# -- copies -----------------------------------------------------------------------------------------------------------
@front
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own, in C order unless ``memory_format`` asks for channels last. Recorded by autograd."""
    order = None if memory_format is None else physical_order(input.ndim, memory_format)
    if order is not None:
        turned: Tensor = views.permute(creation.clone(views.permute(input, order)), inverse(order))
        return turned
    made: Tensor = creation.clone(input)
    return made


@front(function=False)
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
@front(function=False)
def item(input: Tensor) -> Any:
    """The one element as a Python number; ``RuntimeError`` unless there is exactly one."""
    return values.item(input)


@front(function=False)
def tolist(input: Tensor) -> Any:
    """The elements as nested lists; a 0-d tensor gives a number."""
    return values.nested_list(input)
