"""Arithmetic that PyTorch overloads: ``add`` and ``sub`` with ``alpha``, rounding ``div``, ``clamp``, ``where``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.adapters import FLOATING_BITS
from candelabra._interchange.nested import fitted
from candelabra._operators.fronts.comparison import result_type
from candelabra._operators.primitives import arithmetic, indexing
from candelabra._operators.primitives.creation import filled, full
from candelabra._records.callables import public
from candelabra.dtypes import FLOATING, bool_

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor


@public
def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``."""
    return arithmetic.add.function(input, other if alpha == 1 else _times(input, other, alpha), out=out)


@public(is_function=False)
def add_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of :func:`add`."""
    return arithmetic.add.form("inplace")(input, other if alpha == 1 else _times(input, other, alpha))


@public(aliases=("subtract",))
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``."""
    return arithmetic.sub.function(input, _subtrahend(input, other, alpha), out=out)


@public(is_function=False, aliases=("subtract_",))
def sub_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place form of :func:`sub`."""
    return arithmetic.sub.form("inplace")(input, _subtrahend(input, other, alpha))


def _subtrahend(input: Any, other: Any, alpha: Any) -> Any:
    # A bool stays one, for the operator to refuse.
    if alpha == 1 or isinstance(other, bool) or getattr(other, "dtype", None) is bool_:
        return other
    return _times(input, other, alpha)


def _times(input: Any, other: Any, alpha: Any) -> Any:
    if type(alpha) is float and result_type(input, other).category < FLOATING:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return other * alpha


_ROUNDED: dict[str | None, Operator[..., Tensor]] = {
    None: arithmetic.div,
    "floor": arithmetic.floor_divide,
    "trunc": arithmetic.trunc_divide,
}


def _division(rounding_mode: str | None) -> Operator[..., Tensor]:
    try:
        return _ROUNDED[rounding_mode]
    except KeyError:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        ) from None


@public(aliases=("divide", "true_divide"))
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``, then rounded: ``"floor"``, ``"trunc"``, or None for true division."""
    return _division(rounding_mode).function(input, other, out=out)


@public(is_function=False, aliases=("divide_", "true_divide_"))
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of :func:`div`."""
    return _division(rounding_mode).form("inplace")(input, other)


def _bounds(min: Any, max: Any) -> list[tuple[Any, Any]]:
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    return [(o, b) for o, b in ((arithmetic.clamp_min, min), (arithmetic.clamp_max, max)) if b is not None]


@public(aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """``input`` limited to [min, max]; either may be a tensor, a number or None. NaN stays NaN."""
    *first, (last, bound) = _bounds(min, max)
    for limit, other in first:
        input = limit.function(input, other)
    limited: Tensor = last.function(input, bound, out=out)
    return limited


@public(aliases=("clip_",))
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of :func:`clamp`."""
    for limit, bound in _bounds(min, max):
        limit.form("inplace")(input, bound)
    return input


@public(method=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """``input`` where ``condition`` holds, else ``other``; alone, the indices of what is nonzero, a tensor per dim."""
    if input is None and other is None:
        return indexing.nonzero(condition).unbind(1)
    if not hasattr(input, "_payload") and not hasattr(other, "_payload"):
        input = full((), input, dtype=result_type(input, other), device=condition.device)
    return arithmetic.where.function(condition, input, other, out=out)


@public(is_function=False, method="where")
def self_where(input: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where ``condition`` holds, else ``other``."""
    return arithmetic.where.function(condition, input, other)


@public
def fill_(input: Tensor, value: Any) -> Tensor:
    """Every element set to ``value``, a number or a 0-d tensor, cast to the tensor's dtype.

    ``RuntimeError`` for a number that an integer dtype cannot hold, ``TypeError`` for a complex one in a real dtype.
    """
    if type(value) is float and input._keys & FLOATING_BITS:
        out: Tensor = filled.form("inplace")(input, value)
        return out
    if hasattr(value, "_payload") and value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    if hasattr(value, "_payload"):
        return filled.form("inplace")(input, value if value.dtype is input.dtype else value.to(input.dtype))
    if not (input.dtype.is_floating_point and type(value) in (int, float)):
        value = fitted(value, input.dtype)
    return filled.form("inplace")(input, value)


@public
def zero_(input: Tensor) -> Tensor:
    """Every element set to 0."""
    out: Tensor = filled.form("inplace")(input, False)  # which no dtype has to be promoted for
    return out
