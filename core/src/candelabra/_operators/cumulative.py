"""Cumulative sums, products, extrema and log-sum-exps along a dim."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.conversion.dtype_and_device import uncast
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.comparison import maximum, minimum
from candelabra._operators.elementwise.selection import where
from candelabra._operators.reductions.extrema import ValuesAndIndices
from candelabra._operators.reductions.sums import check_tangent_shape
from candelabra._operators.shapes.joining import cat
from candelabra._operators.sorting.sort import gather_adjoint, gather_along, two_like_input
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import accumulated, index, same, to_float
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra.dtypes import FLOATING, float32, int64

if TYPE_CHECKING:
    from candelabra.typing import Dim, DType, Tensor


# -- sums and products ------------------------------------------------------------------------------------------------
@operator(like_input, result=accumulated, inplace=True, autocast=Autocast("float32"))
def cumsum(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Tensor:
    """Return the cumulative sums along ``dim``. Integers and bools give int64; the input is cast to ``dtype`` first.

    The terms may be added in any order: a sum of n terms has an error of at most ``(n - 1) * u * sum(abs(terms))``,
    where u is the unit roundoff of the dtype (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 4.2).
    Half types are added in float32, and each sum is rounded once.
    """
    ...


cumsum.vjp(input=lambda g, dim, input_spec: uncast(g.flip(dim).cumsum(dim).flip(dim), input_spec))


@operator(like_input, result=accumulated, inplace=True, autocast=Autocast("float32"))
def cumprod(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Tensor:
    """Return the cumulative products along ``dim``. Integers and bools give int64; the input is cast to ``dtype``
    first.

    The product of n factors has a relative error of at most ``(n - 1) * u``, where u is the unit roundoff of the dtype
    (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 3.1). Half types are multiplied in float32, whose
    u is 2**-24, and each product is rounded once.
    """
    ...


def _cumprod_back(g: Tensor, input: Tensor, out: Tensor, dim: int, dtype: DType | None) -> Tensor:
    # d out[j] / d x[i] is the product of x[0..j] without x[i]: out[i-1] times the product of x[i+1..j]. So the gradient
    # is out[i-1] * s[i], where s[i] = g[i] + x[i+1] * s[i+1]. There is no division, so zeros are exact, also in
    # derivatives of the gradient.
    x = (input if dtype is None else input.to(dtype)).conj()
    return uncast(_recurrence(g, _after_first(x, dim), dim) * _before(out, dim).conj(), input)


def _before(out: Tensor, dim: int) -> Tensor:
    """Return the products of all factors before each one."""
    if not out.ndim or not out.shape[dim]:
        return new_full(out, tuple(out.shape), 1)
    first = new_full(out, [1 if d == dim else size for d, size in enumerate(out.shape)], 1)
    return cat([first, out.narrow(dim, 0, out.shape[dim] - 1)], dim)


def _after_first(x: Tensor, dim: int) -> Tensor:
    return x.narrow(dim, 1, x.shape[dim] - 1) if x.ndim and x.shape[dim] else x


def _recurrence(s: Tensor, product: Tensor, dim: int) -> Tensor:
    """Return the solution of ``out[i] = s[i] + product[i] * out[i+1]`` along ``dim``, in log2(n) steps.

    Before each, s[i] has the terms up to j < i + width, and product[i] is that of the ``width`` factors from i.
    """
    n, width = s.shape[dim] if s.ndim else 0, 1
    while width < n:
        rest = n - width
        s = cat([s.narrow(dim, 0, rest) + product * s.narrow(dim, width, rest), s.narrow(dim, rest, width)], dim)
        if width < rest:
            product = product.narrow(dim, 0, rest - width) * product.narrow(dim, width, rest - width)
        width *= 2
    return s


class CumulativeProductsAlong(NamedTuple):
    """Cumulative products, and their derivatives along a tangent."""

    products: Tensor
    slopes: Tensor


@by
def _shapes_along(t_input: Tensor, input: Tensor, dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    check_tangent_shape("cumprod", t_input, input)
    return shape_of(input), shape_of(input)


@operator(_shapes_along, result=(same, same), accepts="floating", method=False, public=False)
def cumprod_along(t_input: Tensor, input: Tensor, dim: Dim) -> CumulativeProductsAlong:
    """Return :func:`cumprod`, and its derivatives along ``t_input``. There is no division, so that zeros are exact."""
    # d out[i] = out[i-1] dx[i] + x[i] d out[i-1]: the recurrence from the other end.
    _shapes_along(cumprod_along, (t_input, input, dim))
    if input.dtype.is_half:
        found = cumprod_along(t_input.to(float32), input.to(float32), dim)
        return CumulativeProductsAlong(found.products.to(input.dtype), found.slopes.to(input.dtype))
    out = cumprod(input, dim)
    if not input.ndim:
        return CumulativeProductsAlong(out, t_input.clone())
    terms = (t_input * _before(out, dim)).flip(dim)
    return CumulativeProductsAlong(out, _recurrence(terms, _after_first(input, dim).flip(dim), dim).flip(dim))


def _products_and_slopes(t_input: Tensor, input: Tensor, dim: int, dtype: DType | None) -> Any:
    if dtype is not None:
        t_input, input = t_input.to(dtype), input.to(dtype)
    return cumprod_along.canonical(t_input, input, dim)


cumprod.vjp(input=_cumprod_back)
cumprod.jvp(_products_and_slopes, joint=True)


# -- extrema ----------------------------------------------------------------------------------------------------------
def _scan(x: Tensor, dim: int, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return the inclusive scan of an associative ``combine(before, after)``, in about log2(n) steps over the whole
    tensor.

    Source: Hillis and Steele, Data parallel algorithms, 1986.
    """
    size, width = x.shape[dim] if x.ndim else 1, 1
    while width < size:
        head, tail = x.narrow(dim, 0, width), x.narrow(dim, width, size - width)
        x = cat([head, combine(x.narrow(dim, 0, size - width), tail)], dim)
        width *= 2
    return x


def _cumulative_extremum(input: Tensor, dim: int, combine: Any) -> ValuesAndIndices:
    """Return the cumulative extrema and the last index of each. NaN is propagated to all later elements."""
    if not input.ndim:
        return ValuesAndIndices(input.clone(), new_full(input, (), 0, dtype=int64))
    values = _scan(input, dim, combine.function)
    is_extremum = input == values
    if input.dtype.category >= FLOATING:
        is_extremum = is_extremum | input.isnan()
    positions = new_arange(input, 0, 1, input.shape[dim], dtype=int64)
    positions = positions.reshape([-1 if d == dim else 1 for d in range(input.ndim)])
    indices = _scan(where(is_extremum, positions, 0), dim, maximum.function)
    return ValuesAndIndices(values.clone() if values is input else values, indices)


@operator(two_like_input, result=(same, index), accepts="real", out=True)
def cummax(input: Tensor, dim: Dim) -> ValuesAndIndices:
    """Return the cumulative maximum along ``dim`` and its index, the last of equal elements. NaN is propagated."""
    return _cumulative_extremum(input, dim, maximum)


@operator(two_like_input, result=(same, index), accepts="real", out=True)
def cummin(input: Tensor, dim: Dim) -> ValuesAndIndices:
    """Return the cumulative minimum along ``dim`` and its index, the last of equal elements. NaN is propagated."""
    return _cumulative_extremum(input, dim, minimum)


cummax.vjp(input=gather_adjoint)
cummin.vjp(input=gather_adjoint)
cummax.jvp(gather_along)
cummin.jvp(gather_along)


# -- log-sum-exp ------------------------------------------------------------------------------------------------------
def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """Return ``log(exp(a) + exp(b))`` without overflow, also of complex numbers; infinities are kept."""
    if a.is_complex():
        first = a.real >= b.real
        high, low = where(first, a, b), where(first, b, a)
        infinite = high.real.abs() == float("inf")
    else:
        high, low = maximum(a, b), minimum(a, b)
        infinite = high.abs() == float("inf")
    return where(infinite, high, high + (low - high).exp().log1p())


@operator(like_input, promote=to_float, accepts="floating")
def logcumsumexp(input: Tensor, dim: Dim) -> Tensor:
    """Return ``log(cumsum(exp(input)))`` along ``dim``; each sum is shifted by its largest term against overflow and
    underflow.
    """
    out = _scan(input, dim, _log_add)
    return out.clone() if out is input else out


def _logcumsumexp_back(g: Tensor, input: Tensor, out: Tensor, dim: int) -> Tensor:
    # d out[j] / d x[i] = exp(x[i] - out[j]) for i <= j. The sum over j >= i of g[j] times this derivative is computed
    # in logarithms, as the forward pass is; positive and negative gradients separately.
    def summed(logarithm: Tensor) -> Tensor:
        terms = logarithm.masked_fill(
            out == float("-inf"), float("-inf")
        )  # the logarithm of an empty sum gets no gradient
        return (logcumsumexp(terms.flip(dim), dim).flip(dim) + x).exp()

    zero = g == 0
    logarithm = where(zero, 1, g if g.is_complex() else g.abs()).log()
    if g.is_complex():
        x = input.conj()
        return summed((logarithm - out.conj()).masked_fill(zero, float("-inf")))
    x, logarithm = input, logarithm - out
    positive = summed(logarithm.masked_fill(g <= 0, float("-inf")))
    return positive - summed(logarithm.masked_fill(g >= 0, float("-inf")))


logcumsumexp.vjp(input=_logcumsumexp_back)
