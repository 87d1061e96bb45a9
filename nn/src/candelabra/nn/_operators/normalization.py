"""Normalization to mean 0 and variance 1: one operator for layer, batch, group and instance normalization.

With ``c = x - mean(x)``, ``r = 1 / sqrt(mean(c²) + eps)``, ``z = c * r`` and ``out = z * weight + bias``, means over
``dims`` of n elements, and ``h = g * weight``:

    d out → x:   r * (h - mean(h) - z * mean(h * z))
    d mean → x:  g / n
    d r → x:     dr/dx = -r³ * c / n = -r² * z / n

The second and third line matter only for derivatives of the statistics.
"""

from __future__ import annotations

from candelabra.backend import broadcast_shapes
from candelabra.dtypes import float32
from candelabra.library import Autocast, by, operator, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


class Normalized(NamedTuple):
    """The normalized values, and the statistics, whose reduced dims have size 1."""

    values: Tensor
    mean: Tensor
    rstd: Tensor


@by
def _normalized(input: Tensor, weight: Any, bias: Any, dims: Ints, eps: float) -> Any:
    shape = shape_of(input)
    broadcast_shapes(shape, shape_of(weight), shape_of(bias))
    kept = tuple(1 if i in dims else s for i, s in enumerate(shape))
    return shape, kept, kept


@operator(
    _normalized,
    result=(same, same, same),
    accepts="real floating",
    method=False,
    public=False,
    autocast=Autocast("float32", "preserved"),
)
def normalize(input: Tensor, weight: Tensor | None, bias: Tensor | None, dims: Ints, eps: float) -> Normalized:
    """``(input - mean) / sqrt(variance + eps) * weight + bias``, mean and (biased) variance taken over ``dims``.

    ``weight`` and ``bias`` broadcast to the input. Ba, Kiros and Hinton, Layer normalization, 2016; Ioffe and Szegedy,
    Batch normalization, 2015.
    """
    if input.dtype.is_half:  # in float32, the squares do not overflow
        scale, shift = (None if factor is None else factor.to(float32) for factor in (weight, bias))
        wide = normalize(input.to(float32), scale, shift, dims, eps)
        return Normalized(*(part.to(input.dtype) for part in wide))
    mean = input.mean(dims, True)
    centred = input - mean
    rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    values = centred * rstd
    if weight is not None:
        values = values * weight
    return Normalized(values if bias is None else values + bias, mean, rstd)


@by
def _like_normalized(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Any, *_: Any) -> Ints:
    return broadcast_shapes(shape_of(input), shape_of(grad), shape_of(weight))


@operator(_like_normalized, accepts="real floating", method=False, public=False, out=False)
def normalize_backward(
    grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, dims: Ints
) -> Tensor:
    """The gradient of the input of :func:`normalize`; ``grad`` is the gradient of its values."""
    z = (input - mean) * rstd
    h = grad if weight is None else grad * weight
    return (h - h.mean(dims, True) - z * (h * z).mean(dims, True)) * rstd


def _normalize_vjp(
    needs: tuple[bool, bool, bool],
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    dims: Ints,
    g_values: Tensor | None = None,
    g_mean: Tensor | None = None,
    g_rstd: Tensor | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    to_input = to_weight = None
    if g_values is not None:
        if needs[0]:
            to_input = normalize_backward(g_values, input, mean, rstd, weight, dims)
        if needs[1]:
            to_weight = g_values * ((input - mean) * rstd)
    if needs[0] and (g_mean is not None or g_rstd is not None):
        count = input.numel() // max(mean.numel(), 1)
        through = 0 if g_mean is None else g_mean / count
        if g_rstd is not None:
            through = through - g_rstd * rstd * rstd * rstd * (input - mean) / count
        to_input = through.expand(input.shape) if to_input is None else to_input + through  # type: ignore[union-attr]
    return to_input, to_weight, g_values


normalize.vjp(("input", "weight", "bias"), _normalize_vjp)
