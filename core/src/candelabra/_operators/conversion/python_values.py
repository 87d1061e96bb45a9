"""Tensors as Python values: item, tolist, float(x), int(x) and the rest of Python's numeric protocols."""

from __future__ import annotations

import builtins
import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange import values
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@public(is_function=False, guarded=False)
def item(input: Tensor) -> Any:
    """Return the only element as a Python bool, int, float or complex. Raises ``RuntimeError`` unless there is exactly
    one.
    """
    return values.item(input)


@public(is_function=False)
def tolist(input: Tensor) -> Any:
    """Return the elements as nested lists of Python numbers; for a 0-d tensor, a number."""
    return values.nested_list(input)


# -- numbers ----------------------------------------------------------------------------------------------------------
def _number(input: Tensor) -> Any:
    if input.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return values.item(input)


def _real(input: Tensor, kind: str) -> Any:
    value = _number(input)
    if isinstance(value, builtins.complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


@public(is_function=False)
def __float__(input: Tensor) -> float:
    """Return ``float(x)`` for one element. Raises ``ValueError`` for several, ``RuntimeError`` for a complex one."""
    return builtins.float(_real(input, "double"))


@public(is_function=False)
def __int__(input: Tensor) -> int:
    """Return ``int(x)`` for one element, truncated towards 0."""
    return builtins.int(_real(input, "int64_t"))


@public(is_function=False)
def __complex__(input: Tensor) -> complex:
    """Return ``complex(x)`` for one element."""
    return builtins.complex(_number(input))


@public(is_function=False)
def __index__(input: Tensor) -> int:
    """Return the only element as an index of Python. Raises ``TypeError`` unless it is an integer or a bool."""
    if input.numel() != 1 or input.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return builtins.int(values.item(input))


@public(is_function=False)
def __floor__(input: Tensor) -> int:
    """Return ``math.floor(x)`` for one element, an int."""
    return math.floor(_real(input, "double"))


@public(is_function=False)
def __ceil__(input: Tensor) -> int:
    """Return ``math.ceil(x)`` for one element, an int."""
    return math.ceil(_real(input, "double"))


@public(is_function=False)
def __trunc__(input: Tensor) -> int:
    """Return ``math.trunc(x)`` for one element, an int."""
    return math.trunc(_real(input, "double"))


# -- numeric protocols whose result is a tensor -----------------------------------------------------------------------
@public(is_function=False)
def __round__(input: Tensor, ndigits: int | None = None) -> Tensor:
    """Return ``round(x, ndigits)``: a tensor of the same dtype with every element rounded, ties to even."""
    return input.round(decimals=ndigits or 0)


@public(is_function=False)
def __divmod__(input: Tensor, other: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Return ``(x // y, x % y)``."""
    return input // other, input % other


@public(is_function=False)
def __rdivmod__(input: Tensor, other: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Return ``(y // x, y % x)``."""
    return other // input, other % input
