"""Transforms over one dim, ``fft``, ``rfft``, ``hfft`` and their inverses, and the functions that transforms over more
dims share.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.fft.arguments import (
    as_complex,
    checked_norm,
    dims_and_sizes,
    of_reals,
    real_dims,
    resized,
    some_dims,
    to_complex,
    transformed,
    with_sizes,
)
from candelabra._operators.fft.primitives import SWAPPED, fft_c2c, fft_c2r, fft_r2c
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import real_part
from candelabra._records.record import operator
from candelabra._records.rules import shape_of

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Tensor

Ints = tuple[int, ...]
Arguments = tuple[Any, Any, Any, Any]
"""The input, the sizes, the dims, the norm."""


# -- rules of shape ---------------------------------------------------------------------------------------------------
def whole_spectrum(op: Operator[..., Any], args: Arguments) -> Ints:
    """Return the shape of the whole spectrum: as many frequencies as points."""
    input, s, dim, norm = args
    checked_norm(norm)
    return with_sizes(shape_of(input), *dims_and_sizes(shape_of(input), s, dim))


def half_spectrum(op: Operator[..., Any], args: Arguments) -> Ints:
    """Return the shape of the half spectrum: n // 2 + 1 frequencies in the last dim."""
    input, s, dim, norm = args
    checked_norm(norm)
    dims, sizes = some_dims(op.name.removeprefix("fft_"), shape_of(input), s, dim)
    return with_sizes(shape_of(input), dims, (*sizes[:-1], sizes[-1] // 2 + 1))


def real_signal(op: Operator[..., Any], args: Arguments) -> Ints:
    """Return the shape of the real signal that belongs to a half spectrum."""
    input, s, dim, norm = args
    checked_norm(norm)
    return with_sizes(shape_of(input), *real_dims(op.name.removeprefix("fft_"), shape_of(input), s, dim))


# -- bodies -----------------------------------------------------------------------------------------------------------
def spectrum(input: Tensor, dims: Ints, norm: str, forward: bool) -> Tensor:
    """Return both halves of the transform of real or complex numbers."""
    if input.is_complex():
        return fft_c2c(input, dims, norm, forward)
    if forward:
        return fft_r2c(input, dims, norm, False)
    return fft_r2c(input, dims, SWAPPED[norm], False).conj()


def transform(input: Tensor, s: Any, dim: Any, norm: str, forward: bool) -> Tensor:
    """Return the whole spectrum of the trimmed or padded input."""
    dims, sizes = dims_and_sizes(shape_of(input), s, dim)
    return spectrum(resized(input, dims, sizes), dims, norm, forward) if dims else as_complex(input).clone()


def transform_of_reals(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    """Return the half spectrum of the trimmed or padded real input."""
    dims, sizes = some_dims(name, shape_of(input), s, dim)
    return fft_r2c(resized(input, dims, sizes), dims, norm, True)


def inverse_to_reals(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    """Return the real signal that belongs to the trimmed or padded half spectrum."""
    dims, sizes = real_dims(name, shape_of(input), s, dim)
    x = resized(input, dims, (*sizes[:-1], sizes[-1] // 2 + 1))
    return fft_c2r(as_complex(x), dims, norm, sizes[-1])


# -- functions over one dim -------------------------------------------------------------------------------------------
@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform along ``dim``: ``out[k] = sum over j of input[j] * exp(-2 pi i j k / n)``.

    The input is trimmed or padded with zeros to ``n`` points first. ``norm`` selects the divisor: n ("forward"), its
    square root ("ortho") or 1 ("backward", the default). The result is complex; integers are promoted to the default
    floating dtype first.
    """
    return transform(input, n, dim, checked_norm(norm), True)


@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.fft`; ``norm`` "backward", the default, divides by n."""
    return transform(input, n, dim, checked_norm(norm), False)


@operator(
    half_spectrum,
    promote=of_reals("rfft", "real"),
    result=to_complex,
    namespace="fft",
    autocast=Autocast(host="float32"),
)
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first n // 2 + 1 points of the transform of real numbers; the others are their conjugates."""
    return transform_of_reals("rfft", input, n, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft", autocast=Autocast(host="float32"))
def fft_irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.rfft`: ``n`` real points, by default ``2 * (size - 1)``, an even
    number.
    """
    return inverse_to_reals("irfft", input, n, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft", autocast=Autocast(host="float32"))
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real transform of a Hermitian signal given by its first half; by default it has ``2 * (size - 1)``
    points.
    """
    return inverse_to_reals("hfft", input.conj(), n, dim, SWAPPED[checked_norm(norm)])


@operator(
    half_spectrum,
    promote=of_reals("ihfft", "real"),
    result=to_complex,
    namespace="fft",
    autocast=Autocast(host="float32"),
)
def fft_ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.hfft`: the first n // 2 + 1 points of a Hermitian signal."""
    return transform_of_reals("ihfft", input, n, dim, SWAPPED[checked_norm(norm)]).conj()
