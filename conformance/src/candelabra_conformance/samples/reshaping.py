"""Samples of flattening, unflattening and moving dims, of transposes, and of real and imaginary components."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample


@inputs("reshape")
def in_any_shape(t: Maker) -> Iterator[Sample]:
    """Yield a tuple, separate sizes, a keyword, and one inferred size."""
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
    """Yield other numbers of elements, two inferred sizes, and arguments that are not sizes."""
    yield sample(t(2, 3), (4, 2), note="more elements")
    yield sample(t(2, 3), (4, -1), note="an open size that does not fit")
    yield sample(t(2, 3), (-1, -1), note="two open sizes")
    yield sample(t(2, 3), "6", note="no sizes")


@inputs("Tensor.reshape_as", "Tensor.view_as")
def in_the_shape_of_another(t: Maker) -> Iterator[Sample]:
    """Yield other tensors of any dtype."""
    yield sample(t(3, 4), t.of("float32")(3, 2, 2), constant=("other",))
    yield sample(t(6), t.of("int64")(2, 3), constant=("other",), layouts=("contiguous",))
    yield sample(t(), t(1, 1), constant=("other",), kind="0-d")
    yield sample(t(0, 3), t(2, 0), constant=("other",), kind="zero-size")


@inputs("flatten")
def flattened_dims(t: Maker) -> Iterator[Sample]:
    """Yield all dims, some, and one."""
    yield sample(t(2, 3, 4))
    yield sample(t(2, 3, 4), 1)
    yield sample(t(2, 3, 4, 2), 1, -2)
    yield sample(t(2, 3), 0, 0)
    yield sample(t(), kind="0-d")
    yield sample(t(2, 0, 3), 1, kind="zero-size")


@mistakes("flatten")
def dims_in_wrong_order(t: Maker) -> Iterator[Sample]:
    """Yield a last dim before the first, and dims out of range."""
    yield sample(t(2, 3, 4), 2, 1, note="out of order")
    yield sample(t(2, 3), 2, note="out of range")


@inputs("ravel")
def all_dims_flattened(t: Maker) -> Iterator[Sample]:
    """Yield any shape."""
    yield sample(t(2, 3, 4))
    yield sample(t(7))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@inputs("unflatten")
def unflattened_dims(t: Maker) -> Iterator[Sample]:
    """Yield any dim, with one, two and three sizes, and one inferred size."""
    yield sample(t(6, 5), 0, (2, 3))
    yield sample(t(2, 12), -1, (2, -1, 3))
    yield sample(t(2, 4, 3), 1, [2, 2])
    yield sample(t(2, 4), 1, (4,))
    yield sample(t(1), 0, (1, 1, 1), kind="length-1")
    yield sample(t(0, 3), 1, (3, 1), kind="zero-size")
    yield sample(t(1000), 0, (10, 100), kind="large")


@mistakes("unflatten")
def sizes_of_no_dim(t: Maker) -> Iterator[Sample]:
    """Yield sizes whose product is not the dim's size, and a dim out of range."""
    yield sample(t(2, 6), 1, (4, 2), note="too many")
    yield sample(t(2, 6), 1, (4, -1), note="does not divide")
    yield sample(t(2, 6), 2, (2, 3), note="out of range")


@inputs("movedim")
def dims_moved(t: Maker) -> Iterator[Sample]:
    """Yield one dim, two, and all, in both directions."""
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
    """Yield different numbers of dims and positions, and duplicates."""
    yield sample(t(2, 3), (0, 1), (0,), note="one place for two")
    yield sample(t(2, 3), (0, 0), (0, 1), note="a dim twice")
    yield sample(t(2, 3), (0, 1), (1, -1), note="a place twice")
    yield sample(t(2, 3), 2, 0, note="out of range")


@inputs("T", "mT", "Tensor.mH", "adjoint")
def transposed(t: Maker) -> Iterator[Sample]:
    """Yield matrices and batches of matrices; for ``T`` also vectors and 0-d tensors."""
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
    """Yield a vector, and a 0-d tensor."""
    yield sample(t(3), note="a vector")
    yield sample(t(), note="a number")


@inputs("Tensor.H")
def conjugate_transposes(t: Maker) -> Iterator[Sample]:
    """Yield a matrix, and a 0-d tensor, which does not change."""
    yield sample(t(3, 5))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@mistakes("Tensor.H")
def neither_matrix_nor_number(t: Maker) -> Iterator[Sample]:
    """Yield a vector, and a batch."""
    yield sample(t(3), note="a vector")
    yield sample(t(2, 3, 4), note="a batch")


@inputs("conj", "real")
def complex_or_real(t: Maker) -> Iterator[Sample]:
    """Yield any shape; real numbers do not change."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")


@inputs("imag")
def complex_numbers(t: Maker) -> Iterator[Sample]:
    """Yield any shape."""
    yield sample(t(3, 5))
    yield sample(t(2, 3, 2))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")
    yield sample(t(1), kind="length-1")


@inputs("Tensor.expand_as")
def expanded_like_another(t: Maker) -> Iterator[Sample]:
    """Yield another tensor of any dtype, to whose shape the tensor expands."""
    yield sample(t(3, 1), t.of("float32")(2, 3, 4), constant=("other",))
    yield sample(t(3), t(3), constant=("other",))
    yield sample(t(), t(2), constant=("other",), kind="0-d")
    yield sample(t(1, 0), t(2, 0), constant=("other",), kind="zero-size")
