"""The standard's extension of Fourier transforms, over ``candelabra.fft``.

``norm`` selects the transform that is divided by n: "backward" the inverse, "forward" the forward one; "ortho" divides
both by the square root of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, named
from candelabra.array_api._elementwise import titled
from candelabra.dtypes import dtype

__all__ = [
    "fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq",
    "fftshift", "ifftshift",
]  # fmt: skip


def _along_axis(name: str, doc: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        return arrayed(named(f"fft.{name}")(x, n, axis, norm))

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _along_axes(name: str, doc: str) -> Callable[..., Array]:
    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Array:
        return arrayed(named(f"fft.{name}")(x, s, axes, norm), x)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _frequencies(name: str, doc: str) -> Callable[..., Array]:
    def function(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Array:
        return arrayed(named(f"fft.{name}")(n, d, dtype=dtype, device=device))

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _shift(name: str, doc: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Array:
        return arrayed(named(f"fft.{name}")(x, axes), x)

    return titled(function, name, doc)  # type: ignore[no-any-return]


fft = _along_axis("fft", "Return the discrete Fourier transform along ``axis``, trimmed or padded with zeros to ``n``.")
ifft = _along_axis("ifft", "Return the inverse of :func:`fft`.")
rfft = _along_axis("rfft", "Return the transform of real input: the non-redundant half of :func:`fft`.")
irfft = _along_axis(
    "irfft", "Return the inverse of :func:`rfft`, which is real and has ``n`` elements (default: an even number)."
)
hfft = _along_axis("hfft", "Return the real transform of a Hermitian signal, given by its first half.")
ihfft = _along_axis("ihfft", "Return the inverse of :func:`hfft`.")
fftn = _along_axes("fftn", "Return the transform over several axes (None: all).")
ifftn = _along_axes("ifftn", "Return the inverse of :func:`fftn`.")
rfftn = _along_axes(
    "rfftn", "Return the transform of real input over several axes, of which the last has only the non-redundant half."
)
irfftn = _along_axes("irfftn", "Return the inverse of :func:`rfftn`.")
fftfreq = _frequencies(
    "fftfreq", "Return the frequencies of :func:`fft`'s output for ``n`` samples at a distance of ``d``."
)
rfftfreq = _frequencies(
    "rfftfreq", "Return the frequencies of :func:`rfft`'s output for ``n`` samples at a distance of ``d``."
)
fftshift = _shift("fftshift", "Return the spectrum with the zero frequency in the middle of the axes (None: all).")
ifftshift = _shift("ifftshift", "Return the inverse of :func:`fftshift`.")


def __dir__() -> list[str]:
    return sorted(__all__)
