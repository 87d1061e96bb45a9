"""Samples of broadcasting several tensors, of grids, and of adding dims."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("broadcast_shapes")
def shapes(t: Maker) -> Iterator[Sample]:
    """Yield tuples, lists and ints."""
    if t.dtype.name == "float32":
        yield sample((2, 1), (3,), gradient=False)
        yield sample([1, 3], 3, (2, 1), gradient=False)
        yield sample((), gradient=False)
        yield sample((0, 1), (4,), gradient=False)


@mistakes("broadcast_shapes")
def shapes_that_do_not_broadcast(t: Maker) -> Iterator[Sample]:
    """Yield sizes that differ, and negative ones."""
    yield sample((2,), (3,), note="sizes")
    yield sample((-1,), note="negative")


@inputs("broadcast_tensors")
def tensors_that_broadcast(t: Maker) -> Iterator[Sample]:
    """Yield one tensor, two and three."""
    yield sample(t(3), t(2, 1))
    yield sample(t(2, 3))
    yield sample(t(1, 3), t(2, 1), t(4, 1, 1))
    yield sample(t(), t(2), kind="0-d")
    yield sample(t(0, 1), t(3), kind="zero-size")


@mistakes("broadcast_tensors")
def tensors_that_do_not(t: Maker) -> Iterator[Sample]:
    """Yield sizes that differ."""
    yield sample(t(2), t(3), note="sizes")


@inputs("meshgrid")
def grids(t: Maker) -> Iterator[Sample]:
    """Yield one vector, two and three, numbers, and both orders."""
    yield sample(t(2), t(3), indexing="ij")
    yield sample(t(2), t(3), t(4), indexing="xy")
    yield sample(t(5), t(1))
    yield sample(t(3))
    yield sample(t(), t(2), kind="0-d")
    yield sample(t(0), t(2), kind="zero-size")


@mistakes("meshgrid")
def no_grid(t: Maker) -> Iterator[Sample]:
    """Yield matrices, and an unknown order."""
    yield sample(t(2, 3), note="a matrix")
    yield sample(t(2), indexing="yx", note="another order")


@inputs("atleast_1d", "atleast_2d", "atleast_3d")
def more_dims(t: Maker) -> Iterator[Sample]:
    """Yield one tensor of any rank, and several."""
    yield sample(t(3))
    yield sample(t(2, 3))
    yield sample(t(2, 3, 4))
    yield sample(t(2), t(2, 3))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
