"""The logarithm of a sum of exponentials over dims."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._layout import reduced_shape
from candelabra._operators.reductions.sums import check_tangent_shape, expand_reduced, sum_of_products
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import same, to_float
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import float32

if TYPE_CHECKING:
    from candelabra._annotations import Any
    from candelabra.typing import Dims, Tensor


@operator(reduction, promote=to_float, aliases=("special.logsumexp",), autocast=Autocast("float32"))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over ``dim``, shifted by the maximum against overflow and underflow."""
    if not input.numel():
        return input.sum(dim, keepdim).log()
    top = input.real.amax(dim, True)
    top = top.masked_fill(top.abs() == float("inf"), 0.0)
    out = (input - top).exp().sum(dim, True).log() + top
    return out if keepdim else out.reshape(reduction(logsumexp, (input, dim, False)))


def _share(input: Tensor, out: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    """Return the derivative with respect to each element, its share of the sum: exp(input) / sum(exp(input))."""
    return (input - expand_reduced(out, dim, keepdim, tuple(input.shape))).exp()


def _logsumexp_back(g: Tensor, input: Tensor, out: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    return expand_reduced(g, dim, keepdim, tuple(input.shape)) * _share(input, out, dim, keepdim).conj()


logsumexp.vjp(input=_logsumexp_back)


class LogsumexpAlong(NamedTuple):
    """The logarithm of a sum of exponentials, and its derivative along a tangent."""

    logsumexp: Tensor
    slope: Tensor


@by
def _shapes_along(t_input: Tensor, input: Tensor, dim: Any, keepdim: bool) -> Any:
    check_tangent_shape("logsumexp", t_input, input)
    shape = reduced_shape(shape_of(input), dim, keepdim)
    return shape, shape


@operator(_shapes_along, result=(same, same), accepts="floating", method=False, public=False)
def logsumexp_along(t_input: Tensor, input: Tensor, dim: Dims, keepdim: bool = False) -> LogsumexpAlong:
    """Return :func:`logsumexp`, and its derivative along ``t_input``: the mean of the tangents, weighted by shares.

    One operator, so that a device reads each tensor once.
    """
    _shapes_along(logsumexp_along, (t_input, input, dim, keepdim))
    if input.dtype.is_half:  # the shares are not rounded
        found = logsumexp_along(t_input.to(float32), input.to(float32), dim, keepdim)
        return LogsumexpAlong(found.logsumexp.to(input.dtype), found.slope.to(input.dtype))
    out = logsumexp(input, dim, keepdim)
    share = _share(input, out, dim, keepdim)  # type: ignore[arg-type] # canonical: a tuple
    return LogsumexpAlong(out, sum_of_products(share, t_input, dim, keepdim))


logsumexp.jvp(lambda t_input, input, dim, keepdim: logsumexp_along.canonical(t_input, input, dim, keepdim), joint=True)
