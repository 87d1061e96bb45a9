"""The frequencies of a spectrum's points, and spectra with frequency 0 in the middle."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype
from candelabra._operators.creation.ranges import arange
from candelabra._operators.fft.arguments import dims_and_sizes
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import like_input, shape_of
from candelabra.dtypes import FLOATING, get_default_dtype
from candelabra.dtypes import dtype as dtype_type

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.typing import Device, DType, Shape


def _checked_dtype(name: str, dtype: Any) -> dtype_type:
    target = get_default_dtype() if dtype is None else as_dtype(dtype)
    if target.category < FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    return target


# -- frequencies ------------------------------------------------------------------------------------------------------
@public(namespace="fft", factory=True)
def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the frequencies of the ``n`` points of :func:`candelabra.fft.fft`, in cycles per unit, for samples at a
    distance of ``d``.

    They are 0, 1, …, then the negative ones, -n // 2, …, -1, divided by ``n * d``.
    """
    kind = _checked_dtype("fftfreq", dtype)
    if n < 0:
        raise RuntimeError(f"fftfreq(): n must be non-negative, got {n}")
    positive = arange(0, 1, (n + 1) // 2, dtype=kind, device=device)
    negative = arange(-(n // 2), 1, n // 2, dtype=kind, device=device)
    return cat((positive, negative), 0) * (1.0 / (n * d) if n else 1.0)


@public(namespace="fft", factory=True)
def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return the frequencies of the n // 2 + 1 points of :func:`candelabra.fft.rfft`, for samples at a distance of
    ``d``.
    """
    points = arange(0, 1, n // 2 + 1, dtype=_checked_dtype("rfftfreq", dtype), device=device)
    return points * (1.0 / (n * d) if n else 1.0)


# -- shifts -----------------------------------------------------------------------------------------------------------
def _rolled(input: Tensor, dim: Any, up: int) -> Tensor:
    """Return each dim rolled by half of its size, rounded up if ``up`` is 1."""
    shape = shape_of(input)
    dims = dims_and_sizes(shape, None, dim)[0] if dim is not None else tuple(range(len(shape)))
    return input.roll([(shape[d] + up) // 2 for d in dims], dims) if dims else input.clone()


@operator(like_input, namespace="fft", out=False)
def fft_fftshift(input: Tensor, dim: Shape | None = None) -> Tensor:
    """Return the spectrum with frequency 0 moved to the middle of ``dim`` (an int, several ints, or None for all
    dims).
    """
    return _rolled(input, dim, 0)


@operator(like_input, namespace="fft", out=False)
def fft_ifftshift(input: Tensor, dim: Shape | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.fftshift`."""
    return _rolled(input, dim, 1)
