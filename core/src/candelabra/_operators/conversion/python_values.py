"""Tensors as Python values: item, tolist, float(x), int(x) and the rest of Python's numeric protocols."""

from __future__ import annotations

import builtins
import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange import values
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@public(is_function=False)
def item(input: Tensor) -> Any:
    """The one element as Python's bool, int, float or complex. Raises ``RuntimeError`` unless there is exactly one."""
    return values.item(input)


@public(is_function=False)
def tolist(input: Tensor) -> Any:
    """The elements as nested lists of Python numbers; a 0-d tensor gives a number."""
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
    """``float(x)`` of one element. Raises ``ValueError`` for several, ``RuntimeError`` for a complex one."""
    return builtins.float(_real(input, "double"))


@public(is_function=False)
def __int__(input: Tensor) -> int:
    """``int(x)`` of one element, truncated towards 0."""
    return builtins.int(_real(input, "int64_t"))


@public(is_function=False)
def __complex__(input: Tensor) -> complex:
    """``complex(x)`` of one element."""
    return builtins.complex(_number(input))


@public(is_function=False)
def __index__(input: Tensor) -> int:
    """One integer (or bool) where Python wants an index. Raises ``TypeError`` for anything else."""
    if input.numel() != 1 or input.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return builtins.int(values.item(input))


@public(is_function=False)
def __floor__(input: Tensor) -> int:
    """``math.floor(x)`` of one element, an int."""
    return math.floor(_real(input, "double"))


@public(is_function=False)
def __ceil__(input: Tensor) -> int:
    """``math.ceil(x)`` of one element, an int."""
    return math.ceil(_real(input, "double"))


@public(is_function=False)
def __trunc__(input: Tensor) -> int:
    """``math.trunc(x)`` of one element, an int."""
    return math.trunc(_real(input, "double"))


# -- numeric protocols whose result is a tensor -----------------------------------------------------------------------
@public(is_function=False)
def __round__(input: Tensor, ndigits: int | None = None) -> Tensor:
    """``round(x, ndigits)``: every element rounded, ties to even; a tensor of the same dtype."""
    return input.round(decimals=ndigits or 0)


@public(is_function=False)
def __divmod__(input: Tensor, other: Tensor | Number) -> tuple[Tensor, Tensor]:
    """``(x // y, x % y)``."""
    return input // other, input % other


@public(is_function=False)
def __rdivmod__(input: Tensor, other: Tensor | Number) -> tuple[Tensor, Tensor]:
    """``(y // x, y % x)``."""
    return other // input, other % input
