"""Samples of reading and writing diagonals of matrices."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("diag")
def from_and_to_matrices(t: Maker) -> Iterator[Sample]:
    """Yield matrices and vectors."""
    yield sample(t(3, 4))
    yield sample(t(4, 3), -2)
    yield sample(t(3))
    yield sample(t(3), 1)
    yield sample(t(2, 5), diagonal=3)
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")
    yield sample(t(129, 65), 5, kind="large")


@mistakes("diag", "trace")
def neither_vector_nor_matrix(t: Maker) -> Iterator[Sample]:
    """Yield 0-d tensors and batches."""
    yield sample(t(), note="a number")
    yield sample(t(2, 3, 4), note="a batch")


@inputs("diag_embed")
def put_on_diagonals(t: Maker) -> Iterator[Sample]:
    """Yield vectors, batches of vectors, and any two dims."""
    yield sample(t(3))
    yield sample(t(2, 3), 1)
    yield sample(t(2, 3), -2, 0, 2)
    yield sample(t(2, 3, 2), 0, -1, 0)
    yield sample(t(2, 0), kind="zero-size")
    yield sample(t(1), 1, kind="length-1")
    yield sample(t(129), 3, kind="large")


@mistakes("diag_embed")
def put_nowhere(t: Maker) -> Iterator[Sample]:
    """Yield one dim twice, a dim out of range, and a 0-d tensor."""
    yield sample(t(3), 0, 1, 1, note="twice")
    yield sample(t(3), 0, 0, 2, note="out of range")
    yield sample(t(), note="a number")


@inputs("diagflat")
def put_on_one_diagonal(t: Maker) -> Iterator[Sample]:
    """Yield any shape."""
    yield sample(t(3))
    yield sample(t(2, 3), 1)
    yield sample(t(2, 2, 2), -3)
    yield sample(t(), kind="0-d")
    yield sample(t(0), kind="zero-size")
    yield sample(t(1), 1, kind="length-1")


@inputs("trace")
def summed_along_the_diagonal(t: Maker) -> Iterator[Sample]:
    """Yield square, wide and high matrices."""
    yield sample(t(3, 3))
    yield sample(t(2, 5))
    yield sample(t(5, 2))
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1, 1), kind="length-1")
    yield sample(t(129, 200), kind="large")


@inputs("block_diag")
def blocks(t: Maker) -> Iterator[Sample]:
    """Yield matrices, vectors and numbers."""
    yield sample(t(2, 3), t(1, 2))
    yield sample(t(3), t(2, 2), t())
    yield sample(t(2, 2))
    yield sample(t(0, 2), t(1, 1), kind="zero-size")


@mistakes("block_diag")
def no_blocks(t: Maker) -> Iterator[Sample]:
    """Yield batches."""
    yield sample(t(2, 3), t(2, 3, 4), note="a batch")


@inputs("Tensor.fill_diagonal_")
def written_to_the_diagonal(t: Maker) -> Iterator[Sample]:
    """Yield wide, high and cubic tensors, and a diagonal that wraps."""
    value = True if t.is_bool else 3 if t.is_integer else 1.5
    yield sample(t(3, 4), value, gradient=False)
    yield sample(t(7, 3), value, True, gradient=False)
    yield sample(t(2, 2, 2), 0, gradient=False)
    yield sample(t(0, 3), value, kind="zero-size", gradient=False)


@mistakes("Tensor.fill_diagonal_")
def no_diagonal(t: Maker) -> Iterator[Sample]:
    """Yield vectors, and batches of unequal sizes."""
    yield sample(t(3), 1, note="a vector")
    yield sample(t(2, 3, 2), 1, note="unequal")
