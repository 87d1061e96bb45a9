"""Samples of short-time Fourier transforms, and of sampling images at the points of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.conditioned import cast, factorizable
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.many_rows import PLAIN, cycle
from candelabra_conformance.samples.registry import inputs, mistakes, only, sizes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

only(factorizable, "stft")
only(lambda d: d.is_complex, "istft")


# -- short-time Fourier transforms ------------------------------------------------------------------------------------
@inputs("stft")
def spectrograms(t: Maker) -> Iterator[Sample]:
    """Yield each padding mode, windows of full length and shorter ones, one half of the frequencies and all."""
    window = t.real(8, low=0.3, high=1.0)  # complex signals have all frequencies
    for mode in ("reflect", "constant", "replicate", "circular"):
        yield sample(t(2, 20), 8, 3, window=window, pad_mode=mode, return_complex=True, note=mode)
    yield sample(t(20), 8, return_complex=True, note="a single signal")
    yield sample(t(2, 20), 8, 2, 5, window[:5], return_complex=True, note="a shorter window")
    yield sample(t(20), 7, 2, 4, center=False, return_complex=True, note="no padding")
    yield sample(t(20), 8, 2, 4, window[:4], False, return_complex=True, align_to_window=True, note="aligned")
    yield sample(t(20), 8, normalized=True, onesided=False, return_complex=True, note="all frequencies")
    if t.is_complex:
        yield sample(t(20), 8, note="which result is not said")
    yield sample(t(4), 4, 2, center=False, return_complex=True, kind=LENGTH_ONE)
    yield sample(t(0, 20), 8, return_complex=True, kind=ZERO_SIZE)


@mistakes("stft")
def no_spectrograms(t: Maker) -> Iterator[Sample]:
    """Yield invalid signals, sizes, windows and padding modes."""
    x, complex_ = t.of("float32"), t.of("complex64")
    whole = {"return_complex": True}
    yield sample(x(20), 8, note="which result is not said")
    yield sample(t.of("int64")(20), 8, note="integers", **whole)
    yield sample(x(2, 2, 20), 8, note="three dims", **whole)
    yield sample(x(20), 8, 0, note="no hop", **whole)
    yield sample(x(20), 8, win_length=9, note="a long window", **whole)
    yield sample(x(20), 8, window=x(7), note="a window of another size", **whole)
    yield sample(x(20), 30, center=False, note="a short signal", **whole)
    yield sample(x(20), 60, note="too little to reflect", **whole)
    yield sample(x(20), 60, pad_mode="circular", note="too little to wrap", **whole)
    yield sample(x(20), 8, pad_mode="odd", note="a padding", **whole)
    yield sample(x(20), 8, align_to_window=True, note="aligned and centred", **whole)
    yield sample(complex_(20), 8, onesided=True, note="half of a complex spectrum")
    yield sample(x(20), "8", note="a text", **whole)


def _spectra(t: Maker, n: int, count: int, *lead: int) -> Array:
    """Return spectra of real windows, whose ends are real."""
    return cast(t, np.fft.rfft(t.real(*lead, count, n).astype(np.float64)).swapaxes(-1, -2))


@inputs("istft")
def signals(t: Maker) -> Iterator[Sample]:
    """Yield half and full spectra, truncated ones, windows of full length and shorter ones."""
    window = t.real(8, low=0.5, high=1.0)
    yield sample(_spectra(t, 8, 6), 8, 3, window=window)
    yield sample(_spectra(t, 8, 6, 2), 8, 2, note="a batch")
    yield sample(_spectra(t, 8, 6), 8, 2, 6, window[:6], note="a shorter window")
    yield sample(_spectra(t, 8, 6), 8, 3, length=11, note="cut")
    yield sample(_spectra(t, 8, 6), 8, 4, center=False, normalized=True, note="not centred")
    yield sample(t(8, 5), 8, 3, onesided=False, note="all frequencies, of which a half is read")
    yield sample(t(2, 8, 5), 8, 3, return_complex=True, note="a complex signal")
    yield sample(_spectra(t, 4, 1), 4, 2, center=False, kind=LENGTH_ONE)


@mistakes("istft")
def no_signals(t: Maker) -> Iterator[Sample]:
    """Yield spectra, sizes and windows that do not match."""
    x, real = t.of("complex64"), t.of("float32")
    yield sample(real(5, 4), 8, note="real")
    yield sample(x(5, 0), 8, note="no windows")
    yield sample(x(5), 8, note="one dim")
    yield sample(x(5, 4), 12, note="other frequencies")
    yield sample(x(5, 4), 9, onesided=False, note="half of the frequencies")
    yield sample(x(5, 4), 8, 9, note="a long hop")
    yield sample(x(5, 4), 8, win_length=9, note="a long window")
    yield sample(x(5, 4), 8, window=real(7), note="a window of another size")
    yield sample(x(5, 4), 8, window=real.array([0.0] * 8), note="windows that cover nothing")
    yield sample(x(5, 4), 8, return_complex=True, note="half of a complex spectrum")
    yield sample(x(5, 4), 8, window=x(8), note="a complex window")


# -- grids ------------------------------------------------------------------------------------------------------------
LINEAR, NEAREST, CUBIC = 0, 1, 2
PADDINGS: Final = (0, 1, 2)


def _points(t: Maker, *shape: int) -> Array:
    """Return points inside and outside, which are not near a kink of an interpolation."""
    return t(*shape, low=-1.37, high=1.41)


@inputs("grid_sampler")
def grids(t: Maker) -> Iterator[Sample]:
    """Yield each interpolation with each padding mode, for images and volumes."""
    for mode, padding in product((LINEAR, NEAREST, CUBIC), PADDINGS):
        align = bool((mode + padding) % 2)
        yield _grid(t, (2, 3, 4, 5), (2, 2, 3, 2), mode, padding, align)
    yield _grid(t, (2, 2, 3, 4, 2), (2, 2, 1, 3, 3), LINEAR, 1, True)
    yield sample(t(1, 1, 1, 1), _points(t, 1, 1, 1, 2), LINEAR, 1, False, kind=LENGTH_ONE, gradient=False)
    yield sample(t(0, 2, 3, 3), _points(t, 0, 2, 2, 2), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 2, 3, 3), _points(t, 2, 0, 2, 2), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 3, 9, 11), _points(t, 2, 7, 9, 2), LINEAR, 0, False, kind=LARGE, gradient=False)


def _grid(t: Maker, shape: tuple[int, ...], points: tuple[int, ...], mode: int, padding: int, align: bool) -> Sample:
    options: dict[str, Any] = {"gradient": t.dtype.itemsize > 2, "note": f"{len(shape) - 2}d {mode} {padding} {align}"}
    return sample(t(*shape), _points(t, *points), mode, padding, align, core=2, **options)


@inputs("grid_sampler_adjoint")
def weights_of_grids(t: Maker) -> Iterator[Sample]:
    """Yield each interpolation with each padding mode, for images and volumes."""
    for mode, padding in product((LINEAR, NEAREST, CUBIC), PADDINGS):
        align = bool((mode + padding) % 2)
        yield _adjoint(t, (2, 3, 2, 3), (4, 5), mode, padding, align)
    yield _adjoint(t, (2, 2, 1, 3, 3), (3, 4, 2), LINEAR, 1, True)
    yield sample(t(0, 2, 2, 2), _points(t, 0, 2, 2, 2), (3, 3), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 0, 2, 2), _points(t, 2, 2, 2, 2), (3, 3), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 3, 7, 13), _points(t, 2, 7, 13, 2), (4, 3), LINEAR, 0, False, kind=LARGE, gradient=False)


def _adjoint(t: Maker, shape: tuple[int, ...], sizes: tuple[int, ...], mode: int, padding: int, align: bool) -> Sample:
    options: dict[str, Any] = {"gradient": t.dtype.itemsize > 2, "note": f"{len(sizes)}d {mode} {padding} {align}"}
    points = _points(t, shape[0], *shape[2:], len(sizes))
    return sample(t(*shape), points, sizes, mode, padding, align, core=2, **options)


@inputs("grid_sampler_grid_gradient")
def slopes_of_grids(t: Maker) -> Iterator[Sample]:
    """Yield each interpolation with each padding mode, for images and volumes."""
    for mode, padding in product((LINEAR, NEAREST, CUBIC), PADDINGS):
        align = bool((mode + padding) % 2)
        yield _slopes(t, (2, 3, 2, 3), (4, 5), mode, padding, align)
    yield _slopes(t, (2, 2, 1, 3, 3), (3, 4, 2), LINEAR, 1, True)
    yield sample(t(0, 2, 2, 2), t(0, 2, 3, 3), _points(t, 0, 2, 2, 2), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 0, 2, 2), t(2, 0, 3, 3), _points(t, 2, 2, 2, 2), LINEAR, 0, False, kind=ZERO_SIZE)
    yield sample(t(2, 3, 7, 13), t(2, 3, 4, 3), _points(t, 2, 7, 13, 2), LINEAR, 0, False, kind=LARGE, gradient=False)


def _slopes(t: Maker, shape: tuple[int, ...], sizes: tuple[int, ...], mode: int, padding: int, align: bool) -> Sample:
    options: dict[str, Any] = {"gradient": t.dtype.itemsize > 2, "note": f"{len(sizes)}d {mode} {padding} {align}"}
    points = _points(t, shape[0], *shape[2:], len(sizes))
    return sample(t(*shape), t(*shape[:2], *sizes), points, mode, padding, align, core=2, **options)


@sizes("grid_sampler")
def many_points(t: Maker) -> Iterator[Sample]:
    """Yield more points, in an image of more elements, than a grid has blocks along a dim; each is an element."""
    size = 257
    centres = np.linspace(-1, 1, size)
    points = np.stack(np.meshgrid(centres, centres[::-1]), -1)
    yield sample(cycle(t, 1, 1, size, size), t.array(points[None]), LINEAR, 0, True, **PLAIN)


@inputs("grid_sampler_2d")
def image_grids(t: Maker) -> Iterator[Sample]:
    """Yield images."""
    for mode, padding in ((LINEAR, 0), (CUBIC, 1)):
        yield _grid(t, (2, 3, 4, 5), (2, 2, 3, 2), mode, padding, bool(padding))
    yield sample(t(0, 2, 3, 3), _points(t, 0, 2, 2, 2), LINEAR, 0, False, kind=ZERO_SIZE)


@inputs("grid_sampler_3d")
def volume_grids(t: Maker) -> Iterator[Sample]:
    """Yield volumes."""
    for mode, padding in ((LINEAR, 0), (NEAREST, 1), (LINEAR, 2)):
        yield _grid(t, (2, 2, 3, 4, 2), (2, 2, 1, 3, 3), mode, padding, bool(padding))
    yield sample(t(0, 2, 3, 3, 3), _points(t, 0, 2, 2, 2, 3), LINEAR, 0, False, kind=ZERO_SIZE)


@mistakes("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def no_grids(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match."""
    volumes = t.operator == "grid_sampler_3d"
    space: tuple[int, ...] = (3, 4, 2) if volumes else (3, 4)
    x, rank = t.of("float32"), len(space)
    yield sample(x(3, 4), x(3, 4), LINEAR, 0, False, note="no image")
    yield sample(x(2, 1, *space), x(1, *space, rank), LINEAR, 0, False, note="batches")
    yield sample(x(2, 1, *space), x(2, *space, 4), LINEAR, 0, False, note="coordinates")
    yield sample(x(2, 1, *space[:-1], 0), x(2, *space, rank), LINEAR, 0, False, note="no elements")
    yield sample(x(1, 1, 2, 3, 4), x(1, 2, 3, 4, 3), CUBIC, 0, False, note="a cubic volume, or no image")
