"""Samples of reductions of segments, and of the hash of a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from candelabra.dtypes import COMPLEX, FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

only(lambda d: d.category == FLOATING, "segment_reduce")
only(lambda d: d.category != COMPLEX, "hash_tensor")


@inputs("segment_reduce")
def segments(t: Maker) -> Iterator[Sample]:
    """Yield each reduction, lengths and offsets, the second dim, and segments without elements."""
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield sample(t(6), reduce, lengths=t.index(1, 3, 2), note=reduce)
        yield sample(t(6, 2), reduce, offsets=t.index(0, 2, 6), note=f"{reduce}, offsets")
        yield sample(t(2, 5), reduce, lengths=t.index([2, 3], [4, 1]), axis=1, note=f"{reduce}, rows")
        yield sample(t(4), reduce, lengths=t.index(1, 0, 3), initial=0.5, note=f"{reduce}, initial", gradient=False)
    yield sample(t(4), "sum", lengths=t.index(1, 0, 3), note="an empty segment")
    yield sample(t(6), "sum", lengths=t.index(1, 2), unsafe=True, note="not all elements")
    yield sample(t(1), "mean", lengths=t.index(1), kind=LENGTH_ONE)
    yield sample(t(3, 0), "sum", lengths=t.index(1, 2), kind=ZERO_SIZE)
    yield sample(t(0), "sum", lengths=t.index(0, 0), kind=ZERO_SIZE, gradient=False)
    yield sample(t(20_000, low=0, high=1), "mean", lengths=np.full(100, 200), kind=LARGE)


@mistakes("segment_reduce")
def no_segments(t: Maker) -> Iterator[Sample]:
    """Yield unknown reductions, and lengths whose sum is wrong or that are missing."""
    x = t.of("float32")
    yield sample(x(3), "median", lengths=t.index(3), note="reduce")
    yield sample(x(3), "sum", note="neither lengths nor offsets")
    yield sample(x(3), "sum", lengths=t.index(1, 1), note="too few elements")
    yield sample(x(3), "sum", lengths=t.index([3]), note="another axis")
    yield sample(x(3), "sum", indices=t.index(0, 0, 1), note="indices")


@inputs("hash_tensor")
def hashes(t: Maker) -> Iterator[Sample]:
    """Yield any dims, ``keepdim``, and odd and even sizes."""
    plain: dict[str, Any] = {"gradient": False}
    yield sample(t(7), **plain)
    yield sample(t(3, 5), 1, **plain)
    yield sample(t(2, 3, 4), (0, -1), keepdim=True, **plain)
    yield sample(t(3, 5), 0, mode=0, **plain)
    yield sample(t(), kind=ZERO_DIM, **plain)
    yield sample(t(1), 0, kind=LENGTH_ONE, **plain)
    yield sample(t(0, 3), 0, kind=ZERO_SIZE, **plain)
    yield sample(t(0, 3), 1, kind=ZERO_SIZE, **plain)
    yield sample(t(20_001), kind=LARGE, **plain)


@special("hash_tensor")
def bits(t: Maker) -> Iterator[Sample]:
    """Yield both zeros, whose signs are a bit."""
    if t.is_floating:
        yield sample(t.array([0.0, -0.0, float("inf"), 1.0]))


@mistakes("hash_tensor")
def no_hash(t: Maker) -> Iterator[Sample]:
    """Yield another mode, dims out of range, and complex numbers."""
    x = t.of("float32")
    yield sample(x(3), mode=1, note="mode")
    yield sample(x(3), 1, note="dim out of range")
    yield sample(t.of("complex64")(3), note="complex")
