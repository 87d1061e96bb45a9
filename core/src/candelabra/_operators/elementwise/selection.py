"""Selection of elements by a condition, and filling with a value: ``where``, ``masked_fill``, ``fill_``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.adapters import FLOATING_BITS
from candelabra._codegen.arguments import as_operand
from candelabra._interchange.nested import fitted
from candelabra._keys import SCALAR_BITS
from candelabra._operators.conversion.copies import filled
from candelabra._operators.conversion.dtype_and_device import cast
from candelabra._operators.conversion.python_numbers import OVERFLOW, number_for
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import by_arguments, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, checked_pointwise, pointwise, shape_of

if TYPE_CHECKING:
    from candelabra.typing import BoolMask, Mask, Number, Tensor


# -- where ------------------------------------------------------------------------------------------------------------
@operator(pointwise, method=False, inplace=False, public=False)
def where(condition: Mask, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return ``input`` where ``condition`` holds, else ``other``; all three broadcast."""
    ...


where.vjp(
    input=lambda g, condition: where(condition, g, 0),
    other=lambda g, condition: where(condition, 0, g),
)


def where_indices(condition: Tensor) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements, a 1-d tensor per dim: ``where`` without ``input`` and ``other``."""
    return tuple(condition.nonzero(as_tuple=True))


where_overloads = overloads("where", where, where_indices, method=False)


@public(is_function=False, method="where", elementwise=True)
def where_method(input: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """Return the elements of this tensor where ``condition`` holds, and those of ``other`` elsewhere."""
    return where.function(condition, input, other)


# -- masks ------------------------------------------------------------------------------------------------------------
@operator(pointwise, inplace=True, public=False)
def masked_fill(input: Tensor | Number, mask: BoolMask, value: Tensor | Number) -> Tensor:
    """Return ``input`` with ``value`` (a number or a 0-d tensor) where ``mask`` holds. The mask broadcasts."""
    return where(mask, value, input)


def _check_masked_value(value: Any) -> None:
    rank = len(shape_of(value))
    if rank:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s)."
        )


@operator(
    checked_pointwise(lambda input, mask, value: _check_masked_value(value)),
    promote=unpromoted,
    result=by_arguments,
    public=False,
)
def masked_fill_cast(input: Tensor, mask: BoolMask, value: Tensor | Number) -> Tensor:
    """Return ``input`` with ``value`` where ``mask`` holds; the mask broadcasts, and the dtype is that of ``input``.

    ``value`` is a number or a 0-d tensor. Raises ``RuntimeError`` if the dtype cannot hold it.
    """
    return masked_fill.function(input, mask, _value_for(input, value))


@masked_fill_cast.in_place
def _masked_fill_in_place(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    return masked_fill.form("inplace")(input, mask, _value_for(input, value))


def _value_for(input: Tensor, value: Any) -> Any:
    """Return a number or a 0-d tensor in the dtype of ``input``."""
    if type(value) in (float, int) and input._keys & FLOATING_BITS:
        return value
    if not hasattr(value, "_payload"):
        return number_for(value, input.dtype)
    _check_masked_value(value)
    if value.is_complex() and not input.is_complex():
        raise RuntimeError(OVERFLOW.format(input.dtype.c_name))
    return value if value.dtype is input.dtype else cast(value, dtype=input.dtype)


masked_fill_overloads = overloads("masked_fill", masked_fill_cast, inplace=True)


# -- filling ----------------------------------------------------------------------------------------------------------
def _check_value(value: Any) -> None:
    rank = len(shape_of(value))
    if rank:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {rank} dimensions.")


@by
def _filled(input: Any, value: Any) -> tuple[int, ...]:
    _check_value(value)
    return shape_of(input)


@operator(_filled, promote=unpromoted, result=by_arguments, method=False, out=False, elementwise=True)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a tensor like ``input`` with every element ``value``, a number or a 0-d tensor; see :func:`fill_`."""
    return filled.function(input, _fitted(input, value))


@public(guarded=False, elementwise=True)
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Set every element to ``value``, a number or a 0-d tensor, cast to the dtype of ``input``.

    Raises ``RuntimeError`` for a number that an integer dtype cannot hold, ``TypeError`` for a complex one in a real
    dtype.
    """
    kind = type(value)
    if kind is not float or not input._keys & FLOATING_BITS:
        if kind not in SCALAR_BITS:
            value, _ = as_operand(fill, "value", value, False)
        value = _fitted(input, value)
    out: Tensor = filled.form("inplace")(input, value)
    return out


def _fitted(input: Tensor, value: Any) -> Any:
    if hasattr(value, "_payload"):
        _check_value(value)
        return value if value.dtype is input.dtype else cast(value, dtype=input.dtype)
    return fitted(value, input.dtype)


@public(guarded=False, elementwise=True)
def zero_(input: Tensor) -> Tensor:
    """Set every element to 0."""
    out: Tensor = filled.form("inplace")(input, False)  # a bool needs no promotion of any dtype
    return out
