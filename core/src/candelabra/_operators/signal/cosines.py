"""Windows that are sums of cosines: Hann, Hamming, Blackman, Nuttall and their general forms."""

from __future__ import annotations

from collections.abc import Iterable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.signal.sampling import cosines, trivial
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public(namespace="signal.windows")
def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``sum over i of (-1)**i * a[i] * cos(2 pi i n / (M - 1))`` for n below ``M``; ``sym=False`` divides by M instead.

    ``TypeError`` and ``ValueError`` for coefficients that are no list or an empty one; see :func:`hann` for the rest.
    """
    return _cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def _cosines(name: str, M: int, a: Any, sym: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> Tensor:
    made = trivial(name, M, dtype, layout, device, requires_grad)
    if made is not None:
        return made
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(w) for w in a]
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    window = cosines(weights, M, sym, dtype, device)
    return window.requires_grad_() if requires_grad else window


@public(namespace="signal.windows")
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``alpha - (1 - alpha) * cos(2 pi n / (M - 1))``: a raised cosine."""
    return _cosines("general_hamming", M, (alpha, 1.0 - alpha), sym, dtype, layout, device, requires_grad)


@public(namespace="signal.windows")
def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Hann window, ``0.5 - 0.5 * cos(2 pi n / (M - 1))``: a 1-d tensor of ``M`` points.

    ``sym=False`` leaves out the last point of the window of ``M + 1``, for spectra. ``ValueError`` for a negative ``M``
    and other dtypes than float32 and float64.
    """
    return _cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


@public(namespace="signal.windows")
def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Hamming window, ``0.54 - 0.46 * cos(2 pi n / (M - 1))``."""
    return _cosines("hamming", M, (0.54, 0.46), sym, dtype, layout, device, requires_grad)


@public(namespace="signal.windows")
def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Blackman window, ``0.42 - 0.5 * cos(2 pi n / (M - 1)) + 0.08 * cos(4 pi n / (M - 1))``."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


@public(namespace="signal.windows")
def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Nuttall's window of four terms with the least side lobes (A. Nuttall, IEEE ASSP 29, 1981, equation 37)."""
    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosines("nuttall", M, weights, sym, dtype, layout, device, requires_grad)
