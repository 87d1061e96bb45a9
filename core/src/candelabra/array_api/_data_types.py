"""Data types: their limits and kinds, their promotion, and casts."""

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
"""The kinds of dtypes that the standard defines."""


class FloatInfo(NamedTuple):
    """Limits of a floating dtype; for a complex dtype, those of its real and imaginary parts."""

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
    """Return the limits of a floating dtype or of an array's. Raises ``TypeError`` for other dtypes."""
    d = _dtype_of(type)
    limits = dtypes.finfo(d)
    return FloatInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, d.to_real())


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype or of an array's. Raises ``TypeError`` for other dtypes."""
    d = _dtype_of(type)
    limits = dtypes.iinfo(d)
    return IntegerInfo(limits.bits, limits.max, limits.min, d)


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Return whether a dtype is of a ``kind``: a dtype, a name in :data:`KINDS`, or a tuple of these.

    Raises ``ValueError`` for another name, ``TypeError`` for other objects.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"isdtype() expects a kind of dtypes, not {kind!r}; there are {', '.join(map(repr, KINDS))}"
            )
        return bool(KINDS[kind](dtype))
    if not isinstance(kind, dtypes.dtype):
        raise TypeError(f"isdtype() expects a dtype, a name or a tuple of these, not {kind!r}")
    return dtype is kind


def can_cast(from_: Any, to: dtype, /) -> bool:
    """Return whether the standard promotes a dtype (or that of an array) to ``to``, without loss of values."""
    source = _dtype_of(from_)
    if source.category != to.category and not source.category == FLOATING < to.category:
        return False
    try:
        return promote_types(source, to) is to
    except TypeError:  # uint64 with a signed integer
        return False


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """Return the dtype of an operation on arrays, dtypes and Python numbers; Python numbers affect only the kind.

    ``ValueError`` without an array or a dtype.
    """
    strong, numbers = [], []
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float, complex)):
            numbers.append(Operand(default_for_category(category_of_scalar(value)), 0))
        elif isinstance(value, (Tensor, dtype)):
            strong.append(_dtype_of(value))
        else:
            raise TypeError(f"result_type() expects arrays, dtypes and numbers, not {type(value).__name__}")
    if not strong:
        raise ValueError("result_type() expects at least one array or dtype")
    return result_dtype([Operand(reduce(promote_types, strong), 2), *numbers])


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return ``x`` in another dtype (and on another device), copied unless ``copy=False`` and nothing changes.

    Raises ``TypeError`` for a complex array and a real dtype: use ``real(x)``.
    """
    if x.dtype.is_complex and not dtype.is_complex:
        raise TypeError(f"astype() cannot convert {x.dtype.name} to {dtype.name}: use real(x) or abs(x) first")
    return arrayed(x.to(device=device, dtype=dtype, copy=copy), x)
