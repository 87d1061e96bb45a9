"""Window functions: those of ``signal.windows``, and five under older names, ``hann_window`` to ``kaiser_window``.

A formula computes a window at evenly spaced points of one period. A symmetric window has both ends of the period. A
periodic window, for spectra, is a symmetric window of one more point without its last point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import pi, sqrt

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._codegen.arguments import as_device, as_dtype
from candelabra._device import Instance
from candelabra._operators.creation.filled import full
from candelabra._operators.creation.ranges import linspace
from candelabra._operators.special.bessel import i0
from candelabra._records.callables import public
from candelabra.dtypes import FLOATING, dtype, get_default_dtype

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Tensor


class Grid(NamedTuple):
    """The points at which a window is computed: their number, and the length of the period."""

    size: int
    period: int
    dtype: dtype
    device: Instance

    def points(self, first: float, step: float) -> Tensor:
        """Return the points ``first``, ``first + step``, …"""
        last = first + step * (self.size - 1)
        return linspace(first, last, self.size, dtype=self.dtype, device=self.device)


Formula = Callable[[Grid], "Tensor"]


# -- formulas ---------------------------------------------------------------------------------------------------------
def cosines(*weights: float) -> Formula:
    """Return the formula ``sum over i of (-1)**i * weights[i] * cos(2 pi i n / period)``."""

    def formula(grid: Grid) -> Tensor:
        angle = grid.points(0.0, 2 * pi / grid.period)
        if len(weights) == 1:
            return angle * 0 + weights[0]
        window = angle.cos() * -weights[1] + weights[0]
        for i, w in enumerate(weights[2:], 2):
            window = window + (angle * i).cos() * (w if i % 2 == 0 else -w)
        return window

    return formula


def triangle(grid: Grid) -> Tensor:
    """Return ``1 - abs(2 n / period - 1)``."""
    return 1 - grid.points(-1.0, 2 / grid.period).abs()


def bessel(beta: float) -> Formula:
    """Return the formula ``i0(beta * sqrt(1 - (2 n / period - 1)**2)) / i0(beta)``."""

    def formula(grid: Grid) -> Tensor:
        x = grid.points(-beta, 2 * beta / grid.period).clamp(-beta, beta)
        return i0((beta * beta - x * x).sqrt()) / i0(x[:1] * 0 + beta)

    return formula


# -- signal.windows ---------------------------------------------------------------------------------------------------
def _window(
    name: str, M: int, sym: bool, dtype: DType | None, device: Device, formula: Formula, shortest: int = 2
) -> Tensor:
    """Return a window of ``M`` points by a formula; a window of fewer than ``shortest`` points is filled with 1."""
    if not hasattr(M, "__index__"):
        raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    if d.name not in ("float32", "float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d}")
    if shortest > M:
        return full((M,), 1, dtype=d, device=as_device(device))
    return formula(Grid(M, M - 1 if sym or M <= 1 else M, d, as_device(device)))


@public(namespace="signal.windows", factory=True)
def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """``sum over i of (-1)**i * a[i] * cos(2 pi i n / (M - 1))`` for n below ``M``; ``sym=False`` divides by M instead.

    ``TypeError`` and ``ValueError`` for coefficients that are not a list, and for an empty list; see :func:`hann` for
    the rest.
    """

    def formula(grid: Grid) -> Tensor:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        weights = [float(w) for w in a]
        if not weights:
            raise ValueError("Coefficients cannot be empty")
        return cosines(*weights)(grid)

    return _window("general_cosine", M, sym, dtype, device, formula)


@public(namespace="signal.windows", factory=True)
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """``alpha - (1 - alpha) * cos(2 pi n / (M - 1))``: a raised cosine."""
    return _window("general_hamming", M, sym, dtype, device, cosines(alpha, 1.0 - alpha))


@public(namespace="signal.windows", factory=True)
def hann(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the Hann window, ``0.5 - 0.5 * cos(2 pi n / (M - 1))``: a 1-d tensor of ``M`` points.

    ``sym=False`` omits the last point of the window of ``M + 1`` points, for spectra. Raises ``ValueError`` for a
    negative ``M`` and for dtypes other than float32 and float64.
    """
    return _window("hann", M, sym, dtype, device, cosines(0.5, 0.5))


@public(namespace="signal.windows", factory=True)
def hamming(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the Hamming window, ``0.54 - 0.46 * cos(2 pi n / (M - 1))``."""
    return _window("hamming", M, sym, dtype, device, cosines(0.54, 0.46))


@public(namespace="signal.windows", factory=True)
def blackman(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the Blackman window, ``0.42 - 0.5 * cos(2 pi n / (M - 1)) + 0.08 * cos(4 pi n / (M - 1))``."""
    return _window("blackman", M, sym, dtype, device, cosines(0.42, 0.5, 0.08))


@public(namespace="signal.windows", factory=True)
def nuttall(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return Nuttall's window of four terms with the lowest side lobes (A. Nuttall, IEEE ASSP 29, 1981, equation
    37).
    """
    return _window("nuttall", M, sym, dtype, device, cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411))


@public(namespace="signal.windows", factory=True)
def bartlett(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the Bartlett window, a triangle that is 0 at both ends: ``1 - abs(2 n / (M - 1) - 1)``."""
    return _window("bartlett", M, sym, dtype, device, triangle)


@public(namespace="signal.windows", factory=True)
def cosine(M: int, *, sym: bool = True, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return half a period of a cosine, ``sin(pi (n + 0.5) / M)``; ``sym=False`` omits the last of ``M + 1`` points."""

    def formula(grid: Grid) -> Tensor:
        step = pi / (grid.period + 1)
        return grid.points(0.5 * step, step).sin()

    return _window("cosine", M, sym, dtype, device, formula)


@public(namespace="signal.windows", factory=True)
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DType | None = None,
    device: Device = None,
) -> Tensor:  # fmt: skip
    """``exp(-abs(n - center) / tau)``: the Poisson window. ``center`` requires ``sym=False``.

    Raises ``ValueError`` unless ``tau`` is positive, and for a ``center`` of a symmetric window.
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(grid: Grid) -> Tensor:
        middle = grid.period / 2 if center is None else center
        return (-grid.points(-middle / tau, 1 / tau).abs()).exp()

    return _window("exponential", M, sym, dtype, device, formula, 2 if center is None else 1)


@public(namespace="signal.windows", factory=True)
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """``exp(-(n - middle)**2 / (2 * std**2))``. Raises ``ValueError`` unless ``std`` is positive."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def formula(grid: Grid) -> Tensor:
        step = 1 / (std * sqrt(2))
        x = grid.points(-grid.period / 2 * step, step)
        return (-x * x).exp()

    return _window("gaussian", M, sym, dtype, device, formula)


@public(namespace="signal.windows", factory=True)
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """``i0(beta * sqrt(1 - (2 n / (M - 1) - 1)**2)) / i0(beta)``. Raises ``ValueError`` for a negative ``beta``."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, dtype, device, bessel(beta))


# -- the older names --------------------------------------------------------------------------------------------------
def _older_window(
    name: str, length: int, periodic: bool, dtype: DType | None, device: Device, formula: Formula
) -> Tensor:
    """Return a window under its older name: by default periodic, of any floating dtype."""
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    if d.category < FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {d.title}")
    if not hasattr(length, "__index__"):
        raise TypeError(f"{name}(): argument 'window_length' must be int, not {type(length).__name__}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        return full((length,), 1, dtype=d, device=as_device(device))
    return formula(Grid(length, length if periodic else length - 1, d, as_device(device)))


@public(method=False, factory=True)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return the Hann window, ``0.5 - 0.5 * cos(2 pi n / N)``, where N is ``window_length``, or ``window_length - 1``
    unless ``periodic``.

    Raises ``RuntimeError`` for a negative length and for dtypes that are not floating.
    """
    return _older_window("hann_window", window_length, periodic, dtype, device, cosines(0.5, 0.5))


@public(method=False, factory=True)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: DType | None = None, device: Device = None,
) -> Tensor:  # fmt: skip
    """Return the Hamming window, ``alpha - beta * cos(2 pi n / N)``; see :func:`hann_window`."""
    return _older_window("hamming_window", window_length, periodic, dtype, device, cosines(alpha, beta))


@public(method=False, factory=True)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return the Blackman window, ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``; see :func:`hann_window`."""
    return _older_window("blackman_window", window_length, periodic, dtype, device, cosines(0.42, 0.5, 0.08))


@public(method=False, factory=True)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return the Bartlett window, a triangle: ``1 - abs(2 n / N - 1)``; see :func:`hann_window`."""
    return _older_window("bartlett_window", window_length, periodic, dtype, device, triangle)


@public(method=False, factory=True)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return the Kaiser window, ``i0(beta * sqrt(1 - (2 n / N - 1)**2)) / i0(beta)``; see :func:`hann_window`."""
    return _older_window("kaiser_window", window_length, periodic, dtype, device, bessel(beta))
