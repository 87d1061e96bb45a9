"""Complex numbers: conjugate and angle; ``complex`` and ``polar``, which combine real numbers."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.filled import new_full
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import boolean, real_part, to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise, shape_of
from candelabra.dtypes import COMPLEX_BITS, bool_, complex64, complex128, dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def conj(x: Any) -> Any:
    """Return the conjugate of a tensor or a number. A real tensor is returned itself."""
    try:
        return conj_physical(x) if x._keys & COMPLEX_BITS else x
    except AttributeError:
        return x.conjugate()


@operator(pointwise)
def conj_physical(input: Tensor) -> Tensor:
    """Return the complex conjugate in new memory, also for a real tensor."""
    ...


conj_physical.vjp(input=lambda g: g.conj())


@operator(pointwise, result=real_part, promote=to_float)
def angle(input: Tensor) -> Tensor:
    """Return the angle in radians; for real numbers it is 0, or pi for negative ones."""
    if input.is_complex():
        return input.imag.atan2(input.real)
    return ((input < 0).to(input.dtype) * math.pi).where(input == input, input)


@operator(pointwise, result=boolean, out=False)
def isreal(input: Tensor) -> Tensor:
    """Return True where the imaginary part is 0, which holds everywhere for real dtypes."""
    return input.imag == 0 if input.is_complex() else new_full(input, input.shape, True, dtype=bool_)


isreal.no_gradient("the result is bool")


# -- from real numbers ------------------------------------------------------------------------------------------------
def _check_parts(first: Any, second: Any) -> None:
    one, two = first.dtype.title, second.dtype.title
    if one not in ("Half", "Float", "Double"):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one} and {two}")
    if one != two:
        raise RuntimeError(f"Expected object of scalar type {one} but got scalar type {two} for second argument")


def _complex_of(d: dtype) -> dtype:
    return complex128 if d.itemsize == 8 else complex64


@operator(
    checked_pointwise(_check_parts), promote=unpromoted, result=_complex_of, method=False, inplace=False, out="exact"
)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """``real + i * imag``, broadcast; complex64 for float32 and float16, complex128 for float64."""
    from candelabra._operators.shapes.joining import cat
    from candelabra._operators.shapes.views import view_as_complex

    _check_parts(real, imag)
    if real.dtype.is_half:
        real, imag = real.float(), imag.float()
    if real.shape != imag.shape:
        shape = broadcast_shapes(shape_of(real), shape_of(imag))
        real, imag = real.expand(shape), imag.expand(shape)
    return view_as_complex.function(cat.function((real.unsqueeze(-1), imag.unsqueeze(-1)), -1))


@operator(
    checked_pointwise(_check_parts),
    promote=unpromoted,
    result=_complex_of,
    method=False,
    inplace=False,
    autocast=Autocast(host="float32"),
)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * (cos(angle) + i * sin(angle))``, broadcast."""
    _check_parts(abs, angle)
    if abs.dtype.is_half:
        abs, angle = abs.float(), angle.float()
    return complex.function(abs * angle.cos(), abs * angle.sin())


@public
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugation is never lazy."""
    return input


@public
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: negation is never lazy."""
    return input
