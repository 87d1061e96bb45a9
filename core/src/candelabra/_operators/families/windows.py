"""The older names of five windows, ``hann_window`` to ``kaiser_window``: periodic unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype
from candelabra._device import open_device
from candelabra._operators.creation import filled
from candelabra._operators.signal.sampling import bessel, cosines, triangle
from candelabra._records.callables import public
from candelabra.dtypes import FLOATING, PYTHON_NAMES, get_default_dtype
from candelabra.dtypes import dtype as dtype_type

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _checked(name: str, window_length: int, dtype: Any) -> dtype_type:
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    if d.category < FLOATING:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {PYTHON_NAMES[d.name]}")
    if not hasattr(window_length, "__index__"):
        raise TypeError(f"{name}(): argument 'window_length' must be int, not {type(window_length).__name__}")
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    return d


def _made(
    name: str, length: int, dtype: Any, device: Any, requires_grad: bool, make: Callable[[dtype_type], Tensor]
) -> Tensor:
    """The window that ``make`` gives, or ones where there are fewer than two points."""
    d = _checked(name, length, dtype)
    window: Tensor = make(d) if length > 1 else filled.full((length,), 1, dtype=d, device=open_device(device))
    return window.requires_grad_() if requires_grad else window


def _raised_cosine(
    name: str, length: int, periodic: bool, weights: tuple[float, ...], dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    def make(d: dtype_type) -> Tensor:
        return cosines(weights, length, not periodic, d, device)

    return _made(name, length, dtype, device, requires_grad, make)


@public(method=False, factory=True)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The Hann window, ``0.5 - 0.5 * cos(2 pi n / N)``, where N is ``window_length``, less 1 unless ``periodic``.

    ``RuntimeError`` for a negative length and for dtypes that are not floating.
    """
    return _raised_cosine("hann_window", window_length, periodic, (0.5, 0.5), dtype, device, requires_grad)


@public(method=False, factory=True)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Hamming window, ``alpha - beta * cos(2 pi n / N)``; see :func:`hann_window`."""
    return _raised_cosine("hamming_window", window_length, periodic, (alpha, beta), dtype, device, requires_grad)


@public(method=False, factory=True)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The Blackman window, ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``; see :func:`hann_window`."""
    weights = (0.42, 0.5, 0.08)
    return _raised_cosine("blackman_window", window_length, periodic, weights, dtype, device, requires_grad)


@public(method=False, factory=True)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The Bartlett window, a triangle: ``1 - abs(2 n / N - 1)``; see :func:`hann_window`."""

    def make(d: dtype_type) -> Tensor:
        return triangle(window_length, not periodic, d, device)

    return _made("bartlett_window", window_length, dtype, device, requires_grad, make)


@public(method=False, factory=True)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Kaiser window, ``i0(beta * sqrt(1 - (2 n / N - 1)**2)) / i0(beta)``; see :func:`hann_window`."""

    def make(d: dtype_type) -> Tensor:
        return bessel(beta, window_length, not periodic, d, device)

    return _made("kaiser_window", window_length, dtype, device, requires_grad, make)
