"""Complex numbers: conjugate and angle. ``complex`` and ``polar`` are in ``complex_parts``."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._records.callables import public
from candelabra._records.promotion import boolean, real_part, to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise
from candelabra.dtypes import COMPLEX_BITS, bool_

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def conj_of(x: Any) -> Any:
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


@public(guarded=False, elementwise=True)
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate, or the tensor itself if it is real."""
    return conj_physical(input) if input._keys & COMPLEX_BITS else input


@public(elementwise=True)
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugation is never lazy."""
    return input


@public(elementwise=True)
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: negation is never lazy."""
    return input
