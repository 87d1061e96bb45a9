"""Complex numbers of two real ones: ``complex`` of the parts, ``polar`` of absolute value and angle."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.views import view_as_complex
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import to_complex, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _check_parts(first: Any, second: Any) -> None:
    one, two = first.dtype.title, second.dtype.title
    if one not in ("Half", "Float", "Double"):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one} and {two}")
    if one != two:
        raise RuntimeError(f"Expected object of scalar type {one} but got scalar type {two} for second argument")


@operator(
    checked_pointwise(_check_parts), promote=unpromoted, result=to_complex, method=False, inplace=False, out="exact"
)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """``real + i * imag``, broadcast; complex64 for float32 and float16, complex128 for float64."""
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
    result=to_complex,
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
