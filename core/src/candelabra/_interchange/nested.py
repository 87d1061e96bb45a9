"""Convert nested sequences of numbers to bytes of one dtype.

All loops over the data run in C: ``itertools.chain`` joins the levels, ``set(map(type, …))`` determines the types,
and ``array`` packs the numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from math import isfinite
from operator import attrgetter

from candelabra._annotations import Any, Final, NamedTuple
from candelabra.dtypes import (
    BOOL,
    BY_NAME,
    FLOATING,
    INTEGER,
    Operand,
    category_of_scalar,
    default_for_category,
    dtype,
    float32,
    int64,
    result_dtype,
)

NUMBERS: Final = {bool, int, float, complex}


class Flat(NamedTuple):
    """The numbers in C order, their shape, and the dtype that PyTorch would infer."""

    numbers: Sequence[Any]
    shape: tuple[int, ...]
    inferred: dtype


def is_sequence(value: Any) -> bool:
    """Return whether a value is a level of nesting: a list, tuple or range, or another object with length and items."""
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, (str, bytes, dict, set)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        return False
    return getattr(value, "shape", None) != () and not hasattr(value, "keys")  # a 0-d array is a number


def _is_level(value: Any) -> bool:
    """Return whether the first item of a level is a sequence. A tensor of one element is a number, as in PyTorch."""
    return is_sequence(value) and not _is_single(value)


def _is_single(value: Any) -> bool:
    return hasattr(value, "_payload") and value.numel() == 1


def flatten(data: Any) -> Flat:
    """Return the numbers of nested sequences.

    Raises ``ValueError`` if sequences of one level differ in length, and ``TypeError`` or ``RuntimeError`` for items
    that are not numbers, with PyTorch's texts.
    """
    level: Sequence[Any] = (data,)
    shape: list[int] = []
    while level and _is_level(level[0]):
        expected = len(level[0])
        _check_level(level, expected, len(shape))
        shape.append(expected)
        inner = level[0]
        level = inner if len(level) == 1 and isinstance(inner, (list, tuple)) else list(chain.from_iterable(level))
        if not expected:
            break
    kinds = set(map(type, level))
    if kinds <= NUMBERS:
        top = max(map(CATEGORY.__getitem__, kinds), default=FLOATING)
        return Flat(level, tuple(shape), default_for_category(top))
    return _convert_others(level, tuple(shape))


CATEGORY: Final = {bool: 0, int: 1, float: 2, complex: 3}


def _check_level(level: Sequence[Any], expected: int, dim: int) -> None:
    try:
        lengths = set(map(len, level))
    except TypeError:
        raise TypeError("not a sequence") from None
    if lengths != {expected}:
        got = next(length for length in map(len, level) if length != expected)
        raise ValueError(f"expected sequence of length {expected} at dim {dim} (got {got})")
    if not all(map(is_sequence, level)):
        raise TypeError("not a sequence")


def _convert_others(level: Sequence[Any], shape: tuple[int, ...]) -> Flat:
    """Return elements that are not all Python numbers: 0-d tensors, array scalars, subclasses. Raise for others."""
    numbers = []
    operands = set()
    for value in level:
        if isinstance(value, str):
            if shape:
                raise ValueError(f"too many dimensions '{type(value).__name__}'")
            raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
        if isinstance(value, bytes):
            raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
        if (getattr(value, "shape", None) == () and hasattr(value, "item")) or _is_single(value):
            d = _dtype_of_scalar(value)
            value = value.item()
        elif isinstance(value, (bool, int, float, complex)):
            d = default_for_category(category_of_scalar(value))
        elif is_sequence(value):
            raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
        elif hasattr(value, "__index__"):
            value, d = value.__index__(), int64
        elif hasattr(value, "__float__"):
            value, d = float(value), default_for_category(FLOATING)
        else:
            raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
        numbers.append(value)
        operands.add(Operand(d, 2))
    return Flat(numbers, shape, result_dtype(operands))


def _dtype_of_scalar(value: Any) -> dtype:
    d = getattr(value, "dtype", None)
    if isinstance(d, dtype):
        return d
    found = BY_NAME.get(getattr(d, "name", ""))
    return found if found is not None else default_for_category(category_of_scalar(value.item()))


# -- packing ----------------------------------------------------------------------------------------------------------
def packed(numbers: Iterable[Any], d: dtype) -> tuple[memoryview, dtype]:
    """Return the numbers as bytes and their dtype: ``d``, or float32 for the half types, which the device then casts.

    Raises ``RuntimeError`` for an integer or float outside the dtype's range, ``ValueError`` for an int outside the
    range of int64, and ``TypeError`` for complex numbers in a real dtype.
    """
    if d.category == BOOL:
        return memoryview(bytes(map(bool, numbers))), d
    if d.category == INTEGER:
        return _integers(numbers, d), d
    if d.is_complex:
        parts = chain.from_iterable(map(attrgetter("real", "imag"), numbers))
        return memoryview(array(d.format, parts)).cast("B"), d
    wide = float32 if d.is_half else d
    try:
        return memoryview(array(wide.format, numbers)).cast("B"), wide
    except TypeError:
        raise TypeError("must be real number, not complex") from None


def _integers(numbers: Iterable[Any], d: dtype) -> memoryview:
    values = numbers if isinstance(numbers, (list, tuple, range)) else list(numbers)
    try:
        return memoryview(array(d.format, values)).cast("B")
    except (OverflowError, TypeError):  # truncate floats, and report a number that is too large
        return memoryview(array(d.format, [_integer(v, d) for v in values])).cast("B")


def _integer(value: Any, d: dtype) -> int:
    if isinstance(value, complex):
        raise TypeError("'complex' object cannot be interpreted as an integer")
    bits = d.itemsize * 8 - d.is_signed
    if isinstance(value, float):
        if not isfinite(value):
            raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")
        value = int(value)
    elif not -(1 << 63) <= value < 1 << 63 and d.name != "uint64":
        raise ValueError("Overflow when unpacking long long")
    top = (1 << bits) - 1
    if (-top - 1 if d.is_signed else 0) <= value <= top:
        return int(value)
    if not d.is_signed and d.itemsize < 8 and -top <= value < 0:  # modulo 2**bits, as in PyTorch: -1 is the largest
        return int(value) & top
    raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")


def fitted(value: Any, d: dtype) -> Any:
    """Convert one Python number to a number of dtype ``d``. It raises the errors of :func:`packed`."""
    if d.category == BOOL:
        return bool(value)
    if d.category == INTEGER:
        return _integer(int(value) if isinstance(value, bool) else value, d)
    if isinstance(value, complex) and not d.is_complex:
        raise TypeError("must be real number, not complex")
    return complex(value) if d.is_complex else float(value)
