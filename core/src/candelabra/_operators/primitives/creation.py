"""Operators that make tensors, or make them anew: fill, range, copy, cast."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Shape, Tensor


@by
def given_shape(shape: tuple[int, ...], *_: object) -> tuple[int, ...]:
    """The shape that was asked for; negative sizes are the error."""
    negative = [s for s in shape if s < 0]
    if negative:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative[0]}: {list(shape)}")
    return shape


@operator(given_shape, promote=unpromoted, method=False, out=False, public=False)
def full(shape: Shape, value: Number, *, dtype: DType, device: Device) -> Tensor:
    """A tensor filled with one number."""
    ...


@operator(by(lambda start, step, length, *_: (length,)), promote=unpromoted, method=False, out=False, public=False)
def arange(start: Number, step: Number, length: int, *, dtype: DType, device: Device) -> Tensor:
    """``start + step * i`` for i below ``length``: a 1-d tensor, computed in float64 or int64, then cast."""
    ...


@operator(by(lambda start, end, steps, *_: (steps,)), promote=unpromoted, method=False, out=False, public=False)
def linspace(start: Number, end: Number, steps: int, *, dtype: DType, device: Device) -> Tensor:
    """``steps`` values from ``start`` to ``end``, both included, evenly spaced: a 1-d tensor."""
    ...


@operator(by(lambda n, m, *_: (n, m)), promote=unpromoted, method=False, out=False, public=False)
def eye(n: int, m: int, *, dtype: DType, device: Device) -> Tensor:
    """The ``n`` × ``m`` matrix with ones on its diagonal."""
    ...


for _made in (full, arange, linspace, eye):
    _made.no_gradient("made from numbers")


# -- like an operand: what the bodies of operators create --------------------------------------------------------------
@operator(by(lambda input, size, *_: given_shape(None, (size,))), promote=unpromoted, out=False, public=False)
def new_full(input: Tensor, size: Shape, value: Any, *, dtype: DType | None = None) -> Tensor:
    """A tensor of shape ``size`` full of a number, on the device of ``input``, and in its dtype unless one is given."""
    return full.function(size, value, dtype=dtype or input.dtype, device=input._instance)


@operator(by(lambda input, start, step, length, *_: (length,)), promote=unpromoted, out=False, public=False)
def new_arange(input: Tensor, start: Any, step: Any, length: int, *, dtype: DType | None = None) -> Tensor:
    """``start + step * i`` for i below ``length``, on the device of ``input`` and in its dtype unless one is given."""
    return arange.function(start, step, length, dtype=dtype or input.dtype, device=input._instance)


@operator(by(lambda input, n, m, *_: (n, m)), promote=unpromoted, out=False, public=False)
def new_eye(input: Tensor, n: int, m: int, *, dtype: DType | None = None) -> Tensor:
    """The ``n`` × ``m`` matrix with ones on its diagonal, on the device of ``input`` and in its dtype unless one is
    given.
    """
    return eye.function(n, m, dtype=dtype or input.dtype, device=input._instance)


@operator(by(lambda input, start, end, steps, *_: (steps,)), promote=unpromoted, out=False, public=False)
def new_linspace(input: Tensor, start: Any, end: Any, steps: int, *, dtype: DType | None = None) -> Tensor:
    """``steps`` values from ``start`` to ``end``, both included, evenly spaced, on the device of ``input`` and in its
    dtype unless one is given.
    """
    return linspace(start, end, steps, dtype=dtype or input.dtype, device=input._instance)


for _made_like in (new_full, new_arange, new_eye, new_linspace):
    _made_like.no_gradient("made from numbers")


@operator(like_input, promote=unpromoted, out=False, public=False)
def cast(input: Tensor, *, dtype: DType) -> Tensor:
    """The values in another dtype: floats are truncated towards 0, complex numbers lose their imaginary part."""
    ...


def uncast(g: Tensor, input_spec: Any) -> Tensor:
    """A gradient in the dtype of the tensor that it belongs to; of a complex one, the real part where that is real."""
    return g if g.dtype is input_spec.dtype else cast(g, dtype=input_spec.dtype)


cast.vjp(input=uncast)


@operator(like_input, out=False, public=False)
def clone(input: Tensor) -> Tensor:
    """A copy in memory of its own, contiguous."""
    ...


clone.vjp(input=lambda g: g)


def zeroed(g: Tensor) -> Tensor:
    """The gradient of what was overwritten: zeros. Not ``g * 0``, which is NaN where ``g`` is infinite."""
    return full(tuple(g.shape), 0, dtype=g.dtype, device=g.device)


@by
def _copied(input: Tensor, src: Tensor) -> tuple[int, ...]:
    from candelabra._operators.shapes.expanding import expanded_shape

    return expanded_shape(shape_of(src), shape_of(input))


@operator(_copied, inplace=True, public=False)
def copied(input: Tensor, src: Tensor) -> Tensor:
    """``src`` broadcast to the shape of ``input``: what ``input.copy_(src)`` leaves there."""
    return src.expand(input.shape).clone()


copied.vjp(input=lambda g: zeroed(g), src=lambda g: g)


@by
def _filled(input: Tensor, value: Any) -> tuple[int, ...]:
    from candelabra._operators.shapes.expanding import expanded_shape

    return expanded_shape(shape_of(value), shape_of(input))


@operator(_filled, inplace=True, public=False)
def filled(input: Tensor, value: Tensor | Number) -> Tensor:
    """``value`` (a number or a 0-d tensor) in the shape of ``input``: what ``input.fill_(value)`` leaves there."""
    from candelabra._tensor import Tensor

    if isinstance(value, Tensor):
        return value.expand(input.shape).clone()
    return full(input.shape, value, dtype=input.dtype, device=input.device)


filled.vjp(input=lambda g: zeroed(g), value=lambda g: g.sum())
