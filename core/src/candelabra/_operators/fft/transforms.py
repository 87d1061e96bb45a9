"""Transforms over one dim: ``fft``, ``rfft``, ``hfft`` and their inverses."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.fft.arguments import (
    as_complex,
    checked_count,
    checked_norm,
    of_reals,
    one_dim,
    resized,
    transformed,
)
from candelabra._operators.fft.primitives import SWAPPED, fft_c2c, fft_c2r, fft_r2c
from candelabra._records.record import operator
from candelabra._records.rules import shape_of, unchecked

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def spectrum(input: Tensor, dims: Ints, norm: str, forward: bool) -> Tensor:
    """The transform of real or complex numbers, both halves of it."""
    if input.is_complex():
        return fft_c2c(input, dims, norm, forward)
    if forward:
        return fft_r2c(input, dims, norm, False)
    return fft_r2c(input, dims, SWAPPED[norm], False).conj()


def _one(input: Tensor, n: int | None, dim: int) -> tuple[Tensor, Ints]:
    """The input with ``n`` points in the dim to transform."""
    d = one_dim(input, dim)
    count = checked_count(shape_of(input)[d] if n is None else n)
    return resized(input, (d,), (count,)), (d,)


def _hermitian(input: Tensor, n: int | None, dim: int, norm: str) -> Tensor:
    """``n`` real points of the first half of their spectrum."""
    d = one_dim(input, dim)
    count = checked_count(2 * (shape_of(input)[d] - 1) if n is None else n)
    return fft_c2r(as_complex(resized(input, (d,), (count // 2 + 1,))), (d,), norm, count)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along ``dim``: ``out[k] = sum over j of input[j] * exp(-2 pi i j k / n)``.

    ``n`` cuts the input or pads it with zeros first. ``norm`` divides by n ("forward"), by its root ("ortho"), or not
    ("backward", the default). The result is complex; integers become the default floating dtype first.
    """
    mode = checked_norm(norm)
    x, dims = _one(input, n, dim)
    return spectrum(x, dims, mode, True)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.fft`; ``norm`` "backward", the default, divides by n."""
    mode = checked_norm(norm)
    x, dims = _one(input, n, dim)
    return spectrum(x, dims, mode, False)


@operator(unchecked, promote=of_reals("rfft", "real"), namespace="fft")
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of real numbers: the n // 2 + 1 points that the others repeat, conjugated."""
    mode = checked_norm(norm)
    x, dims = _one(input, n, dim)
    return fft_r2c(x, dims, mode, True)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.rfft`: ``n`` real points, by default ``2 * (size - 1)``, an even number."""
    return _hermitian(input, n, dim, checked_norm(norm))


@operator(unchecked, promote=transformed, namespace="fft")
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform, real, of a signal that is Hermitian, given by its first half: n = ``2 * (size - 1)`` points."""
    return _hermitian(input.conj(), n, dim, SWAPPED[checked_norm(norm)])


@operator(unchecked, promote=of_reals("ihfft", "real"), namespace="fft")
def fft_ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.hfft`: the first n // 2 + 1 points of a Hermitian signal."""
    mode = checked_norm(norm)
    x, dims = _one(input, n, dim)
    return fft_r2c(x, dims, SWAPPED[mode], True).conj()
