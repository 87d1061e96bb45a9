"""Fourier transforms by their definition: a sum over all points for each point, without a fast algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]

SWAPPED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex(x: Array) -> Array:
    return x.astype(np.result_type(x.dtype, np.complex128))


@lru_cache(maxsize=2)  # a matrix of 1,024 points takes 32 MB, and as much time as its product
def _points(n: int, of: np.dtype[Any], forward: bool) -> Any:
    """Return the matrix of ``exp(∓2 pi i j k / n)``, from a table of n numbers, so that no angle is large."""
    real = np.empty(0, of).real.dtype.type
    angles = np.arange(n).astype(real) * (8 * np.arctan(real(1)) / real(n))
    table = np.cos(angles) + (-1j if forward else 1j) * np.sin(angles)
    return table.astype(of)[np.outer(np.arange(n), np.arange(n)) % n]


def _summed(x: Array, dims: tuple[int, ...], forward: bool) -> Array:
    for d in dims:
        x = np.moveaxis(np.moveaxis(x, d, -1) @ _points(x.shape[d], x.dtype, forward), -1, d)
    return x


def _scale(count: int, norm: str, forward: bool, like: Array) -> Any:
    """Return the divisor: the count in one direction, its root in both, or 1."""
    divided = norm == "ortho" or (norm == "forward") == forward
    number = like.real.dtype.type(count if divided else 1)
    return np.sqrt(number) if norm == "ortho" else number


def _counted(x: Array, dims: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[d] for d in dims]))


@reference("fft_c2c", extended=True)
def complex_to_complex(input: Array, dim: tuple[int, ...], norm: str, forward: bool) -> Array:
    """Transform dim by dim."""
    out = _summed(_complex(input), dim, forward)
    return np.asarray(out / _scale(_counted(input, dim), norm, forward, out))


@reference("fft_r2c", extended=True)
def real_to_complex(input: Array, dim: tuple[int, ...], norm: str, onesided: bool) -> Array:
    """Compute all points, of which half may be dropped."""
    out = complex_to_complex(input, dim, norm, True)
    return out.take(np.arange(input.shape[dim[-1]] // 2 + 1), dim[-1]) if onesided else out


@reference("fft_c2r", extended=True)
def complex_to_real(input: Array, dim: tuple[int, ...], norm: str, size: int) -> Array:
    """Transform the other dims first; in the last one, complete the half with conjugates and make its ends real."""
    x = _summed(_complex(input), dim[:-1], False)
    half = np.moveaxis(x, dim[-1], -1).copy()
    half[..., 0] = half[..., 0].real
    if size % 2 == 0:
        half[..., -1] = half[..., -1].real
    whole = np.concatenate([half, np.conj(half[..., (size - 1) // 2 : 0 : -1])], -1)
    out = np.moveaxis((whole @ _points(size, whole.dtype, False)).real, -1, dim[-1])
    return np.asarray(out / _scale(_counted(out, dim), norm, False, out))


# -- public functions -------------------------------------------------------------------------------------------------
def _resized(x: Array, dims: tuple[int, ...], sizes: list[int]) -> Array:
    """Truncate each dim, or pad it with zeros at its end."""
    for d, n in zip(dims, sizes, strict=True):
        x = x.take(np.arange(min(n, x.shape[d])), d)
        missing = [(0, n - x.shape[d] if i == d else 0) for i in range(x.ndim)]
        x = np.pad(x, missing)
    return x


def _dims(x: Array, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int | None]]:
    """Return the non-negative dims, and the requested size of each."""
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dim is None:
        dims = list(range(x.ndim - (x.ndim if sizes is None else len(sizes)), x.ndim))
    else:
        dims = [dim] if isinstance(dim, int) else list(dim)
    wanted: list[int | None] = [None] * len(dims) if sizes is None else [None if n == -1 else n for n in sizes]
    return tuple(d % x.ndim for d in dims), wanted


def _forth(forward: bool) -> Any:
    def transformed(input: Array, s: Any, dim: Any, norm: str | None) -> Array:
        dims, wanted = _dims(input, s, dim)
        sizes = [input.shape[d] if n is None else n for d, n in zip(dims, wanted, strict=True)]
        return complex_to_complex(_resized(input, dims, sizes), dims, norm or "backward", forward)

    return transformed


def _halved(hermitian: bool) -> Any:
    """Transform real numbers. For the inverse of a Hermitian signal, use the conjugate and the other norm."""

    def transformed(input: Array, s: Any, dim: Any, norm: str | None) -> Array:
        dims, wanted = _dims(input, s, dim)
        sizes = [input.shape[d] if n is None else n for d, n in zip(dims, wanted, strict=True)]
        mode = norm or "backward"
        x = _resized(input, dims, sizes)
        out = real_to_complex(x, dims, SWAPPED[mode] if hermitian else mode, True)
        return np.conj(out) if hermitian else out

    return transformed


def _whole(hermitian: bool) -> Any:
    """Transform to real numbers. For a Hermitian signal, use the conjugate and the other norm."""

    def transformed(input: Array, s: Any, dim: Any, norm: str | None) -> Array:
        dims, wanted = _dims(input, s, dim)
        sizes = [input.shape[d] if n is None else n for d, n in zip(dims, wanted, strict=True)]
        last = wanted[-1]
        size = 2 * (input.shape[dims[-1]] - 1) if last is None else last
        x = _resized(np.conj(input) if hermitian else input, dims, [*sizes[:-1], size // 2 + 1])
        mode = norm or "backward"
        return complex_to_real(x, dims, SWAPPED[mode] if hermitian else mode, size)

    return transformed


NAMED: Final = {
    "fft": _forth(True), "ifft": _forth(False), "rfft": _halved(False), "ihfft": _halved(True),
    "irfft": _whole(False), "hfft": _whole(True),
}  # fmt: skip
references({f"fft_{name}{ending}": f for name, f in NAMED.items() for ending in ("", "2", "n")}, extended=True)


# -- helpers ----------------------------------------------------------------------------------------------------------
def _halves(up: int) -> Any:
    """Roll each dim by half its size, rounded up or down."""

    def shifted(input: Array, dim: Any) -> Array:
        dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
        for d in dims:
            n = input.shape[d]
            input = input.take((np.arange(n) - (n + up) // 2) % max(n, 1), d)
        return input

    return shifted


references({"fft_fftshift": _halves(0), "fft_ifftshift": _halves(1)}, extended=True)


@reference("fft.fftfreq")
def fftfreq(n: int, d: float = 1.0, **options: Any) -> Array:
    """Return the frequencies: those of the first half from 0, the others from the negative end up to -1."""
    counted = [k if k < (n + 1) // 2 else k - n for k in range(n)]
    return _frequencies(counted, n * d, **options)


@reference("fft.rfftfreq")
def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Array:
    """Return the first half of the frequencies."""
    return _frequencies(range(n // 2 + 1), n * d, **options)


def _frequencies(counted: Sequence[int], duration: float, dtype: Any = None, **options: Any) -> Array:
    found = np.array(counted, np.float64) / (duration or 1)
    return found.astype(np.complex128) if dtype is not None and dtype.is_complex else found
