"""Samples of joining, flipping, rolling and triangles."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("cat")
def joined(t: Maker) -> Iterator[Sample]:
    """Yield one tensor, two and many, different sizes along the dim, an empty tensor, and the same tensor twice."""
    yield sample((t(2, 3), t(4, 3)))
    yield sample([t(2, 1), t(2, 3), t(2, 2)], 1)
    yield sample([t(2, 3, 2), t(2, 1, 2)], -2)
    yield sample((t(3, 2, 5), t(3, 2, 1)), dim=2)
    yield sample((t(3),), 0, note="one")
    x = t(2, 3)
    yield sample((x, x), 1, note="twice the same", gradient=False)
    yield sample([t(1 + i % 3) for i in range(17)], 0, note="many")
    yield sample((t(2, 0), t(2, 3)), 1, kind="zero-size")
    yield sample((t(0, 3), t(0, 3)), -2, kind="zero-size")
    yield sample((t(1), t(1)), kind="length-1")
    yield sample((t(1, 2), t(1, 2)), 1, kind="length-1")
    yield sample((t(50_001), t(49_999)), kind="large")


@mistakes("cat")
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield ranks and sizes that differ, no tensors, an argument that is not a list, and 0-d tensors."""
    yield sample((t(2, 3), t(2, 4)), 0, note="sizes")
    yield sample((t(2, 3), t(3)), 0, note="ranks")
    yield sample((t(), t()), 0, note="no dims")
    yield sample((), 0, note="no tensors")
    yield sample(t(2, 3), 0, note="no list")
    yield sample((t(2), 3.0), 0, note="a number")
    yield sample((t(2), t(2)), 1, note="out of range")


@inputs("stack")
def along_a_new_dim(t: Maker) -> Iterator[Sample]:
    """Yield one tensor, two and many, with the new dim at each position."""
    yield sample((t(2, 3), t(2, 3)))
    yield sample([t(2, 3), t(2, 3), t(2, 3)], 1)
    yield sample((t(4), t(4)), -1)
    yield sample((t(2, 3, 2),), dim=-2)
    yield sample((t(), t()), 0, kind="0-d")
    yield sample((t(0, 3), t(0, 3)), 1, kind="zero-size")
    yield sample((t(1), t(1)), kind="length-1")
    yield sample((t(501), t(501)), 1, kind="large")


@mistakes("stack")
def shapes_that_differ(t: Maker) -> Iterator[Sample]:
    """Yield different shapes, no tensors, and a dim out of range."""
    yield sample((t(2), t(3)), note="shapes")
    yield sample((), note="no tensors")
    yield sample(t(2, 3), note="no list")
    yield sample((t(2), t(2)), 2, note="out of range")


@inputs("hstack", "vstack", "dstack", "column_stack")
def side_by_side(t: Maker) -> Iterator[Sample]:
    """Yield 0-d tensors, vectors, matrices and more dims."""
    yield sample((t(3), t(3)))
    yield sample([t(2, 3), t(2, 3), t(2, 3)])
    yield sample((t(2, 3, 2), t(2, 3, 2)))
    yield sample((t(3),), note="one")
    yield sample((t(), t()), kind="0-d")
    yield sample((t(0, 3), t(0, 3)), kind="zero-size")
    yield sample((t(1), t(1)), kind="length-1")


@mistakes("hstack", "vstack", "dstack", "column_stack")
def not_side_by_side(t: Maker) -> Iterator[Sample]:
    """Yield sizes that differ, no tensors, and an argument that is not a list."""
    yield sample((t(2, 3), t(3, 2)), note="sizes")
    yield sample((), note="no tensors")
    yield sample(t(2, 3), note="no list")


@inputs("_chunk_cat")
def joined_in_chunks(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are divisible and sizes that are not, along any dim."""
    yield sample((t(4), t(2)), 0, 2)
    yield sample((t(5), t(3)), 0, 2)
    yield sample([t(2, 3), t(2, 4, 2)], 1, 2)
    yield sample((t(3, 2),), -2, 3)
    yield sample((t(1),), 0, 1, kind="length-1")
    yield sample((t(1, 2),), 1, 3, kind="length-1")
    yield sample((t(100), t(57)), 0, 8, kind="large")


@mistakes("_chunk_cat")
def not_joined_in_chunks(t: Maker) -> Iterator[Sample]:
    """Yield no chunks, no tensors, no elements, and a dim that a tensor lacks."""
    yield sample((t(3),), 0, 0, note="no chunks")
    yield sample((), 0, 1, note="no tensors")
    yield sample((t(0),), 0, 1, note="no elements")
    yield sample((t(2, 2), t(2)), 1, 1, note="a dim too few")


@inputs("flip")
def flipped(t: Maker) -> Iterator[Sample]:
    """Yield one dim, several, and all."""
    yield sample(t(7), 0)
    yield sample(t(3, 5), (1,))
    yield sample(t(2, 3, 4), (0, -1))
    yield sample(t(2, 3, 4), [1])
    yield sample(t(2, 3), (), note="none")
    yield sample(t(2, 3, 2, 2), (-4, 2))
    yield sample(t(), (), kind="0-d")
    yield sample(t(), (0,), kind="0-d")
    yield sample(t(3, 0), (0, 1), kind="zero-size")
    yield sample(t(1, 3), 0, kind="length-1")
    yield sample(t(100_000), 0, kind="large")


@inputs("fliplr", "flipud")
def reversed_along_one(t: Maker) -> Iterator[Sample]:
    """Yield matrices and batches."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 4))
    yield sample(t(3, 0), kind="zero-size")
    yield sample(t(1, 3), kind="length-1")
    yield sample(t(129, 65), kind="large")


@mistakes("fliplr", "flipud")
def too_few_dims(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor."""
    yield sample(t(), note="a number")


@inputs("rot90")
def quarter_turns(t: Maker) -> Iterator[Sample]:
    """Yield none to four turns in either direction, in any two dims."""
    yield sample(t(3, 5))
    yield sample(t(3, 5), 2)
    yield sample(t(2, 3, 4), -1, (1, 2))
    yield sample(t(2, 3, 4), 3, [0, -1])
    yield sample(t(2, 3), 4, (1, 0))
    yield sample(t(2, 0), 1, kind="zero-size")
    yield sample(t(1, 3), 1, kind="length-1")


@mistakes("rot90")
def no_plane(t: Maker) -> Iterator[Sample]:
    """Yield a vector, a single dim, and equal dims."""
    yield sample(t(3), note="a vector")
    yield sample(t(2, 3), 1, (0,), note="one dim")
    yield sample(t(2, 3), 1, (0, -2), note="the same dim")


@inputs("roll")
def shifted(t: Maker) -> Iterator[Sample]:
    """Yield both directions, shifts beyond the size, several dims, duplicate dims, and the flattened tensor."""
    yield sample(t(7), 2)
    yield sample(t(3, 5), -1, 1)
    yield sample(t(3, 5), 8, 0, note="further than the size")
    yield sample(t(3, 5), 4, note="flattened")
    yield sample(t(2, 3, 4), (1, -2), (0, -1))
    yield sample(t(2, 3, 4), [1, 3], [1, 1], note="the same dim twice")
    yield sample(t(2, 3), 0, 0, note="not at all")
    yield sample(t(), 3, kind="0-d")
    yield sample(t(0, 3), 2, 0, kind="zero-size")
    yield sample(t(3, 0), 1, kind="zero-size")
    yield sample(t(1), 5, 0, kind="length-1")
    yield sample(t(100_000), 33, 0, kind="large")


@mistakes("flip")
def wrong_dims(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, and duplicate dims."""
    yield sample(t(2, 3), 2, note="out of range")
    yield sample(t(2, 3), (1, -1), note="twice")


@mistakes("roll")
def wrong_shifts(t: Maker) -> Iterator[Sample]:
    """Yield different numbers of shifts and dims, and dims out of range."""
    yield sample(t(2, 3), (1, 2), (0,), note="more shifts than dims")
    yield sample(t(2, 3), 1, (0, 1), note="more dims than shifts")
    yield sample(t(2, 3), 1, 2, note="out of range")
    yield sample(t(2, 3), (), (), note="no shift")
    yield sample(t(), 1, 0, note="no dims")


@inputs("tril", "triu")
def triangles(t: Maker) -> Iterator[Sample]:
    """Yield diagonals above, below and outside of wide, high and batched matrices."""
    yield sample(t(4, 4))
    yield sample(t(3, 5), 1)
    yield sample(t(5, 3), -1)
    yield sample(t(2, 3, 4), diagonal=2)
    yield sample(t(2, 2, 4, 3), -2)
    yield sample(t(3, 3), 7, note="beyond")
    yield sample(t(3, 3), -7, note="beyond")
    yield sample(t(17, 9), 3)
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(2, 3, 0), 1, kind="zero-size")
    yield sample(t(1, 1), kind="length-1")
    yield sample(t(1, 1), 1, kind="length-1")
    yield sample(t(1, 4), -1, kind="length-1")
    yield sample(t(321, 123), 5, kind="large")


@mistakes("tril", "triu")
def no_matrix(t: Maker) -> Iterator[Sample]:
    """Yield tensors with fewer than two dims."""
    yield sample(t(3), note="a vector")
    yield sample(t(), note="a number")
