"""Transforms over two and n dims. Each function over two dims is the one over n with the last two as default."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.fft.arguments import (
    as_complex,
    checked_count,
    checked_norm,
    dims_and_sizes,
    of_reals,
    resized,
    transformed,
)
from candelabra._operators.fft.primitives import SWAPPED, fft_c2r, fft_r2c
from candelabra._operators.fft.transforms import spectrum
from candelabra._records.record import operator
from candelabra._records.rules import shape_of, unchecked

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _transformed(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    dims, sizes = dims_and_sizes(input, s, dim)
    mode = checked_norm(norm)
    if not dims:
        return as_complex(input).clone()
    return spectrum(resized(input, dims, sizes), dims, mode, forward)


def _real(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    dims, sizes = dims_and_sizes(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return fft_r2c(resized(input, dims, sizes), dims, norm, True)


def _hermitian(name: str, input: Tensor, s: Any, dim: Any, norm: str) -> Tensor:
    dims, sizes = dims_and_sizes(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    wanted = None if s is None else s if isinstance(s, int) else s[-1]
    if wanted is None or wanted == -1:
        sizes[-1] = checked_count(2 * (shape_of(input)[dims[-1]] - 1))
    size = sizes[-1]
    x = resized(input, dims, [*sizes[:-1], size // 2 + 1])
    return fft_c2r(as_complex(x), dims, norm, size)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform over ``dim``: all dims, or the last ``len(s)``.

    ``s`` cuts or pads each of them with zeros first (-1 keeps a size). ``norm`` as in :func:`candelabra.fft.fft`, with
    the number of all points.
    """
    return _transformed(input, s, dim, norm, True)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.fftn`."""
    return _transformed(input, s, dim, norm, False)


@operator(unchecked, promote=of_reals("rfftn", "real-valued"), namespace="fft")
def fft_rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The transform of real numbers over ``dim``; of the last one the first half, which determines the other."""
    return _real("rfftn", input, s, dim, checked_norm(norm))


@operator(unchecked, promote=transformed, namespace="fft")
def fft_irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.rfftn`; ``s[-1]`` is the size of the last dim, by default an even one."""
    return _hermitian("irfftn", input, s, dim, checked_norm(norm))


@operator(unchecked, promote=transformed, namespace="fft")
def fft_hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The transform, real, of a Hermitian signal over ``dim``, of which the first half in the last dim is given."""
    return _hermitian("hfftn", input.conj(), s, dim, SWAPPED[checked_norm(norm)])


@operator(unchecked, promote=of_reals("ihfftn", "real-valued"), namespace="fft")
def fft_ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.hfftn`."""
    return _real("ihfftn", input, s, dim, SWAPPED[checked_norm(norm)]).conj()


@operator(unchecked, promote=transformed, namespace="fft")
def fft_fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.fftn` over the last two dims."""
    return _transformed(input, s, dim, norm, True)


@operator(unchecked, promote=transformed, namespace="fft")
def fft_ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.ifftn` over the last two dims."""
    return _transformed(input, s, dim, norm, False)


@operator(unchecked, promote=of_reals("rfftn", "real-valued"), namespace="fft")
def fft_rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.rfftn` over the last two dims."""
    return _real("rfftn", input, s, dim, checked_norm(norm))


@operator(unchecked, promote=transformed, namespace="fft")
def fft_irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.irfftn` over the last two dims."""
    return _hermitian("irfftn", input, s, dim, checked_norm(norm))


@operator(unchecked, promote=transformed, namespace="fft")
def fft_hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.hfftn` over the last two dims."""
    return _hermitian("hfftn", input.conj(), s, dim, SWAPPED[checked_norm(norm)])


@operator(unchecked, promote=of_reals("ihfftn", "real-valued"), namespace="fft")
def fft_ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """:func:`candelabra.fft.ihfftn` over the last two dims."""
    return _real("ihfftn", input, s, dim, SWAPPED[checked_norm(norm)]).conj()
