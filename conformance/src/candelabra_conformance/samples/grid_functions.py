"""Samples of ``grid_sample`` and of the grids of affine maps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import ZERO_SIZE, Sample, sample

AFFINE: Final = ("affine_grid_generator", "nn.functional.affine_grid")
only(lambda d: d.category == FLOATING, "affine_grid_generator")


@inputs("nn.functional.grid_sample")
def sampled_grids(t: Maker) -> Iterator[Sample]:
    """Yield every mode with every kind of padding."""
    if not t.is_floating:
        return
    smooth = t.dtype.itemsize > 2
    for mode, padding in product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")):
        points = t(2, 2, 3, 2, low=-1.37, high=1.41)
        yield sample(t(2, 3, 4, 5), points, mode, padding, mode == "nearest", gradient=smooth, core=2)
    points = t(2, 2, 1, 3, 3, low=-1.37, high=1.41)
    yield sample(t(2, 2, 3, 4, 2), points, "bilinear", "border", True, gradient=smooth, core=2)


@inputs("affine_grid_generator")
def affine_maps(t: Maker) -> Iterator[Sample]:
    """Yield images and volumes with both meanings of the corners."""
    yield sample(t(2, 2, 3), (2, 3, 4, 5), False)
    yield sample(t(2, 2, 3), (2, 1, 3, 2), True)
    yield sample(t(1, 3, 4), (1, 2, 3, 4, 2), False)
    yield sample(t(2, 3, 4), (2, 2, 2, 3, 2), True)
    yield sample(t(0, 2, 3), (0, 3, 4, 5), False, kind=ZERO_SIZE)


@inputs("nn.functional.affine_grid")
def affine_grids(t: Maker) -> Iterator[Sample]:
    """Yield an image and a volume."""
    if t.is_floating:
        yield sample(t(2, 2, 3), (2, 3, 4, 5), False)
        yield sample(t(2, 3, 4), (2, 2, 2, 3, 2), True)


@mistakes("nn.functional.grid_sample")
def unknown_modes(t: Maker) -> Iterator[Sample]:
    """Yield modes that do not exist, and another dtype."""
    x = t.of("float32")
    yield sample(x(1, 1, 2, 2), x(1, 2, 2, 2), "linear", "zeros", False, note="mode")
    yield sample(x(1, 1, 2, 2), x(1, 2, 2, 2), "bilinear", "wrap", False, note="padding")
    yield sample(x(1, 1, 2, 2), t.of("float64")(1, 2, 2, 2), "bilinear", "zeros", False, note="dtypes")


@mistakes(*AFFINE)
def no_affine_maps(t: Maker) -> Iterator[Sample]:
    """Yield matrices of another shape, and a size of another length."""
    x = t.of("float32")
    yield sample(x(2, 2, 3), (2, 3, 4, 5, 6), False, note="volume")
    yield sample(x(2, 3, 3), (2, 3, 4, 5), False, note="shape")
    yield sample(x(2, 2, 3), (2, 3, 4), False, note="size")
