"""Running extremes and running log-sum-exp."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.families.order_statistics import Chosen, picked_back
from candelabra._operators.primitives import arithmetic, creation
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import index, same, to_float
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra.dtypes import FLOATING, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.typing import Dim


def scanned(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The inclusive scan of an associative ``combine(before, after)``, in about log2(n) steps over the whole tensor.

    Source: Hillis and Steele, Data parallel algorithms, 1986.
    """
    size, reach = x.shape[dim] if x.ndim else 1, 1
    while reach < size:
        head, tail = x.narrow(dim, 0, reach), x.narrow(dim, reach, size - reach)
        x = cat([head, combine(x.narrow(dim, 0, size - reach), tail)], dim)
        reach *= 2
    return x


@by
def _both_like(input: Tensor, dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape_of(input), shape_of(input)


def _running(input: Tensor, dim: int, extreme: Any) -> Chosen:
    """Running extremes and the last place up to each where they stand; after a NaN, NaN and the last NaN's place."""
    if not input.ndim:
        return Chosen(input.clone(), creation.full((), 0, dtype=int64, device=input.device))
    values = scanned(input, dim, extreme.function)
    hits = input == values
    if input.dtype.category >= FLOATING:
        hits = hits | input.isnan()
    along = tuple(-1 if d == dim else 1 for d in range(input.ndim))
    places = creation.arange(0, 1, input.shape[dim], dtype=int64, device=input.device).reshape(along)
    indices = scanned(arithmetic.where.function(hits, places, 0), dim, arithmetic.maximum.function)
    return Chosen(values.clone() if values is input else values, indices)


@operator(_both_like, result=(same, index), accepts="real", out=True)
def cummax(input: Tensor, dim: Dim) -> Chosen:
    """The largest element so far along ``dim``, and where it stands (of equal ones the last); NaN stays."""
    return _running(input, dim, arithmetic.maximum)


@operator(_both_like, result=(same, index), accepts="real", out=True)
def cummin(input: Tensor, dim: Dim) -> Chosen:
    """The smallest element so far along ``dim``, and where it stands (of equal ones the last); NaN stays."""
    return _running(input, dim, arithmetic.minimum)


cummax.vjp(input=picked_back)
cummin.vjp(input=picked_back)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """``log(exp(a) + exp(b))``, of complex numbers too, without overflow; infinities stay what they are."""
    if a.is_complex():
        first = a.real >= b.real
        high, low = arithmetic.where.function(first, a, b), arithmetic.where.function(first, b, a)
        infinite = high.real.abs() == float("inf")
    else:
        high, low = arithmetic.maximum(a, b), arithmetic.minimum(a, b)
        infinite = high.abs() == float("inf")
    return arithmetic.where.function(infinite, high, high + (low - high).exp().log1p())


@operator(like_input, promote=to_float, accepts="floating")
def logcumsumexp(input: Tensor, dim: Dim) -> Tensor:
    """``log(cumsum(exp(input)))`` along ``dim``, each sum shifted by its largest term: no overflow, no underflow."""
    out = scanned(input, dim, _log_add)
    return out.clone() if out is input else out


def _logcumsumexp_back(g: Tensor, input: Tensor, out: Tensor, dim: int) -> Tensor:
    # d out[j] / d x[i] = exp(x[i] - out[j]) for i <= j: a sum over j >= i, taken in logarithms, as the forward pass,
    # of the positive and the negative gradients apart.
    def summed(logarithm: Tensor) -> Tensor:
        terms = logarithm.masked_fill(out == float("-inf"), float("-inf"))  # sums of nothing pass nothing on
        return (logcumsumexp((terms).flip(dim), dim).flip(dim) + x).exp()

    zero = g == 0
    logarithm = arithmetic.where.function(zero, 1, g if g.is_complex() else g.abs()).log()
    if g.is_complex():
        x = input.conj()
        return summed((logarithm - out.conj()).masked_fill(zero, float("-inf")))
    x, logarithm = input, logarithm - out
    positive = summed(logarithm.masked_fill(g <= 0, float("-inf")))
    return positive - summed(logarithm.masked_fill(g >= 0, float("-inf")))


logcumsumexp.vjp(input=_logcumsumexp_back)
