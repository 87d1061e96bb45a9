"""Normalization to mean 0 and variance 1: one operator for layer, batch, group and instance normalization.

With ``c = x - mean(x)``, ``r = 1 / sqrt(mean(c²) + eps)``, ``z = c * r`` and ``out = z * weight + bias``, means over
``dims`` of n elements, and ``h = g * weight``:

    d out → x:   r * (h - mean(h) - z * mean(h * z))
    d mean → x:  g / n
    d r → x:     dr/dx = -r³ * c / n = -r² * z / n

The second and third line matter only for derivatives of the statistics. The gradients of weight and bias are sums of
``g * z`` and of ``g`` over the dims along which these broadcast.
"""

from __future__ import annotations

from functools import lru_cache

from candelabra.backend import broadcast_shapes, reduced_shape
from candelabra.dtypes import DTYPE_MASK, float32
from candelabra.library import (
    Autocast,
    batching,
    by,
    normalized_dims,
    operator,
    pointwise,
    record,
    same,
    shape_of,
    unpromoted,
)
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor

cast = record("cast")

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
    return (h - h.mean(dims, True) - z * (z * h).mean(dims, True)) * rstd


class ParameterGradients(NamedTuple):
    """The gradients of weight and bias."""

    weight: Tensor
    bias: Tensor


@by
def _like_parameters(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dims: Ints, keepdim: bool) -> Any:
    shape = broadcast_shapes(shape_of(input), shape_of(grad), shape_of(mean), shape_of(rstd))
    kept = reduced_shape(shape, dims, keepdim)
    return kept, kept


@operator(_like_parameters, result=(same, same), accepts="real floating", method=False, public=False, out=False)
def normalize_parameters_backward(
    grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dims: Ints, keepdim: bool
) -> ParameterGradients:
    """The gradients of the weight and the bias of :func:`normalize`, which broadcast along ``dims``.

    ``keepdim``: these have size 1 in the results.
    """
    z = (input - mean) * rstd
    return ParameterGradients((grad * z).sum(dims, keepdim), grad.sum(dims, keepdim))


@lru_cache(1024)
def _broadcast_dims(shape: Ints, parameter: Ints) -> Ints:
    """Return the dims of ``shape`` along which a parameter broadcasts, or () for none."""
    missing = len(shape) - len(parameter)
    return tuple(d for d, size in enumerate(shape) if d < missing or parameter[d - missing] == 1 != size)


def _parameter_gradients(
    needs: tuple[bool, bool, bool],
    g: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias_spec: Any,
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of weight and bias; a sum that only one of them needs is left to the engine."""
    if weight is None or not needs[1]:
        return None, g if needs[2] else None
    shape = weight._payload.shape
    dims = _broadcast_dims(input._payload.shape, shape)
    if not dims or not (needs[2] and bias_spec.shape == shape):
        return g * ((input - mean) * rstd), g if needs[2] else None
    keepdim = len(shape) + len(dims) != len(input._payload.shape)  # otherwise the first dims, which weights lack
    to_weight, to_bias = normalize_parameters_backward.canonical(g, input, mean, rstd, dims, keepdim)
    if to_weight._payload.shape == shape:  # a leaf keeps it as its gradient, and would copy a view
        return to_weight, to_bias
    return to_weight.reshape(shape), to_bias.reshape(shape)


def _normalize_vjp(
    needs: tuple[bool, bool, bool],
    input: Tensor,
    weight: Tensor | None,
    bias_spec: Any,
    mean: Tensor,
    rstd: Tensor,
    dims: Ints,
    g_values: Tensor | None = None,
    g_mean: Tensor | None = None,
    g_rstd: Tensor | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    to_input = to_weight = to_bias = None
    if g_values is not None:
        if needs[0]:
            to_input = normalize_backward.canonical(g_values, input, mean, rstd, weight, dims)
        to_weight, to_bias = _parameter_gradients(needs, g_values, input, mean, rstd, weight, bias_spec)
    if needs[0] and (g_mean is not None or g_rstd is not None):
        count = input.numel() // max(mean.numel(), 1)
        through = 0 if g_mean is None else g_mean / count
        if g_rstd is not None:
            through = through - g_rstd * rstd * rstd * rstd * (input - mean) / count
        to_input = through.expand(input.shape) if to_input is None else to_input + through  # type: ignore[union-attr]
    return to_input, to_weight, to_bias


normalize.vjp(("input", "weight", "bias"), _normalize_vjp)
normalize.batched(batching.broadcasting(normalize, ("input",), "dims"))
normalize_backward.batched(batching.broadcasting(normalize_backward, ("grad", "input", "mean", "rstd"), "dims"))


@operator(pointwise, accepts="real floating", method=False, public=False, out=False, inplace=False)
def scale_about(input: Tensor, center: Tensor, factor: Tensor, shift: Tensor) -> Tensor:
    """``(input - center) * factor + shift``: a normalization by statistics that are known."""
    return (input - center) * factor + shift


class NormalizedAlong(NamedTuple):
    """The derivative of the values without weight and bias, that of the mean, and ``mean(values * tangent)``."""

    values: Tensor
    mean: Tensor
    projection: Tensor


@by
def _along_shapes(tangent: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dims: Ints) -> Any:
    shape = broadcast_shapes(shape_of(input), shape_of(tangent))
    kept = tuple(1 if i in dims else s for i, s in enumerate(shape))
    return shape, kept, kept


@operator(_along_shapes, result=(same, same, same), accepts="real floating", method=False, public=False, out=False)
def normalize_along(tangent: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dims: Ints) -> NormalizedAlong:
    """The derivatives of the results of :func:`normalize` along a tangent of the input."""
    z = (input - mean) * rstd
    slope, projection = tangent.mean(dims, True), (z * tangent).mean(dims, True)
    return NormalizedAlong((tangent - slope - z * projection) * rstd, slope, projection)


normalize_along.batched(batching.broadcasting(normalize_along, ("tangent", "input", "mean", "rstd"), "dims"))


class NormalizedJointly(NamedTuple):
    """The results of :func:`normalize`, and their derivatives along a tangent of the input."""

    values: Tensor
    mean: Tensor
    rstd: Tensor
    values_along: Tensor
    mean_along: Tensor
    rstd_along: Tensor


@by
def _joint_shapes(
    tangent: Tensor, input: Tensor, weight: Tensor | None, bias: Tensor | None, dims: Ints, eps: float
) -> Any:
    shape = shape_of(input)
    if shape_of(tangent) != shape:
        raise RuntimeError(
            f"normalize: the tangent must have the shape of the input, {list(shape)}, got {list(shape_of(tangent))}"
        )
    if broadcast_shapes(shape, shape_of(weight), shape_of(bias)) != shape:
        raise RuntimeError(f"normalize: weight and bias must broadcast to the input, {list(shape)}")
    kept = tuple(1 if i in dims else s for i, s in enumerate(shape))
    return shape, kept, kept, shape, kept, kept


@operator(_joint_shapes, result=(same,) * 6, accepts="real floating", method=False, public=False, out=False)
def normalize_jointly(
    tangent: Tensor, input: Tensor, weight: Tensor | None, bias: Tensor | None, dims: Ints, eps: float
) -> NormalizedJointly:
    """:func:`normalize`, and the derivatives of its results along a tangent of the input, in one pass."""
    _joint_shapes(normalize_jointly, (tangent, input, weight, bias, dims, eps))
    out = normalize(input, weight, bias, dims, eps)
    along = normalize_along(tangent, input, out.mean, out.rstd, dims)
    values = along.values if weight is None else along.values * weight
    return NormalizedJointly(*out, values, along.mean, -(out.rstd * out.rstd * along.projection))


def _normalize_along(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    dims: Ints,
    eps: float,
    t_input: Tensor | None = None,
    t_weight: Tensor | None = None,
    t_bias: Tensor | None = None,
) -> Any:
    # With z = (x - mean) rstd:  d mean = mean(t),  d rstd = -rstd² mean(z t),  dz = (t - d mean - z mean(z t)) rstd:
    # the Jacobian of z is symmetric.
    to_values: Any
    if t_input is None:
        out, to_values, to_mean, to_rstd = normalize.canonical(input, weight, bias, dims, eps), None, None, None
    else:
        *parts, to_values, to_mean, to_rstd = normalize_jointly.canonical(t_input, input, weight, bias, dims, eps)
        out = Normalized(*parts)
    if t_weight is not None:
        part = (input - out.mean) * out.rstd * t_weight
        to_values = part if to_values is None else to_values + part
    if t_bias is not None:
        to_values = t_bias.expand(input.shape) if to_values is None else to_values + t_bias
    return out, (to_values, to_mean, to_rstd)


normalize.jvp(_normalize_along, joint=True)


# -- over the last dims -----------------------------------------------------------------------------------------------
def check_dtypes(input: Tensor, *parameters: Tensor | None) -> None:
    """Raise ``RuntimeError`` unless all have the input's dtype, or are float32 and the input has a half type."""
    keys = input._keys
    for parameter in parameters:
        if parameter is None or not (keys ^ parameter._keys) & DTYPE_MASK:
            continue
        dtype, other = input.dtype, parameter.dtype
        if not (dtype.is_half and other is float32):
            raise RuntimeError(
                f"mixed dtype: all inputs must share same datatype, but the input is {dtype} and a parameter is {other}"
            )


def narrowed(out: Tensor, input: Tensor) -> Tensor:
    """Return the result in the input's dtype. Half types with float32 parameters compute in float32."""
    if not (out._keys ^ input._keys) & DTYPE_MASK:
        return out
    result: Tensor = cast(out, dtype=input.dtype)
    return result


@by
def _layer_shape(input: Tensor, normalized_shape: Ints, weight: Any, bias: Any, *_: Any) -> Ints:
    normalized_dims(input, normalized_shape, weight, bias)
    return shape_of(input)


@operator(_layer_shape, promote=unpromoted, accepts="real floating", method=False, out=False,
          aliases=("nn.functional.layer_norm",))  # fmt: skip
def layer_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize over the last dims, whose sizes are ``normalized_shape``; ``weight`` and ``bias`` have that shape.

    The result has the input's dtype. ``weight`` and ``bias`` of a half input may be float32; a kernel may decline that.
    """
    dims = normalized_dims(input, normalized_shape, weight, bias)
    check_dtypes(input, weight, bias)
    return narrowed(normalize.canonical(input, weight, bias, dims, eps).values, input)


@operator(by(lambda input, shape, weight, eps: _layer_shape(None, (input, shape, weight, None))), promote=unpromoted,
          accepts="floating", method=False, out=False, aliases=("nn.functional.rms_norm",))  # fmt: skip
def rms_norm(input: Tensor, normalized_shape: Shape, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dims; ``eps`` is the dtype's machine epsilon by default.

    The result has the input's dtype. Half types compute in float32 and use its epsilon. As in PyTorch, the square of a
    complex number is not that of its absolute value. Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    dims = normalized_dims(input, normalized_shape, weight, None)
    wide: Tensor = cast(input, dtype=float32) if input.dtype.is_half else input
    out = wide * ((wide * wide).mean(dims, True) + (2.0 ** (1 - wide.dtype.digits) if eps is None else eps)).rsqrt()
    if weight is not None:
        out = out * weight
    return narrowed(out, input)
