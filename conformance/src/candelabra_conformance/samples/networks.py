"""Samples of embedding and normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample


@inputs("embedding")
def looked_up(t: Maker) -> Iterator[Sample]:
    """Yield indices of every rank with duplicates, a padding row, and gradients scaled by frequency, which are no
    derivatives."""
    yield sample(t(4, 3), t.index(1, 3, 1))
    yield sample(t(5, 2), t.indices(2, 3, below=5), 2, False, gradient=False)
    yield sample(t(5, 2), t.index([0, 4], [3, 1]), 2, note="a padding row that is not met")
    yield sample(t(5, 2), t.index([0, 4], [4, 4]), padding_idx=4, scale_grad_by_freq=True, gradient=False)
    yield sample(t(4, 3), t.indices(2, 2, 3, below=4), -1, True, gradient=False)
    yield sample(t(4, 3), t.index(2).reshape(()), 0, note="one row")
    yield sample(t(4, 3), t.indices(0, below=1), kind="zero-size")
    yield sample(t(4, 0), t.index(1, 2), kind="zero-size")
    yield sample(t(1, 3), t.index(0, 0), kind="length-1")
    yield sample(t(1023, 33), t.indices(300, below=1023), kind="large", gradient=False)


@mistakes("embedding")
def no_such_row(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, a table that is not a matrix, and indices that are not integer tensors."""
    yield sample(t(4, 3), t.index(0, 4), note="beyond")
    yield sample(t(4, 3), t.index(-1), note="negative")
    yield sample(t(4), t.index(0), note="no table")
    yield sample(t(2, 2, 2), t.index(0), note="no table")
    yield sample(t(4, 3), t.of("float32")(2), note="floating indices")
    yield sample(t(4, 3), 2, note="a number")


SHAPES = (
    ((3, 5), (1,), (5,)),
    ((2, 3, 4), (1, 2), (3, 4)),
    ((2, 3, 4), (2,), (4,)),
    ((4, 3), (0,), (3,)),
    ((3, 2, 5), (0, 2), (2, 1)),
    ((2, 3, 2, 4), (2, 3), (3, 1, 1)),
    ((5, 17), (1,), (17,)),
)
"""The input, the dims that are normalised, the weight and bias."""
SCARCE = (
    ((0, 3), (1,), (3,), "zero-size"),
    ((1, 7), (1,), (7,), "length-1"),
    ((33, 1023), (1,), (1023,), "large"),
    ((2, 5, 33, 31), (0, 2, 3), (5, 1, 1), "large"),
)


@inputs("normalize")
def normalized(t: Maker) -> Iterator[Sample]:
    """Yield layer, batch, group and instance normalisation: other dims, other affine shapes, with and without weight
    and bias."""
    for number, (shape, dims, affine) in enumerate(SHAPES):
        eps = (1e-5, 0.1)[number % 2]
        yield sample(t(*shape), t(*affine), t(*affine), dims, eps)
        weight = t(*affine) if number % 3 == 0 else None
        bias = t(*affine) if number % 3 == 1 else None
        yield sample(t(*shape), weight, bias, dims, eps)
    for shape, dims, affine, kind in SCARCE:
        yield sample(t(*shape), t(*affine), t(*affine), dims, 1e-5, kind=kind, gradient=kind == "length-1")


def _statistics(t: Maker, x: Any, dims: tuple[int, ...]) -> tuple[Any, Any]:
    """Return mean and reciprocal deviation, as ``normalize`` returns them."""
    wide = x.real.astype(np.float64)
    mean = wide.mean(dims, keepdims=True) if wide.size else np.zeros((0, 1))
    variance = ((wide - mean) ** 2).mean(dims, keepdims=True) if wide.size else np.zeros((0, 1))
    return t.array(mean), t.array(1 / np.sqrt(variance + 0.01))


@inputs("normalize_backward")
def normalized_backwards(t: Maker) -> Iterator[Sample]:
    """Yield the statistics of the input, as ``normalize`` returns them."""
    for shape, dims, affine, kind in (*((*case, "ordinary") for case in SHAPES), *SCARCE):
        x = t(*shape)
        statistics = _statistics(t, x, dims)
        for weight in (None, t(*affine)):
            yield sample(t(*shape), x, *statistics, weight, dims, kind=kind, gradient=kind == "ordinary")


@inputs("normalize_along")
def normalized_along(t: Maker) -> Iterator[Sample]:
    """Yield the statistics of the input, as ``normalize`` returns them."""
    for shape, dims, _, kind in (*((*case, "ordinary") for case in SHAPES), *SCARCE):
        x = t(*shape)
        yield sample(t(*shape), x, *_statistics(t, x, dims), dims, kind=kind, gradient=kind == "ordinary")


@inputs("normalize_jointly")
def normalized_jointly(t: Maker) -> Iterator[Sample]:
    """Yield all choices of dims, with and without weight and bias."""
    for number, (shape, dims, affine) in enumerate(SHAPES):
        eps = (1e-2, 0.1)[number % 2]
        yield sample(t(*shape), t(*shape), t(*affine), t(*affine), dims, eps)
        weight = t(*affine) if number % 3 == 0 else None
        bias = t(*affine) if number % 3 == 1 else None
        yield sample(t(*shape), t(*shape), weight, bias, dims, eps)
    for shape, dims, affine, kind in SCARCE:
        yield sample(t(*shape), t(*shape), t(*affine), t(*affine), dims, 1e-2, kind=kind, gradient=kind == "length-1")


@inputs("normalize_parameters_backward")
def normalized_parameters(t: Maker) -> Iterator[Sample]:
    """Yield the dims along which weight and bias broadcast, kept or not: other ones than the statistics in a layer
    norm, and the same in a batch norm."""
    for shape, dims, affine, kind in (*((*case, "ordinary") for case in SHAPES), *SCARCE):
        x = t(*shape)
        sizes = (1,) * (len(shape) - len(affine)) + affine
        over = tuple(d for d, size in enumerate(sizes) if size == 1)
        for keepdim in (True, False):
            statistics = _statistics(t, x, dims)
            yield sample(t(*shape), x, *statistics, over, keepdim, kind=kind, gradient=kind == "ordinary")


@mistakes("normalize")
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield weights and biases that do not broadcast, and no input."""
    yield sample(t(2, 3), t(4), None, (1,), 1e-5, note="weight")
    yield sample(t(2, 3), None, t(2), (1,), 1e-5, note="bias")
    yield sample(None, None, None, (1,), 1e-5, note="no input")


@mistakes("normalize_backward")
def unfit_backwards(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match."""
    yield sample(t(2, 4), t(2, 3), t(2, 1), t(2, 1), None, (1,), note="gradient")
    yield sample(t(2, 3), t(2, 3), t(2, 1), t(2, 1), t(4), (1,), note="weight")


@mistakes("normalize_along")
def unfit_tangents(t: Maker) -> Iterator[Sample]:
    """Yield a tangent of another shape."""
    yield sample(t(2, 4), t(2, 3), t(2, 1), t(2, 1), (1,), note="tangent")


@mistakes("normalize_jointly")
def unfit_jointly(t: Maker) -> Iterator[Sample]:
    """Yield a tangent of another shape, and a weight and a bias that do not broadcast to the input."""
    yield sample(t(2, 4), t(2, 3), None, None, (1,), 1e-5, note="tangent")
    yield sample(t(2, 3), t(2, 3), t(4), None, (1,), 1e-5, note="weight")
    yield sample(t(2, 3), t(2, 3), None, t(2, 2, 3), (1,), 1e-5, note="bias")


@mistakes("normalize_parameters_backward")
def unfit_parameters(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match."""
    yield sample(t(2, 4), t(2, 3), t(2, 1), t(2, 1), (0,), True, note="gradient")


@special("normalize")
def without_variance(t: Maker) -> Iterator[Sample]:
    """Yield constant rows, which become exactly 0, a NaN, which stays in its row, and large numbers, which keep their
    variance."""
    yield sample(t.array(np.full((2, 4), 3.0)), None, None, (1,), 1e-5, note="constant")
    nan = float("nan")
    yield sample(t.array([[1.0, nan, 2.0], [1.0, 2.0, 4.0]]), None, None, (1,), 1e-5, note="NaN")
    if t.dtype.itemsize > 2:
        yield sample(t.array([[1000.0, 1001.0, 1002.0, 1005.0]]), None, None, (1,), 1e-5, note="far from 0")
