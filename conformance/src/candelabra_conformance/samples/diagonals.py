"""Diagonals taken from matrices and put into them."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("diag")
def from_and_to_matrices(t: Maker) -> Iterator[Sample]:
    """Of matrices their diagonals, of vectors the matrices."""
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
    """Numbers and batches."""
    yield sample(t(), note="a number")
    yield sample(t(2, 3, 4), note="a batch")


@inputs("diag_embed")
def put_on_diagonals(t: Maker) -> Iterator[Sample]:
    """Of vectors, of batches of them, to any two dims."""
    yield sample(t(3))
    yield sample(t(2, 3), 1)
    yield sample(t(2, 3), -2, 0, 2)
    yield sample(t(2, 3, 2), 0, -1, 0)
    yield sample(t(2, 0), kind="zero-size")
    yield sample(t(1), 1, kind="length-1")
    yield sample(t(129), 3, kind="large")


@mistakes("diag_embed")
def put_nowhere(t: Maker) -> Iterator[Sample]:
    """One dim twice, a dim that is not there, a number."""
    yield sample(t(3), 0, 1, 1, note="twice")
    yield sample(t(3), 0, 0, 2, note="out of range")
    yield sample(t(), note="a number")


@inputs("diagflat")
def put_on_one_diagonal(t: Maker) -> Iterator[Sample]:
    """Any shape."""
    yield sample(t(3))
    yield sample(t(2, 3), 1)
    yield sample(t(2, 2, 2), -3)
    yield sample(t(), kind="0-d")
    yield sample(t(0), kind="zero-size")
    yield sample(t(1), 1, kind="length-1")


@inputs("trace")
def summed_along_the_diagonal(t: Maker) -> Iterator[Sample]:
    """Matrices of every proportion."""
    yield sample(t(3, 3))
    yield sample(t(2, 5))
    yield sample(t(5, 2))
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1, 1), kind="length-1")
    yield sample(t(129, 200), kind="large")


@inputs("block_diag")
def blocks(t: Maker) -> Iterator[Sample]:
    """Matrices, vectors, numbers."""
    yield sample(t(2, 3), t(1, 2))
    yield sample(t(3), t(2, 2), t())
    yield sample(t(2, 2))
    yield sample(t(0, 2), t(1, 1), kind="zero-size")


@mistakes("block_diag")
def no_blocks(t: Maker) -> Iterator[Sample]:
    """Batches."""
    yield sample(t(2, 3), t(2, 3, 4), note="a batch")


@inputs("Tensor.fill_diagonal_")
def written_to_the_diagonal(t: Maker) -> Iterator[Sample]:
    """Wide, high and cubic; begun anew below."""
    value = True if t.is_bool else 3 if t.is_integer else 1.5
    yield sample(t(3, 4), value, gradient=False)
    yield sample(t(7, 3), value, True, gradient=False)
    yield sample(t(2, 2, 2), 0, gradient=False)
    yield sample(t(0, 3), value, kind="zero-size", gradient=False)


@mistakes("Tensor.fill_diagonal_")
def no_diagonal(t: Maker) -> Iterator[Sample]:
    """Vectors, and batches of unequal sizes."""
    yield sample(t(3), 1, note="a vector")
    yield sample(t(2, 3, 2), 1, note="unequal")
