"""Samples of scattered products and extremes, triangle indices, and reinterpreted bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import candelabra as cd
import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import HERE, LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
REDUCTIONS: Final = ("prod", "amax", "amin")


@inputs("scatter_extreme")
def scattered(t: Maker) -> Iterator[Sample]:
    """Yield several elements for one index, none for others, with and without the old value, and fewer indices."""
    for reduce in REDUCTIONS[:1] if t.is_complex else REDUCTIONS:
        for own in (True, False):
            note = f"{reduce} {own}"
            yield sample(t(3, 2), 0, t.index([0, 0], [2, 1], [0, 1]), t(3, 2), reduce, own, note=note)
            yield sample(t(2, 5), -1, t.indices(2, 8, below=5), t(2, 8), reduce, own, note=f"{note}, the last dim")
        yield sample(t(2, 3, 4), 1, t.indices(1, 3, 2, below=3), t(1, 3, 2), reduce, True, note=f"{reduce}, middle")
    yield sample(t(5), 0, t.index(4, 4, 4, 0), t(4), "prod", False, note="a vector")
    yield sample(t(), 0, t.indices(below=1), t(), "prod", True, kind=ZERO_DIM)
    yield sample(t(1), 0, t.index(0), t(1), "prod", True, kind=LENGTH_ONE)
    yield sample(t(3), 0, t.indices(0, below=1), t(0), "prod", True, kind=ZERO_SIZE)
    yield sample(t(17, 33), 0, t.indices(301, 33, below=17), t(301, 33, low=0.9, high=1.1), "prod", True, kind=LARGE)


@special("scatter_extreme")
def scattered_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN, which is larger than any extreme, and a factor of zero."""
    if not t.is_floating:
        return
    index = t.index(0, 1, 0, 2)
    for reduce in REDUCTIONS:
        source = t.array([1.0, -INF, NAN, INF])
        yield sample(t.array([2.0, 0.0, NAN]), 0, index, source, reduce, True, note=reduce)
        yield sample(t.array([NAN, NAN, 1.0]), 0, index, source, reduce, False, note=f"{reduce}, not what is there")
    yield sample(t.array([2.0, 0.0]), 0, t.index(0, 0, 1), t.array([0.0, 0.0, 3.0]), "prod", True, note="zeros")


@mistakes("scatter_extreme")
def unfit_scatter(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and other sizes."""
    yield sample(t(3), 0, t.index(0, 3), t(2), "prod", True, note="beyond")
    yield sample(t(3), 0, t.index(0, -4), t(2), "prod", True, note="before")
    yield sample(t(3, 2), 0, t.index(0, 1), t(2), "prod", True, note="dims differ")
    yield sample(t(3, 2), 0, t.indices(2, 3, below=2), t(2, 3), "prod", True, note="wider than the tensor")
    yield sample(t(3, 2), 2, t.indices(2, 2, below=2), t(2, 2), "prod", True, note="dim out of range")


@inputs("triangle_indices")
def triangles(t: Maker) -> Iterator[Sample]:
    """Yield both triangles of all proportions, with offsets inside and outside."""
    for dtype in (cd.int64, cd.int32):
        for upper in (False, True):
            for row, col, offset in ((3, 3, 0), (2, 5, 1), (5, 2, -1), (3, 4, 7), (3, 4, -7), (17, 8, -2)):
                yield sample(row, col, offset, upper, dtype=dtype, device=HERE, note=f"{row} {col} {offset} {upper}")
    yield sample(1, 1, 0, False, dtype=cd.int64, device=HERE, kind=LENGTH_ONE)
    yield sample(0, 3, 0, True, dtype=cd.int64, device=HERE, kind=ZERO_SIZE)
    for upper in (False, True):
        yield sample(100, 70, 3, upper, dtype=cd.int64, device=HERE, kind=LARGE)
        yield sample(301, 260, -20, upper, dtype=cd.int64, device=HERE, kind=LARGE)


@inputs("view_dtype", "view_dtype_copy", "view_as_dtype")
def reinterpreted(t: Maker) -> Iterator[Sample]:
    """Yield integers of the same width in any layout, and narrower and wider dtypes, for which the bytes must be
    adjacent."""
    size = t.dtype.itemsize
    same = {1: cd.int8, 2: cd.int16, 4: cd.int32, 8: cd.int64, 16: cd.complex128}[size]
    yield sample(t(2, 3), dtype=same, gradient=False)
    yield sample(t(5), dtype=same, gradient=False)
    for width in (size // 2, size * 2):
        if width in (1, 2, 4, 8):
            other = cd.uint8 if width == 1 else getattr(cd, f"int{8 * width}")
            yield sample(t(2, 4096), dtype=other, kind=LARGE, gradient=False, note=f"{width} bytes each")
    yield sample(t(), dtype=same, kind=ZERO_DIM, gradient=False)
    yield sample(t(1), dtype=same, kind=LENGTH_ONE, gradient=False)
    yield sample(t(0, 2), dtype=same, kind=ZERO_SIZE, gradient=False)
    yield sample(t(20_001), dtype=same, kind=LARGE, gradient=False)


@mistakes("view_dtype", "view_dtype_copy")
def unfit_bytes(t: Maker) -> Iterator[Sample]:
    """Yield sizes in bytes that are not divisible."""
    narrow = t.of("int16")
    yield sample(narrow(2, 3), dtype=cd.int32, note="an odd number")
    yield sample(narrow(), dtype=cd.int64, note="a number")
    yield sample(np.zeros(()), dtype=cd.int16, note="narrower")
