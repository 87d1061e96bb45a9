"""Orthogonal polynomials by their explicit sums, in exact fractions of the argument, without a recurrence.

Source: NIST Digital Library of Mathematical Functions, 18.5 (18.5.7 to 18.5.13) and 18.9. The degree is truncated to an
integer; a polynomial of negative degree is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb, factorial
from typing import Any

import numpy as np

from candelabra_conformance.references.promoted import of_floats
from candelabra_conformance.references.registry import references

Array = np.ndarray[Any, Any]
Coefficients = tuple[tuple[int, ...], int]
"""Integer coefficients from the constant term up, and their common divisor."""


def _laguerre(n: int) -> Coefficients:
    return tuple((-1) ** k * comb(n, k) * (factorial(n) // factorial(k)) for k in range(n + 1)), factorial(n)


def _legendre(n: int) -> Coefficients:
    terms = [0] * (n + 1)
    for k in range(n // 2 + 1):
        terms[n - 2 * k] = (-1) ** k * comb(n, k) * comb(2 * n - 2 * k, n)
    return tuple(terms), 2**n


def _hermite(n: int, base: int) -> list[int]:
    """Return the coefficients ``n! / (k! (n - 2k)!) base**(n - 2k)``, with 2**-k if the base is 1."""
    terms = [0] * (n + 1)
    for k in range(n // 2 + 1):
        size = factorial(n) // (factorial(k) * factorial(n - 2 * k))
        terms[n - 2 * k] = (-1) ** k * (size * 2 ** (n - 2 * k) if base == 2 else size // 2**k)
    return terms


def _chebyshev_u(n: int) -> list[int]:
    terms = [0] * max(n + 1, 0)
    for k in range(n // 2 + 1):
        terms[n - 2 * k] = (-1) ** k * comb(n - k, k) * 2 ** (n - 2 * k)
    return terms


def _sum(a: list[int], b: list[int], factor: int) -> tuple[int, ...]:
    b = b + [0] * (len(a) - len(b))
    return tuple(x + factor * y for x, y in zip(a, b, strict=True))


# T, V and W from U (18.9.7 to 18.9.12): 2 T_n = U_n - U_(n-2), V_n = U_n - U_(n-1), W_n = U_n + U_(n-1).
FAMILIES: dict[str, Callable[[int], Coefficients]] = {
    "chebyshev_polynomial_t": lambda n: (_sum(_chebyshev_u(n), _chebyshev_u(n - 2), -1), 2 if n else 1),
    "chebyshev_polynomial_u": lambda n: (tuple(_chebyshev_u(n)), 1),
    "chebyshev_polynomial_v": lambda n: (_sum(_chebyshev_u(n), _chebyshev_u(n - 1), -1), 1),
    "chebyshev_polynomial_w": lambda n: (_sum(_chebyshev_u(n), _chebyshev_u(n - 1), 1), 1),
    "hermite_polynomial_h": lambda n: (tuple(_hermite(n, 2)), 1),
    "hermite_polynomial_he": lambda n: (tuple(_hermite(n, 1)), 1),
    "laguerre_polynomial_l": _laguerre,
    "legendre_polynomial_p": _legendre,
}


def polynomial(coefficients: Callable[[int], Coefficients], shifted: bool) -> Callable[[Any, Any], Any]:
    """Return the function of the argument and the degree. If ``shifted``, evaluate at ``2 x - 1``."""
    known = cache(coefficients)

    @of_floats
    def evaluated(x: Any, n: Any) -> Any:
        x, n = np.broadcast_arrays(np.asarray(x), np.asarray(n))
        out = np.zeros(x.shape, np.result_type(x, n, np.float64))
        at = 2 * x.astype(out.dtype) - 1 if shifted else x.astype(out.dtype)
        degrees = np.trunc(n)
        for degree in np.unique(degrees[degrees >= 0]):
            terms, divisor = known(int(degree))
            here = degrees == degree
            total = np.zeros_like(at[here])
            for term in reversed(terms):
                total = total * at[here] + term
            out[here] = total / divisor
        return out

    return evaluated


references({f"special_{name}": polynomial(f, False) for name, f in FAMILIES.items()}, extended=True)
references(
    {f"special_shifted_{name}": polynomial(f, True) for name, f in FAMILIES.items() if name.startswith("chebyshev")},
    extended=True,
)
