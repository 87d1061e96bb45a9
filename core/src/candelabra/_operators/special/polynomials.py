"""Classical orthogonal polynomials, by their three-term recurrences.

Source of the recurrences: NIST Digital Library of Mathematical Functions, 18.9. The degree is truncated to an integer,
and a polynomial of negative degree is 0. Degrees above `MAX_DEGREE` raise ``RuntimeError``. Unlike PyTorch's, they are
differentiable in ``input``. They are data-dependent: the number of steps is the largest degree.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor

MAX_DEGREE = 1 << 20
"""The largest degree, so that no number in a call takes years."""

Step = Callable[[Any, int, Any, Any], Any]
"""``(x, k, p[k-1], p[k-2]) -> p[k]``."""


def evaluate(x: Any, n: Any, first: Any, step: Step) -> Any:
    """Return the polynomial of degree ``n``, a number or a tensor, from ``p[0] = 1``, ``p[1] = first`` and the
    recurrence.

    The number of steps is the largest degree; each element keeps the value of its own degree.
    """
    degrees: Any = n.trunc() if hasattr(n, "_payload") else None
    largest: Any = n if degrees is None else degrees.max().item() if degrees.numel() else 0
    if not largest <= MAX_DEGREE:
        raise RuntimeError(f"the degree of a polynomial must be at most {MAX_DEGREE}, one step each, but got {largest}")
    top = int(largest)
    one = new_full(first, (), 1).expand(first.shape)
    previous, current = one, first
    result = None if degrees is None else where(degrees == 0, one, 0.0)
    for k in range(1, top + 1):
        if k > 1:
            previous, current = current, step(x, k, current, previous)
        if result is not None:
            result = where(degrees == k, current, result)
    if result is not None:
        return result
    return current if top > 0 else one.clone() if top == 0 else one * 0.0


def _as_tensor(input: Any, n: Any) -> Any:
    """Return ``input`` as a tensor if it is a number and the degrees are a tensor."""
    return input if hasattr(input, "_payload") else new_full(n, (), input)


# -- Chebyshev: four kinds, which differ in the polynomial of degree 1 -------------------------------------------------
def _chebyshev(x: Any, n: Any, first: Any) -> Any:
    return evaluate(2 * x, n, first, lambda twice, k, last, before: twice * last - before)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the first kind, ``cos(n * acos(input))``."""
    x = _as_tensor(input, n)
    return _chebyshev(x, n, x)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the second kind, ``sin((n + 1) * t) / sin(t)`` at ``input = cos(t)``."""
    x = _as_tensor(input, n)
    return _chebyshev(x, n, 2 * x)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the third kind, ``cos((n + 1/2) * t) / cos(t / 2)`` at ``input = cos(t)``."""
    x = _as_tensor(input, n)
    return _chebyshev(x, n, 2 * x - 1)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Chebyshev polynomial of the fourth kind, ``sin((n + 1/2) * t) / sin(t / 2)`` at ``input = cos(t)``."""
    x = _as_tensor(input, n)
    return _chebyshev(x, n, 2 * x + 1)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return :func:`chebyshev_polynomial_t` at ``2 * input - 1``: orthogonal on [0, 1]."""
    x = 2 * _as_tensor(input, n) - 1
    return _chebyshev(x, n, x)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return :func:`chebyshev_polynomial_u` at ``2 * input - 1``: orthogonal on [0, 1]."""
    x = 2 * _as_tensor(input, n) - 1
    return _chebyshev(x, n, 2 * x)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return :func:`chebyshev_polynomial_v` at ``2 * input - 1``: orthogonal on [0, 1]."""
    x = 2 * _as_tensor(input, n) - 1
    return _chebyshev(x, n, 2 * x - 1)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return :func:`chebyshev_polynomial_w` at ``2 * input - 1``: orthogonal on [0, 1]."""
    x = 2 * _as_tensor(input, n) - 1
    return _chebyshev(x, n, 2 * x + 1)


# -- Hermite, Laguerre, Legendre --------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_hermite_polynomial_h(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the physicist's Hermite polynomial, orthogonal with the weight ``exp(-input**2)``."""
    x = _as_tensor(input, n)
    return evaluate(x, n, 2 * x, lambda x, k, last, before: 2 * (x * last - (k - 1) * before))


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_hermite_polynomial_he(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the probabilist's Hermite polynomial, orthogonal with the weight ``exp(-input**2 / 2)``."""
    x = _as_tensor(input, n)
    return evaluate(x, n, x, lambda x, k, last, before: x * last - (k - 1) * before)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_laguerre_polynomial_l(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Laguerre polynomial, orthogonal with the weight ``exp(-input)`` on the positive numbers."""
    x = _as_tensor(input, n)
    return evaluate(x, n, 1 - x, lambda x, k, last, before: ((2 * k - 1 - x) * last - (k - 1) * before) / k)


@operator(pointwise, promote=to_float, accepts="real", namespace="special", inplace=False, data_dependent=True)
def special_legendre_polynomial_p(input: Tensor | Number, n: Tensor | Number) -> Tensor:
    """Return the Legendre polynomial, orthogonal on [-1, 1]."""
    x = _as_tensor(input, n)
    return evaluate(x, n, x, lambda x, k, last, before: ((2 * k - 1) * x * last - (k - 1) * before) / k)
