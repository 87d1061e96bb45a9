"""Samples of Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.conditioned import cast
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import HERE, LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NORMS: Final = (None, "backward", "ortho", "forward")


# -- kernels of devices -----------------------------------------------------------------------------------------------
@inputs("fft_c2c")
def complex_transforms(t: Maker) -> Iterator[Sample]:
    """Yield both directions, each norm, one dim, and several dims in any order."""
    for norm in NORMS[1:]:
        for forward in (True, False):
            yield sample(t(5), (0,), norm, forward, note=f"{norm} {forward}")
    yield sample(t(3, 4), (0,), "backward", True)
    yield sample(t(3, 4), (1,), "backward", False)
    yield sample(t(3, 4), (0, 1), "ortho", True)
    yield sample(t(2, 3, 5), (2, 0), "forward", False, note="in another order")
    yield sample(t(2, 17, 3), (1,), "backward", True, note="a prime in the middle")
    yield sample(t(1), (0,), "ortho", True, kind=LENGTH_ONE)
    yield sample(t(0, 3), (1,), "backward", True, kind=ZERO_SIZE)
    yield sample(t(3, 1021), (1,), "ortho", True, kind=LARGE)


@inputs("fft_r2c")
def real_transforms(t: Maker) -> Iterator[Sample]:
    """Yield full and half spectra, of even and odd sizes."""
    for norm in NORMS[1:]:
        for onesided in (True, False):
            yield sample(t(5), (0,), norm, onesided, note=f"{norm} {onesided}")
    yield sample(t(3, 4), (0,), "backward", True)
    yield sample(t(3, 4), (1,), "forward", False)
    yield sample(t(3, 8), (0, 1), "ortho", True)
    yield sample(t(2, 3, 5), (2, 0), "forward", True, note="in another order")
    yield sample(t(2, 17, 3), (1,), "backward", True, note="a prime in the middle")
    yield sample(t(2, 1), (1,), "ortho", True, kind=LENGTH_ONE)
    yield sample(t(0, 3), (1,), "backward", True, kind=ZERO_SIZE)
    yield sample(t(3, 1021), (1,), "ortho", True, kind=LARGE)


def half_spectrum(t: Maker, shape: tuple[int, ...], dims: tuple[int, ...], size: int) -> Array:
    """Return half of the spectrum of real numbers, with ``size`` points in the last of ``dims``.

    For other spectra, libraries treat the imaginary components that must be 0 differently.
    """
    last = dims[-1] % len(shape)
    whole = [size if d == last else n for d, n in enumerate(shape)]
    made: Array = np.fft.rfftn(t.real(*whole).astype(np.float64), axes=dims)
    scale = float(np.sqrt(np.prod([whole[d] for d in dims])))
    return cast(t, made / scale)


@inputs("fft_c2r")
def back_to_real(t: Maker) -> Iterator[Sample]:
    """Yield even and odd sizes, and arbitrary spectra over one dim, for which imaginary components are ignored by
    definition."""
    for norm in NORMS[1:]:
        for size in (6, 7):
            yield sample(half_spectrum(t, (4,), (0,), size), (0,), norm, size, note=f"{norm} {size}")
    yield sample(half_spectrum(t, (3, 4), (0,), 5), (0,), "backward", 5)
    yield sample(half_spectrum(t, (3, 4), (0, 1), 6), (0, 1), "ortho", 6)
    yield sample(half_spectrum(t, (2, 3, 5), (1, 0), 3), (1, 0), "forward", 3, note="in another order")
    yield sample(t(2, 3), (1,), "backward", 4, note="imaginary ends")
    yield sample(t(2, 3), (1,), "backward", 5, note="an imaginary end")
    yield sample(t.array([[1.5], [2.5]]), (1,), "backward", 1, kind=LENGTH_ONE)
    yield sample(t(0, 3), (1,), "backward", 4, kind=ZERO_SIZE)
    yield sample(half_spectrum(t, (3, 511), (1,), 1021), (1,), "ortho", 1021, kind=LARGE)


# -- one dim ----------------------------------------------------------------------------------------------------------
ONE: Final = ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft")
REAL_ONLY: Final = ("fft_rfft", "fft_ihfft", "fft_rfft2", "fft_ihfft2", "fft_rfftn", "fft_ihfftn")
TO_REAL: Final = ("fft_irfft", "fft_hfft", "fft_irfft2", "fft_hfft2", "fft_irfftn", "fft_hfftn")


@inputs(*ONE)
def over_one(t: Maker) -> Iterator[Sample]:
    """Yield each dim, fewer and more points than elements, and each norm."""
    yield sample(t(5))
    yield sample(t(8), note="a power of two")
    for norm in NORMS[1:]:
        yield sample(t(2, 6), norm=norm, note=norm)
    yield sample(t(3, 4), 4, 0, note="padded, the first dim")
    yield sample(t(3, 4), 3, -1, note="cut")
    yield sample(t(2, 17, 3), dim=1, note="the middle")
    yield sample(t(2, 3, 5), 8, -2, "ortho", note="padded, the middle")
    yield sample(t(2, 3, 5), n=1, dim=2, note="one point")
    yield sample(t(2, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)
    yield sample(t(3, 129 if t.operator in TO_REAL else 511), kind=LARGE)


# -- several dims -----------------------------------------------------------------------------------------------------
TWO: Final = tuple(f"{name}2" for name in ONE)
SEVERAL: Final = tuple(f"{name}n" for name in ONE)


def _free(t: Maker, *shape: int) -> Array:
    """Return the input of a transform; for one to real numbers, a spectrum of real numbers, full or half.

    It is a symmetric product of cosines: real, and even in each dim.
    """
    if t.operator not in TO_REAL:
        return t(*shape)
    out = np.ones(shape)
    for d, size in enumerate(shape):
        waves = (
            1.5
            + np.cos(2 * np.pi * np.arange(size) / max(size, 1))
            + np.cos(4 * np.pi * np.arange(size) / max(size, 1))
        )
        out = out * waves.reshape([-1 if i == d else 1 for i in range(len(shape))])
    return t.array(np.round(out) if t.is_integer or t.is_bool else out)


@inputs(*TWO, *SEVERAL)
def over_several(t: Maker) -> Iterator[Sample]:
    """Yield dims and sizes, and each norm; -1 keeps a size."""
    yield sample(_free(t, 3, 4))
    for norm in NORMS[1:]:
        yield sample(_free(t, 2, 6), norm=norm, note=norm)
    yield sample(_free(t, 4, 3), dim=(0,), note="the first")
    yield sample(_free(t, 2, 5, 4), dim=(1, 0), note="in another order")
    yield sample(_free(t, 2, 5, 4), None, (-1, 0), "ortho", note="the last first")
    yield sample(_free(t, 3, 5), (-1, 5), (0, 1), note="a size kept, the other given")
    if t.operator not in TO_REAL:
        yield sample(_free(t, 4, 5), (3, 8), (0, 1), "forward", note="cut and padded")
        yield sample(_free(t, 4, 5), (2, 2), note="cut")
    if t.operator in SEVERAL:
        yield sample(_free(t, 2, 3, 4), note="all dims")
    if t.operator in ("fft_fft2", "fft_fftn", "fft_ifftn"):
        yield sample(_free(t, 2, 3), dim=(), note="no dims")
    yield sample(_free(t, 2, 1), (-1, 1), (0, 1), kind=LENGTH_ONE)
    yield sample(_free(t, 0, 3), dim=(1,), kind=ZERO_SIZE)
    yield sample(_free(t, 33, 63), dim=(0, 1), kind=LARGE)


# -- helpers ----------------------------------------------------------------------------------------------------------
@inputs("fft_fftshift", "fft_ifftshift")
def shifts(t: Maker) -> Iterator[Sample]:
    """Yield even and odd sizes, one dim, several, and all."""
    for dim in (None, 0, -1, (0, 2), ()):
        yield sample(t(3, 4, 5), dim, note=f"{dim}")
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(1), 0, kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)


@mistakes("fft_fftshift", "fft_ifftshift")
def no_shifts(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and duplicate dims."""
    yield sample(t(2, 3), 2, note="dim out of range")
    yield sample(t(2, 3), (0, -2), note="a dim twice")


@inputs("fft.fftfreq", "fft.rfftfreq")
def frequencies(t: Maker) -> Iterator[Sample]:
    """Yield even and odd numbers of points, and none."""
    if t.is_floating or t.is_complex:
        for n, d in ((5, 1.0), (6, 0.5), (1, 2.0), (0, 1.0)):
            yield sample(n, d, dtype=t.dtype, device=HERE, note=f"{n} {d}")


@special("fft_fft", "fft_rfft")
def waves(t: Maker) -> Iterator[Sample]:
    """Yield an impulse, whose spectrum is constant, a constant, whose spectrum has one point, and NaN, which stays in
    its row."""
    yield sample(t.array([1, 0, 0, 0, 0]), note="an impulse")
    yield sample(t.array([1, 1, 1, 1]), note="a constant")
    if t.is_floating:
        yield sample(t.array([[1.0, float("nan"), 2.0], [1.0, 2.0, 3.0]]), note="nan")


# -- mistakes ---------------------------------------------------------------------------------------------------------
@mistakes(*ONE, *TWO, *SEVERAL)
def refused(t: Maker) -> Iterator[Sample]:
    """Yield invalid norms, sizes and dims, half precision, and complex numbers for real ones."""
    real = t.of("float32")
    one = t.operator in ONE
    wrong: Any = 2 if one else (0, 2)
    yield sample(real(2, 4), norm="unitary", note="norm")
    yield sample(real(2, 4), 0 if one else (0, 4), note="no points")
    yield sample(real(2, 4), dim=wrong, note="dim out of range")
    yield sample(t.of("float16")(2, 4), note="half precision")
    yield sample(t.of("bfloat16")(2, 4), note="half precision")
    if one:
        yield sample(real(2, 4), 2.5, note="a fraction of a point")
        yield sample(real(), note="no dims")
    else:
        yield sample(real(2, 4), dim=(1, 1), note="a dim twice")
        yield sample(real(2, 4), (4,), (0, 1), note="sizes for other dims")
    if t.operator in REAL_ONLY:
        yield sample(t.of("complex64")(2, 4), note="complex")


@mistakes(*(name for name in (*TWO, *SEVERAL) if name in REAL_ONLY or name in TO_REAL))
def no_dims(t: Maker) -> Iterator[Sample]:
    """Yield no dims for transforms of real numbers, which need one."""
    yield sample(t.of("float32")(2, 3), dim=(), note="no dims")
