"""Windows of other shapes: Bartlett's triangle, half a cosine, exponentials, Kaiser's Bessel function."""

from __future__ import annotations

from math import pi, sqrt

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.signal.sampling import bessel, length, sampled, triangle, trivial
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _finished(window: Tensor, requires_grad: bool) -> Tensor:
    return window.requires_grad_() if requires_grad else window


@public(namespace="signal.windows")
def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Bartlett window, a triangle that is 0 at both ends: ``1 - abs(2 n / (M - 1) - 1)``."""
    made = trivial("bartlett", M, dtype, layout, device, requires_grad)
    if made is not None:
        return made
    return _finished(triangle(M, sym, dtype, device), requires_grad)


@public(namespace="signal.windows")
def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a period of a cosine, ``sin(pi (n + 0.5) / M)``; with ``sym=False`` the one of ``M + 1`` points, cut."""
    if (made := trivial("cosine", M, dtype, layout, device, requires_grad)) is not None:
        return made
    step = pi / (length(M, sym) + 1)
    return _finished(sampled(0.5 * step, step, M, dtype, device).sin(), requires_grad)


@public(namespace="signal.windows")
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-abs(n - center) / tau)``: Poisson's window. ``center`` may be given where ``sym`` is False.

    ``ValueError`` for ``tau`` not above 0 and a center of a symmetric window.
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    made = trivial("exponential", M, dtype, layout, device, requires_grad)
    if made is not None and (M == 0 or center is None):
        return made
    middle = length(M, sym) / 2 if center is None else center
    return _finished((-sampled(-middle / tau, 1 / tau, M, dtype, device).abs()).exp(), requires_grad)


@public(namespace="signal.windows")
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-(n - middle)**2 / (2 * std**2))``. ``ValueError`` for ``std`` not above 0."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if (made := trivial("gaussian", M, dtype, layout, device, requires_grad)) is not None:
        return made
    step = 1 / (std * sqrt(2))
    x = sampled(-length(M, sym) / 2 * step, step, M, dtype, device)
    return _finished((-x * x).exp(), requires_grad)


@public(namespace="signal.windows")
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``i0(beta * sqrt(1 - (2 n / (M - 1) - 1)**2)) / i0(beta)``. ``ValueError`` for a negative ``beta``."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if (made := trivial("kaiser", M, dtype, layout, device, requires_grad)) is not None:
        return made
    return _finished(bessel(beta, M, sym, dtype, device), requires_grad)
