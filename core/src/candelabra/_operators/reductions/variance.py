"""Variances and standard deviations over dims, also together with the mean."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.reductions.sums import mean, reduced_count, sum, sum_of_products
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction
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


def _var_along(t_input: Tensor, input: Tensor, dim: tuple[int, ...] | None, correction: float, keepdim: bool) -> Tensor:
    # d var = 2 / (n - correction) Re Σ conj(x - mean) t: the tangent of the mean is multiplied by Σ (x - mean) = 0.
    if input.dtype.is_half:
        return _var_along(t_input.to(float32), input.to(float32), dim, correction, keepdim).to(input.dtype)
    found = sum_of_products((input - mean(input, dim, True)).conj(), t_input, dim, keepdim)
    return found.real * 2 / max(reduced_count(input.shape, dim) - correction, 0)


def _std_along(
    t_input: Tensor, input: Tensor, out: Tensor, dim: tuple[int, ...] | None, correction: float, keepdim: bool
) -> Tensor:
    return _var_along(t_input, input, dim, correction, keepdim) / (out * 2)


var.jvp(_var_along)
std.jvp(_std_along)


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


var_mean.jvp(
    lambda t_input, input, dim, correction, keepdim: (
        _var_along(t_input, input, dim, correction, keepdim),
        lambda: mean(t_input, dim, keepdim),
    )
)
std_mean.jvp(
    lambda t_input, input, dispersion, dim, correction, keepdim: (
        _std_along(t_input, input, dispersion, dim, correction, keepdim),
        lambda: mean(t_input, dim, keepdim),
    )
)


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
