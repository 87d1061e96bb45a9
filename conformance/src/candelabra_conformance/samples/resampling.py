"""Samples of interpolation: the product with a banded matrix along a dim, and ``interpolate`` in every mode."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

DEPRECATED = tuple(f"nn.functional.{n}" for n in ("upsample", "upsample_nearest", "upsample_bilinear"))
only(lambda d: d.category == FLOATING, "resample", "resample_adjoint")

HALVES = [[0.25, 0.75], [0.5, 0.5], [1, 0]]


@inputs("resample")
def banded(t: Maker) -> Iterator[Sample]:
    """Yield each dim, one weight per row, rows that share columns, columns without a row, and a large matrix."""
    halves = t.array(HALVES)
    yield sample(t(2, 4, 3), 1, t.index(0, 1, 2), halves)
    yield sample(t(3, 5), -1, t.index(0, 1, 3), halves)
    yield sample(t(4, 2), 0, t.index(0, 0, 1, 1), t(4, 1))
    yield sample(t(2, 6), 1, t.index(1, 1, 1), t.array([[0.5, 0, 0.25], [0, 1, 0], [0, -1, 2]]))
    yield sample(t(1), 0, t.index(0, 0), t(2, 1), kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, t.index(0, 1), halves[:2], kind=ZERO_SIZE)
    start = t.index(*[min(i // 2, 98) for i in range(200)])
    yield sample(t(3, 100, 2), 1, start, t(200, 2), kind=LARGE, gradient=False)


@inputs("resample_adjoint")
def transposed(t: Maker) -> Iterator[Sample]:
    """Yield the transposes of the same matrices."""
    halves = t.array(HALVES)
    yield sample(t(2, 3, 3), 1, t.index(0, 1, 2), halves, 4)
    for dim in (0, -1):
        yield sample(t(3, 3), dim, t.index(0, 1, 3), halves, 5, note=f"square, {dim}")
    yield sample(t(4, 2), 0, t.index(0, 0, 1, 1), t(4, 1), 4)
    yield sample(t(2, 3), 1, t.index(1, 1, 1), t.array([[0.5, 0, 0.25], [0, 1, 0], [0, -1, 2]]), 6)
    yield sample(t(2), 0, t.index(0, 0), t(2, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 2), 1, t.index(0, 1), halves[:2], 3, kind=ZERO_SIZE)
    start = t.index(*[min(i // 2, 98) for i in range(200)])
    yield sample(t(3, 200, 2), 1, start, t(200, 2), 100, kind=LARGE, gradient=False)


@mistakes("resample")
def no_dims(t: Maker) -> Iterator[Sample]:
    """Yield a dim that does not exist, and an argument that is not a tensor."""
    yield sample(t(2, 3), 2, t.index(0), t(1, 1))
    yield sample(None, 0, t.index(0), t(1, 1))


@mistakes("resample_adjoint")
def no_dims_of_gradients(t: Maker) -> Iterator[Sample]:
    """Yield a dim that does not exist, and an argument that is not a tensor."""
    yield sample(t(2, 1), 2, t.index(0), t(1, 1), 3)
    yield sample(None, 0, t.index(0), t(1, 1), 3)


@special("resample")
def not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN and infinities, which affect only the rows with a weight for them."""
    inf, nan = float("inf"), float("nan")
    x = t.array([[1, nan, 2, 3], [inf, 1, 2, 3], [1, 2, 3, -inf]])
    yield sample(x, 1, t.index(0, 0, 2), t.array(HALVES))


@special("resample_adjoint")
def gradients_that_are_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN and infinities, which affect only the elements with a weight for them."""
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([[1, nan, 2], [inf, 1, 2], [1, 2, -inf]]), 1, t.index(0, 0, 2), t.array(HALVES), 4)


@inputs("nn.functional.interpolate")
def resized(t: Maker) -> Iterator[Sample]:
    """Yield every mode, larger and smaller, by sizes and by factors."""
    if not t.is_floating:
        return
    line, image, volume = t(2, 2, 5), t(2, 2, 5, 4), t(1, 2, 3, 4, 2)
    for mode in ("nearest", "nearest-exact", "area"):
        yield sample(line, 7, mode=mode, note=mode)
        yield sample(image, (3, 6), mode=mode, note=mode)
        yield sample(volume, scale_factor=1.5, mode=mode, note=mode)
    for x, mode in ((line, "linear"), (image, "bilinear"), (image, "bicubic"), (volume, "trilinear")):
        yield sample(x, 3, mode=mode, note=mode)
        yield sample(x, scale_factor=1.7, mode=mode, align_corners=True, note=mode)
        yield sample(x, scale_factor=1.7, mode=mode, recompute_scale_factor=True, note=mode)
    if t.dtype.itemsize > 2:
        for mode in ("bilinear", "bicubic", "lanczos"):
            yield sample(image, (2, 9), mode=mode, antialias=True, note=f"{mode}, antialias")
    yield sample(image, (5, 4), note="the same size")


@inputs(*DEPRECATED)
def enlarged(t: Maker) -> Iterator[Sample]:
    """Yield a size and a factor."""
    if t.is_floating:
        yield sample(t(2, 2, 3, 4), 5)
        yield sample(t(1, 2, 3, 4), scale_factor=2)


@mistakes("nn.functional.interpolate")
def sizes_and_modes(t: Maker) -> Iterator[Sample]:
    """Yield sizes and factors that contradict each other, and modes for other dims."""
    x = t.of("float32")(1, 2, 4, 4)
    yield sample(x, note="no size")
    yield sample(x, 3, 2.0, note="size and factor")
    yield sample(x, (3, 3, 3), note="too many sizes")
    yield sample(x, 0, note="an empty result")
    yield sample(x, 3, mode="linear", note="mode")
    yield sample(x, 3, mode="nearest", align_corners=True, note="align_corners")
    yield sample(t.of("int64")(1, 2, 4), 3, note="integers")


@mistakes(*DEPRECATED)
def no_sizes(t: Maker) -> Iterator[Sample]:
    """Yield neither size nor factor."""
    yield sample(t.of("float32")(1, 2, 4, 4))
