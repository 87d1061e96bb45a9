"""Transforms over two and n dims. Each function over two dims is the one over n with the last two as default."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.fft.arguments import checked_norm, of_reals, to_complex, transformed
from candelabra._operators.fft.primitives import SWAPPED
from candelabra._operators.fft.transforms import (
    half_spectrum,
    inverse_to_reals,
    real_signal,
    transform,
    transform_of_reals,
    whole_spectrum,
)
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import real_part
from candelabra._records.record import operator

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor


# -- over n dims ------------------------------------------------------------------------------------------------------
@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_fftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform over ``dim``: all dims, or the last ``len(s)``.

    ``s`` trims each of them or pads it with zeros first (-1 keeps a size). ``norm`` is that of
    :func:`candelabra.fft.fft`, with n as the number of all points.
    """
    return transform(input, s, dim, checked_norm(norm), True)


@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_ifftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.fftn`."""
    return transform(input, s, dim, checked_norm(norm), False)


@operator(
    half_spectrum,
    promote=of_reals("rfftn", "real-valued"),
    result=to_complex,
    namespace="fft",
    autocast=Autocast(host="float32"),
)
def fft_rfftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the transform of real numbers over ``dim``. The last dim has only the first half, which determines the
    rest.
    """
    return transform_of_reals("rfftn", input, s, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft", autocast=Autocast(host="float32"))
def fft_irfftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.rfftn`; ``s[-1]`` is the size of the last dim, by default an even
    one.
    """
    return inverse_to_reals("irfftn", input, s, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft")
def fft_hfftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the transform of a Hermitian signal over ``dim``, which is real. The input has its first half in the last
    dim.
    """
    return inverse_to_reals("hfftn", input.conj(), s, dim, SWAPPED[checked_norm(norm)])


@operator(half_spectrum, promote=of_reals("ihfftn", "real-valued"), result=to_complex, namespace="fft")
def fft_ihfftn(input: Tensor, s: Shape | None = None, dim: Shape | None = None, norm: str | None = None) -> Tensor:
    """Return the inverse of :func:`candelabra.fft.hfftn`."""
    return transform_of_reals("ihfftn", input, s, dim, SWAPPED[checked_norm(norm)]).conj()


# -- over two dims ----------------------------------------------------------------------------------------------------
@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_fft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.fftn` over the last two dims."""
    return transform(input, s, dim, checked_norm(norm), True)


@operator(whole_spectrum, promote=transformed, result=to_complex, namespace="fft", autocast=Autocast(host="float32"))
def fft_ifft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.ifftn` over the last two dims."""
    return transform(input, s, dim, checked_norm(norm), False)


@operator(
    half_spectrum,
    promote=of_reals("rfftn", "real-valued"),
    result=to_complex,
    namespace="fft",
    autocast=Autocast(host="float32"),
)
def fft_rfft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.rfftn` over the last two dims."""
    return transform_of_reals("rfftn", input, s, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft", autocast=Autocast(host="float32"))
def fft_irfft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.irfftn` over the last two dims."""
    return inverse_to_reals("irfftn", input, s, dim, checked_norm(norm))


@operator(real_signal, promote=transformed, result=real_part, namespace="fft")
def fft_hfft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.hfftn` over the last two dims."""
    return inverse_to_reals("hfftn", input.conj(), s, dim, SWAPPED[checked_norm(norm)])


@operator(half_spectrum, promote=of_reals("ihfftn", "real-valued"), result=to_complex, namespace="fft")
def fft_ihfft2(input: Tensor, s: Shape | None = None, dim: Shape | None = (-2, -1), norm: str | None = None) -> Tensor:
    """Return :func:`candelabra.fft.ihfftn` over the last two dims."""
    return transform_of_reals("ihfftn", input, s, dim, SWAPPED[checked_norm(norm)]).conj()
