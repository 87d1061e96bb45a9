"""Dims taken together, taken apart, moved to other places; transposes and parts of complex numbers."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("reshape")
def in_any_shape(t: Maker) -> Iterator[Sample]:
    """By a tuple, by sizes, by keyword; one size left open."""
    yield sample(t(4, 6), (2, 12))
    yield sample(t(2, 3, 4), 6, 4)
    yield sample(t(2, 3, 4), -1)
    yield sample(t(2, 6), shape=(3, -1))
    yield sample(t(3, 5), (3, 1, 5), note="a dim more")
    yield sample(t(), (1, 1), kind="0-d")
    yield sample(t(2, 0, 3), (0, 7), kind="zero-size")
    yield sample(t(1), (), kind="length-1")


@mistakes("reshape")
def in_no_shape(t: Maker) -> Iterator[Sample]:
    """Other counts of elements, two open sizes, no sizes."""
    yield sample(t(2, 3), (4, 2), note="more elements")
    yield sample(t(2, 3), (4, -1), note="an open size that does not fit")
    yield sample(t(2, 3), (-1, -1), note="two open sizes")
    yield sample(t(2, 3), "6", note="no sizes")


@inputs("Tensor.reshape_as", "Tensor.view_as")
def in_the_shape_of_another(t: Maker) -> Iterator[Sample]:
    """Whatever the other's dtype."""
    yield sample(t(3, 4), t.of("float32")(3, 2, 2), constant=("other",))
    yield sample(t(6), t.of("int64")(2, 3), constant=("other",), layouts=("contiguous",))
    yield sample(t(), t(1, 1), constant=("other",), kind="0-d")
    yield sample(t(0, 3), t(2, 0), constant=("other",), kind="zero-size")


@inputs("flatten")
def dims_taken_together(t: Maker) -> Iterator[Sample]:
    """All of them, some, one."""
    yield sample(t(2, 3, 4))
    yield sample(t(2, 3, 4), 1)
    yield sample(t(2, 3, 4, 2), 1, -2)
    yield sample(t(2, 3), 0, 0)
    yield sample(t(), kind="0-d")
    yield sample(t(2, 0, 3), 1, kind="zero-size")


@mistakes("flatten")
def dims_out_of_order(t: Maker) -> Iterator[Sample]:
    """The last before the first; dims that are not there."""
    yield sample(t(2, 3, 4), 2, 1, note="out of order")
    yield sample(t(2, 3), 2, note="out of range")


@inputs("ravel")
def all_dims_taken_together(t: Maker) -> Iterator[Sample]:
    """Any shape."""
    yield sample(t(2, 3, 4))
    yield sample(t(7))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@inputs("unflatten")
def a_dim_taken_apart(t: Maker) -> Iterator[Sample]:
    """Any dim, into one, two, three; one size left open."""
    yield sample(t(6, 5), 0, (2, 3))
    yield sample(t(2, 12), -1, (2, -1, 3))
    yield sample(t(2, 4, 3), 1, [2, 2])
    yield sample(t(2, 4), 1, (4,))
    yield sample(t(1), 0, (1, 1, 1), kind="length-1")
    yield sample(t(0, 3), 1, (3, 1), kind="zero-size")
    yield sample(t(1000), 0, (10, 100), kind="large")


@mistakes("unflatten")
def sizes_of_no_dim(t: Maker) -> Iterator[Sample]:
    """Sizes that do not multiply up to the dim's; a dim that is not there."""
    yield sample(t(2, 6), 1, (4, 2), note="too many")
    yield sample(t(2, 6), 1, (4, -1), note="does not divide")
    yield sample(t(2, 6), 2, (2, 3), note="out of range")


@inputs("movedim")
def dims_moved(t: Maker) -> Iterator[Sample]:
    """One, two, all; forwards and backwards."""
    yield sample(t(2, 3, 4), 0, 2)
    yield sample(t(2, 3, 4), -1, 0)
    yield sample(t(2, 3, 4, 5), (0, 1), (-1, 0))
    yield sample(t(2, 3, 4), [2, 0, 1], [0, 1, 2])
    yield sample(t(3, 5), (), ())
    yield sample(t(), 0, 0, kind="0-d")
    yield sample(t(2, 0, 3), 2, 0, kind="zero-size")
    yield sample(t(1, 3), 0, 1, kind="length-1")


@mistakes("movedim")
def dims_that_cannot_be_moved(t: Maker) -> Iterator[Sample]:
    """As many places as dims, none twice."""
    yield sample(t(2, 3), (0, 1), (0,), note="one place for two")
    yield sample(t(2, 3), (0, 0), (0, 1), note="a dim twice")
    yield sample(t(2, 3), (0, 1), (1, -1), note="a place twice")
    yield sample(t(2, 3), 2, 0, note="out of range")


@inputs("T", "mT", "Tensor.mH", "adjoint")
def transposed(t: Maker) -> Iterator[Sample]:
    """Matrices and batches of them; of ``T`` also vectors and numbers."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 4))
    yield sample(t(2, 3, 1, 4))
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1, 4), kind="length-1")
    if t.operator == "T":
        yield sample(t(7))
        yield sample(t(), kind="0-d")


@mistakes("mT", "Tensor.mH", "adjoint")
def no_matrix_to_transpose(t: Maker) -> Iterator[Sample]:
    """A vector, a number."""
    yield sample(t(3), note="a vector")
    yield sample(t(), note="a number")


@inputs("Tensor.H")
def conjugate_transposes(t: Maker) -> Iterator[Sample]:
    """A matrix; a number as it is."""
    yield sample(t(3, 5))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@mistakes("Tensor.H")
def neither_matrix_nor_number(t: Maker) -> Iterator[Sample]:
    """A vector, a batch."""
    yield sample(t(3), note="a vector")
    yield sample(t(2, 3, 4), note="a batch")


@inputs("conj", "real")
def complex_or_real(t: Maker) -> Iterator[Sample]:
    """Any shape; real numbers as they are."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")


@inputs("imag")
def complex_numbers(t: Maker) -> Iterator[Sample]:
    """Any shape."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")


@inputs("Tensor.expand_as")
def expanded_like_another(t: Maker) -> Iterator[Sample]:
    """To the shape of another tensor, whatever its dtype."""
    yield sample(t(3, 1), t.of("float32")(2, 3, 4), constant=("other",))
    yield sample(t(3), t(3), constant=("other",))
    yield sample(t(), t(2), constant=("other",), kind="0-d")
    yield sample(t(1, 0), t(2, 0), constant=("other",), kind="zero-size")
