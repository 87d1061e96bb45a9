"""Data types: what they are, what a mix of them becomes, and casts."""

from __future__ import annotations

from functools import reduce

from candelabra import dtypes
from candelabra._annotations import Any, Final, NamedTuple
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed
from candelabra.dtypes import (
    COMPLEX,
    FLOATING,
    INTEGER,
    Operand,
    category_of_scalar,
    default_for_category,
    dtype,
    promote_types,
    result_dtype,
)

KINDS: Final[dict[str, Any]] = {
    "bool": lambda d: d.category == dtypes.BOOL,
    "signed integer": lambda d: d.category == INTEGER and d.is_signed,
    "unsigned integer": lambda d: d.category == INTEGER and not d.is_signed,
    "integral": lambda d: d.category == INTEGER,
    "real floating": lambda d: d.category == FLOATING,
    "complex floating": lambda d: d.category == COMPLEX,
    "numeric": lambda d: d.category >= INTEGER,
}
"""The kinds of dtypes that the standard names."""


class FloatInfo(NamedTuple):
    """Limits of a floating dtype, of a complex one those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerInfo(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: dtype


def _dtype_of(value: Any) -> dtype:
    return value.dtype if isinstance(value, Tensor) else value


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype or of an array's. ``TypeError`` for other dtypes."""
    d = _dtype_of(type)
    found = dtypes.finfo(d)
    return FloatInfo(found.bits, found.eps, found.max, found.min, found.smallest_normal, d.to_real())


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype or of an array's. ``TypeError`` for other dtypes."""
    d = _dtype_of(type)
    found = dtypes.iinfo(d)
    return IntegerInfo(found.bits, found.max, found.min, d)


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Whether a dtype is ``kind``: a dtype, one of the names of :data:`KINDS`, or a tuple of such.

    ``ValueError`` for a name that is none, ``TypeError`` for other things.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): {kind!r} is no kind of dtypes; there are {', '.join(map(repr, KINDS))}")
        return bool(KINDS[kind](dtype))
    if not isinstance(kind, dtypes.dtype):
        raise TypeError(f"isdtype(): kind is a dtype, a name or a tuple of those, not {kind!r}")
    return dtype is kind


def can_cast(from_: Any, to: dtype, /) -> bool:
    """Whether the standard's promotion leads from a dtype (or an array's) to ``to``, so that no value is lost."""
    source = _dtype_of(from_)
    if source.category != to.category and not source.category == FLOATING < to.category:
        return False
    try:
        return promote_types(source, to) is to
    except TypeError:  # uint64 with a signed integer
        return False


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype of an operation on arrays, dtypes and Python numbers; numbers raise only the kind.

    ``ValueError`` without an array or a dtype.
    """
    strong, numbers = [], []
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float, complex)):
            numbers.append(Operand(default_for_category(category_of_scalar(value)), 0))
        elif isinstance(value, (Tensor, dtype)):
            strong.append(_dtype_of(value))
        else:
            raise TypeError(f"result_type() takes arrays, dtypes and numbers, not {type(value).__name__}")
    if not strong:
        raise ValueError("result_type() takes at least one array or dtype")
    return result_dtype([Operand(reduce(promote_types, strong), 2), *numbers])


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Array:
    """``x`` in another dtype (and on another device), copied unless ``copy=False`` and nothing changes.

    ``TypeError`` for a complex array and a real dtype: take ``real(x)``.
    """
    if x.dtype.is_complex and not dtype.is_complex:
        raise TypeError(f"astype(): a {x.dtype.name} array does not become {dtype.name}: take real(x) or abs(x) first")
    return arrayed(x.to(device=device, dtype=dtype, copy=copy), x)
