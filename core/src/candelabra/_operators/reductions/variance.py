"""Variances and standard deviations over dims, also together with the mean."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import reduced_shape
from candelabra._operators.reductions.sums import check_tangent_shape, mean, reduced_count, sum, sum_of_products
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import float32

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Correction, Dims, Tensor


@operator(reduction, result=real_part, accepts="floating", public=False)
def var(input: Tensor, dim: Dims = None, *, correction: Correction = 1, keepdim: bool = False) -> Tensor:
    """Return the variance over ``dim`` (all dims if None): squared distances from the mean, over ``n - correction``."""
    if input.dtype.is_half:  # in float32, the sum of squares and the count do not overflow
        return var(input.to(float32), dim, correction=correction, keepdim=keepdim).to(input.dtype)
    distance = input - mean(input, dim, True)
    squares = (distance * distance.conj()).real if input.is_complex() else distance * distance
    return sum(squares, dim, keepdim) / max(reduced_count(input.shape, dim) - correction, 0)  # type: ignore[operator]


@operator(reduction, result=real_part, accepts="floating", public=False)
def std(input: Tensor, dim: Dims = None, *, correction: Correction = 1, keepdim: bool = False) -> Tensor:
    """Return the standard deviation over ``dim`` (all dims if None): the square root of the variance, see
    :func:`var`.
    """
    if input.dtype.is_half:  # in float32, the variance does not overflow
        return std(input.to(float32), dim, correction=correction, keepdim=keepdim).to(input.dtype)
    return var(input, dim, correction=correction, keepdim=keepdim).sqrt()


class DispersionAndMean(NamedTuple):
    """The variance or the standard deviation, and the mean of the same elements."""

    dispersion: Tensor
    mean: Tensor


def _two_reductions(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = reduction(op, args)
    return shape, shape


@operator(_two_reductions, result=(real_part, same), accepts="floating", public=False)
def var_mean(
    input: Tensor, dim: Dims = None, *, correction: Correction = 1, keepdim: bool = False
) -> DispersionAndMean:
    """Return the pair (variance, mean) over ``dim`` (all dims if None); see :func:`var`."""
    return DispersionAndMean(var(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim))


@operator(_two_reductions, result=(real_part, same), accepts="floating", public=False)
def std_mean(
    input: Tensor, dim: Dims = None, *, correction: Correction = 1, keepdim: bool = False
) -> DispersionAndMean:
    """Return the pair (standard deviation, mean) over ``dim`` (all dims if None); see :func:`std`."""
    return DispersionAndMean(std(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim))


# -- forward mode -----------------------------------------------------------------------------------------------------
class VarianceAndMeanAlong(NamedTuple):
    """The variance and the mean, and their derivatives along a tangent."""

    variance: Tensor
    mean: Tensor
    variance_slope: Tensor
    mean_slope: Tensor


@by
def _shapes_along(t_input: Tensor, input: Tensor, dim: Any, correction: float, keepdim: bool) -> Any:
    check_tangent_shape("var", t_input, input)
    return (reduced_shape(shape_of(input), dim, keepdim),) * 4


@operator(_shapes_along, result=(real_part, same, real_part, same), accepts="floating", method=False, public=False)
def var_mean_along(
    t_input: Tensor, input: Tensor, dim: Dims = None, *, correction: Correction = 1, keepdim: bool = False
) -> VarianceAndMeanAlong:
    """Return :func:`var_mean`, and its derivatives along ``t_input``.

    One operator, so that a device reads each tensor once.
    """
    # d var = 2 / (n - correction) Re Σ conj(x - mean) t: the tangent of the mean is multiplied by Σ (x - mean) = 0.
    _shapes_along(var_mean_along, (t_input, input, dim, correction, keepdim))
    if input.dtype.is_half:
        found = var_mean_along(t_input.to(float32), input.to(float32), dim, correction=correction, keepdim=keepdim)
        return VarianceAndMeanAlong(*[part.to(input.dtype) for part in found])
    variance, means = var_mean(input, dim, correction=correction, keepdim=keepdim)
    products = sum_of_products((input - mean(input, dim, True)).conj(), t_input, dim, keepdim)
    slope = products.real * 2 / max(reduced_count(input.shape, dim) - correction, 0)  # type: ignore[operator]
    return VarianceAndMeanAlong(variance, means, slope, mean(t_input, dim, keepdim))


def _var_mean_along(t_input: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Any:
    variance, mean, *slopes = var_mean_along.canonical(t_input, input, dim, correction, keepdim)
    return (variance, mean), slopes


def _std_mean_along(t_input: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Any:
    if input.dtype.is_half:  # the root is rounded once
        found = _std_mean_along(t_input.to(float32), input.to(float32), dim, correction, keepdim)
        return tuple([[part.to(input.dtype) for part in parts] for parts in found])
    (variance, mean), (slope, mean_slope) = _var_mean_along(t_input, input, dim, correction, keepdim)
    deviation = variance.sqrt()
    return (deviation, mean), (slope / (deviation * 2), mean_slope)


def _first(along: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule without the mean."""

    def rule(t_input: Tensor, input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Any:
        values, slopes = along(t_input, input, dim, correction, keepdim)
        return values[0], slopes[0]

    return rule


var.jvp(_first(_var_mean_along), joint=True)
std.jvp(_first(_std_mean_along), joint=True)
var_mean.jvp(_var_mean_along, joint=True)
std_mean.jvp(_std_mean_along, joint=True)


# -- the older name of the correction: unbiased=True is 1, unbiased=False is 0 ----------------------------------------
@operator(reduction, result=real_part, public=False)
def var_unbiased(input: Tensor, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return var(input, dim, correction=int(unbiased), keepdim=keepdim)


@operator(reduction, result=real_part, public=False)
def std_unbiased(input: Tensor, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return std(input, dim, correction=int(unbiased), keepdim=keepdim)


@operator(_two_reductions, result=(real_part, same), public=False)
def var_mean_unbiased(input: Tensor, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> DispersionAndMean:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return var_mean(input, dim, correction=int(unbiased), keepdim=keepdim)


@operator(_two_reductions, result=(real_part, same), public=False)
def std_mean_unbiased(input: Tensor, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> DispersionAndMean:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return std_mean(input, dim, correction=int(unbiased), keepdim=keepdim)


@operator(by(lambda input, unbiased: ()), result=real_part, public=False)
def var_of_all(input: Tensor, unbiased: bool) -> Tensor:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return var(input, correction=int(unbiased))


@operator(by(lambda input, unbiased: ()), result=real_part, public=False)
def std_of_all(input: Tensor, unbiased: bool) -> Tensor:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return std(input, correction=int(unbiased))


@operator(by(lambda input, unbiased: ((), ())), result=(real_part, same), public=False)
def var_mean_of_all(input: Tensor, unbiased: bool) -> DispersionAndMean:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return var_mean(input, correction=int(unbiased))


@operator(by(lambda input, unbiased: ((), ())), result=(real_part, same), public=False)
def std_mean_of_all(input: Tensor, unbiased: bool) -> DispersionAndMean:
    """Accept ``unbiased``, the older name of ``correction``: True is 1, False is 0."""
    return std_mean(input, correction=int(unbiased))


var_overloads = overloads("var", var, var_unbiased, var_of_all)
std_overloads = overloads("std", std, std_unbiased, std_of_all)
var_mean_overloads = overloads("var_mean", var_mean, var_mean_unbiased, var_mean_of_all)
std_mean_overloads = overloads("std_mean", std_mean, std_mean_unbiased, std_mean_of_all)
