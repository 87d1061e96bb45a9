"""The standard's extension of Fourier transforms, over ``candelabra.fft``.

``norm`` says what is divided by n: "backward" the inverse transform, "forward" the other one, "ortho" both by its root.
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


fft = _along_axis("fft", "The discrete Fourier transform along ``axis``, cut or filled with zeros to ``n``.")
ifft = _along_axis("ifft", "The inverse of :func:`fft`.")
rfft = _along_axis("rfft", "The transform of real input: the half of :func:`fft` that says everything.")
irfft = _along_axis("irfft", "The inverse of :func:`rfft`: real, of ``n`` elements (default: an even number).")
hfft = _along_axis("hfft", "The transform of half a Hermitian signal: real.")
ihfft = _along_axis("ihfft", "The inverse of :func:`hfft`.")
fftn = _along_axes("fftn", "The transform over several axes (None: all).")
ifftn = _along_axes("ifftn", "The inverse of :func:`fftn`.")
rfftn = _along_axes("rfftn", "The transform of real input over several axes: half of it along the last.")
irfftn = _along_axes("irfftn", "The inverse of :func:`rfftn`.")
fftfreq = _frequencies("fftfreq", "The frequencies of :func:`fft`'s output for ``n`` samples ``d`` apart.")
rfftfreq = _frequencies("rfftfreq", "The frequencies of :func:`rfft`'s output for ``n`` samples ``d`` apart.")
fftshift = _shift("fftshift", "The zero frequency moved to the middle of the axes (None: all).")
ifftshift = _shift("ifftshift", "The inverse of :func:`fftshift`.")


def __dir__() -> list[str]:
    return sorted(__all__)
