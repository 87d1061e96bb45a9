"""The logarithm of the gamma function, its derivatives, the incomplete gamma functions, and the Hurwitz zeta function.

Source of the definitions: NIST Digital Library of Mathematical Functions, chapters 5, 8 and 25.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.exponential import exp
from candelabra._records.callables import public
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra.typing import Number, Tensor


def not_implemented(name: str) -> Callable[..., NoReturn]:
    """Return the derivative rule of an input without a known derivative: raises ``NotImplementedError``, as PyTorch
    does.
    """

    def rule(g: Tensor) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


# -- complete ---------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", aliases=("special.gammaln",))
def lgamma(input: Tensor) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function; infinity at 0, -1, -2, …"""
    ...


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.digamma", "special.psi"))
def digamma(input: Tensor) -> Tensor:
    """Return the derivative of :func:`lgamma`; NaN at -1, -2, …, an infinity of the opposite sign at 0.0 and -0.0."""
    ...


@operator(pointwise, promote=to_float, accepts="real", public=False, method=False, out=False)
def polygamma_of(input: Tensor, n: int) -> Tensor:
    """Return the ``n``-th derivative of :func:`digamma`.

    Source: DLMF 5.15, ``(-1)**(n+1) n! zeta(n + 1, input)``.
    """
    if n == 0:
        return digamma(input)
    factorial = math.exp(math.lgamma(n + 1)) if n <= 170 else math.inf
    return special_zeta(float(n + 1), input) * (factorial if n % 2 else -factorial)


lgamma.vjp(input=lambda g, input: g * digamma(input))
digamma.vjp(input=lambda g, input: g * polygamma_of(input, 1))
polygamma_of.vjp(input=lambda g, input, n: g * polygamma_of(input, n + 1))


def _check_order(n: Any, input: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


@operator(
    checked_pointwise(_check_order), promote=to_float, accepts="real", method=False, inplace=False,
    aliases=("special.polygamma",),
)  # fmt: skip
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the ``n``-th derivative of :func:`digamma` at ``input``; ``RuntimeError`` for a negative ``n``."""
    _check_order(n, input)
    return polygamma_of(input, n)


@public(is_function=False, method="polygamma")
def polygamma_method(input: Tensor, n: int) -> Tensor:
    """Return the ``n``-th derivative of :func:`digamma` at this tensor; ``RuntimeError`` for a negative ``n``."""
    return polygamma(n, input)


@public(is_function=False)
def polygamma_(input: Tensor, n: int) -> Tensor:
    """Compute :func:`polygamma` in place."""
    _check_order(n, input)
    return polygamma_of.form("inplace")(input, n)


def _check_dimension(input: Any, p: int) -> None:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


@operator(checked_pointwise(_check_dimension), promote=to_float, accepts="real", aliases=("special.multigammaln",))
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension ``p``.

    Source: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - j / 2) over j = 0 … p - 1``.
    """
    _check_dimension(input, p)
    steps = new_arange(input, 0.0, -0.5, p)
    return lgamma(input.unsqueeze(-1) + steps).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


# -- incomplete -------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", aliases=("special.gammainc",))
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """Return the regularised lower incomplete gamma function ``P(input, other)``. Differentiable in ``other``."""
    ...


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.gammaincc",))
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """Return the regularised upper incomplete gamma function, ``1 - igamma(input, other)``. Differentiable in
    ``other``.
    """
    ...


def _density(input: Tensor, other: Tensor) -> Tensor:
    """Return ``x**(a-1) exp(-x) / gamma(a)``: the derivative of P(a, x) in x."""
    return exp((input - 1) * other.log() - other - lgamma(input))


igamma.vjp(input=not_implemented("igamma: input"), other=lambda g, input, other: g * _density(input, other))
igammac.vjp(input=not_implemented("igammac: input"), other=lambda g, input, other: -g * _density(input, other))


# -- zeta -------------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_zeta(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return the Hurwitz zeta function: the sum of ``(k + other)**-input`` over k = 0, 1, … Differentiable in
    ``other``.
    """
    ...


special_zeta.vjp(
    input=not_implemented("special_zeta: self"),
    other=lambda g, input, other: g * -input * special_zeta(input + 1.0, other),
)
