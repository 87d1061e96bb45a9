"""The logarithm of a sum of exponentials over dims."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.reductions.sums import expand_reduced, sum_of_products
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import reduction

if TYPE_CHECKING:
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
logsumexp.jvp(
    lambda t_input, input, out, dim, keepdim: sum_of_products(_share(input, out, dim, keepdim), t_input, dim, keepdim)
)
