"""Samples of views that only strides can represent: diagonals, windows, parts of the storage, complex numbers as
pairs."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import defined, inputs, mistakes, only, special
from candelabra_conformance.samples.sample import Sample, sample

DIAGONALS = (
    ((4, 4), 0, 0, 1),
    ((3, 5), 1, 0, 1),
    ((5, 3), -2, 0, 1),
    ((3, 5), 1, 1, 0),
    ((2, 3, 4), 0, 1, 2),
    ((2, 3, 4), -1, 0, 2),
    ((3, 2, 4, 3), 1, 3, 0),
    ((3, 3), 5, 0, 1),
)
"""Shape, offset, first dim, second dim; the last diagonal is outside of the matrix and empty."""
SCARCE = (((0, 3), 0, 0, 1, "zero-size"), ((3, 0, 2), 0, 0, 2, "zero-size"), ((1, 1), 0, 0, 1, "length-1"))


@inputs("diagonal", "diagonal_copy")
def diagonals(t: Maker) -> Iterator[Sample]:
    """Yield main diagonals, others above and below, and any two dims in either order, counted from either end."""
    yield sample(t(3, 4))
    yield sample(t(2, 3, 4), 1, -1, -3)
    for shape, offset, dim1, dim2 in DIAGONALS:
        yield sample(t(*shape), offset, dim1, dim2)
    for shape, offset, dim1, dim2, kind in SCARCE:
        yield sample(t(*shape), offset, dim1, dim2, kind=kind)
    yield sample(t(129, 257), 17, 0, 1, kind="large")


@inputs("diagonal_scatter")
def diagonals_written(t: Maker) -> Iterator[Sample]:
    """Yield the same diagonals, to write to."""
    for shape, offset, dim1, dim2, *kind in (*DIAGONALS, *SCARCE):
        base = t(*shape)
        src = t(*base.diagonal(offset, dim1, dim2).shape)
        yield sample(base, src, offset, dim1, dim2, kind=kind[0] if kind else "ordinary")
    yield sample(t(3, 4), t.of("int32")(3), gradient=False, note="an int32 diagonal")


@mistakes("diagonal", "diagonal_copy")
def one_dim_twice(t: Maker) -> Iterator[Sample]:
    """Yield one dim twice."""
    yield sample(t(3, 3), 0, 1, 1)
    yield sample(t(2, 3, 3), 1, 0, 0)


@mistakes("diagonal_scatter")
def another_length(t: Maker) -> Iterator[Sample]:
    """Yield wrong numbers of values, and one dim twice."""
    yield sample(t(3, 3), t(4), 0, 0, 1, note="longer")
    yield sample(t(3, 3), t(3), 1, 0, 1, note="longer")
    yield sample(t(3, 3), t(3), 0, 1, 1, note="one dim twice")


@inputs("unfold", "unfold_copy")
def windows(t: Maker) -> Iterator[Sample]:
    """Yield windows that overlap, are adjacent, leave gaps, and leave a remainder, along any dim."""
    yield sample(t(7), 0, 3, 1)
    yield sample(t(8), 0, 3, 2)
    yield sample(t(3, 8), 1, 2, 2)
    yield sample(t(8, 3), 0, 2, 3)
    yield sample(t(2, 7, 3), -2, 4, 3)
    yield sample(t(2, 2, 2, 5), -1, 5, 1)
    yield sample(t(3, 5), 1, 1, 1)
    yield sample(t(3), 0, 0, 1, kind="zero-size", note="windows of nothing")
    yield sample(t(0, 3), 1, 2, 1, kind="zero-size")
    yield sample(t(), 0, 1, 1, kind="0-d")
    yield sample(t(1, 3), 0, 1, 2, kind="length-1")
    yield sample(t(1023), 0, 16, 5, kind="large", gradient=False)


@mistakes("unfold", "unfold_copy")
def windows_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield windows larger than the dim, negative sizes, a step of 0, and a dim out of range."""
    yield sample(t(5), 0, 6, 1, note="too large")
    yield sample(t(5), 0, -1, 1, note="negative size")
    yield sample(t(5), 0, 2, 0, note="no step")
    yield sample(t(5), 0, 2, -1, note="a step back")
    yield sample(t(), 0, 2, 1, note="too large")
    yield sample(t(5), 1, 2, 1, note="out of range")


def contiguous_origin(*shape: int) -> tuple[tuple[int, ...], int, int, int]:
    """Return the layout for ``as_strided``: C order, from the start of the memory to its end."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides)), 0, 0, step


@inputs("as_strided", "as_strided_copy")
def parts_of_the_storage(t: Maker) -> Iterator[Sample]:
    """Yield strides, offsets and windows that overlap. They are absolute, and therefore for contiguous memory."""
    for shape, size, strides, offset in (
        ((3, 4), (2, 2), (5, 2), 1),
        ((12,), (3, 4), (1, 3), 0),
        ((3, 4), (5, 4), (2, 1), 0),
        ((2, 3, 4), (3, 2), (4, 1), 7),
        ((7,), (3, 2), (0, 1), 2),
        ((1023,), (100, 7), (9, 11), 5),
    ):
        yield sample(t(*shape), size, strides, offset, contiguous_origin(*shape), layouts=("contiguous",))
    yield sample(t(3, 4), (2, 3), (1, 2), layouts=("contiguous",), note="from where it is")
    yield sample(t(5), (), (), 3, contiguous_origin(5), kind="0-d")
    yield sample(t(3), (0, 2), (1, 1), 0, contiguous_origin(3), kind="zero-size")
    yield sample(t(1), (1,), (1,), 0, contiguous_origin(1), kind="length-1")


@mistakes("as_strided", "as_strided_copy")
def memory_that_is_not_there(t: Maker) -> Iterator[Sample]:
    """Yield negative strides, strides for other dims, and elements past the end."""
    yield sample(t(6), (2,), (-1,), note="a step back")
    yield sample(t(6), (2, 2), (1,), note="steps for one dim")
    yield sample(t(6), (2, 3), (3, 2), note="past the end")
    yield sample(t(6), (2,), (1,), 5, note="past the end")


@inputs("view_as_real", "view_as_real_copy")
def complex_as_pairs(t: Maker) -> Iterator[Sample]:
    """Yield any shape in any layout."""
    yield sample(t(3, 5))
    yield sample(t(7))
    yield sample(t(2, 3, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")
    yield sample(t(1023), kind="large")


@special("view_as_real", "view_as_real_copy")
def pairs_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield special values, which must be preserved to the bit."""
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([complex(inf, nan), complex(-0.0, 1), complex(0, -0.0), complex(nan, -inf)]))


only(lambda d: d.itemsize >= 4, "view_as_complex", "view_as_complex_copy")


@inputs("view_as_complex", "view_as_complex_copy")
def pairs_as_complex(t: Maker) -> Iterator[Sample]:
    """Yield a last dim of two, with adjacent pairs. Half precision has no complex dtype."""
    if not defined(t.operator, t.dtype):
        return
    for shape in ((3, 2), (2, 3, 2), (2, 1, 3, 2)):
        yield sample(t(*shape), layouts=("contiguous",))
    yield sample(t(511, 2), kind="large")
    yield sample(t(2), kind="0-d")
    yield sample(t(0, 2), kind="zero-size")
    yield sample(t(1, 2), kind="length-1")


@mistakes("view_as_complex", "view_as_complex_copy")
def no_pairs(t: Maker) -> Iterator[Sample]:
    """Yield a last dim of another size, and no dims."""
    if defined(t.operator, t.dtype):
        yield sample(t(3), note="three parts")
        yield sample(t(2, 1), note="one part")
        yield sample(t(), note="no dims")
