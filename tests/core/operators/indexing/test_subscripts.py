"""Indexing and assignment with subscripts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from hypothesis import given, settings
from hypothesis import strategies as st

A = np.arange(24.0).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, False]])
I = np.array([1, 0])  # noqa: E741


def tensors(index: Any) -> Any:
    """Return the index with tensors instead of NumPy arrays."""
    if isinstance(index, tuple):
        return tuple(tensors(i) for i in index)
    return cd.from_numpy(index.copy()) if isinstance(index, np.ndarray) else index


def same(actual: Any, expected: Any) -> None:
    """Assert that shape, dtype and every element are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.detach().numpy(), expected)


AGREED = [
    1, -1, slice(None), slice(1, None), slice(None, None, 2), slice(5, 7), slice(-2, -1), None, Ellipsis, (), (0, 1),
    (1, 2, 3), (..., 0), (0, ..., None), (None, 1, None, slice(0, 2), None), True, False, (None, True), I, (I, I),
    (I, I, I), (slice(None), I, I), (I, slice(None), I), (slice(None), slice(None), I, None), (None, I, I), MASK,
    (MASK, slice(1, 3)), (0, MASK[1]), (slice(None), MASK[0]), (I[:, None], np.array([[0, 1, 2]])),
    np.zeros(0, np.int64),
    np.zeros((0, 3), np.int64), np.array([-1, -2]), [True, False], [0, 1, 1], (slice(None), [2, 0]), A > 7, range(2),
    (MASK, np.array([0, 1, 2])), ([[0], [1]], [0, 2]), I.astype(np.int32), np.zeros((2, 3), bool),
]  # fmt: skip
"""Indices with the same meaning in NumPy and PyTorch."""


@pytest.mark.parametrize("index", AGREED, ids=[f"{n}" for n in range(len(AGREED))])
def test_an_index_reads_what_numpy_reads(index: Any) -> None:
    """The result is NumPy's if NumPy and PyTorch agree."""
    expected = A[list(index)] if isinstance(index, range) else A[index]
    same(cd.tensor(A)[tensors(index)], expected)


@pytest.mark.parametrize("index", AGREED, ids=[f"{n}" for n in range(len(AGREED))])
def test_an_index_writes_where_numpy_writes(index: Any) -> None:
    """Numbers and tensors are assigned to the same elements as in NumPy."""
    index = list(index) if isinstance(index, range) else index
    for value in (5.0, np.arange(float(A[index].size)).reshape(A[index].shape)):
        expected, actual = A.copy(), cd.tensor(A)
        expected[index] = value
        actual[tensors(index)] = tensors(value)
        same(actual, expected)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ((0, slice(None), [1, 2]), A[0][:, [1, 2]]),
        ((I, 0), A[:, 0][I]),
        ((I, slice(None), 0), A[..., 0][I]),
        ((slice(None), I, None, I), A[:, I, I].T[:, :, None]),
        ((MASK, 0), A[..., 0][MASK]),
        ((1, True), A[1][None]),
        ((np.int64(1),), A[1]),
        ((np.bool_(True),), A[None]),
        ((np.array(1), [0, 1]), A[1][[0, 1]]),
        ((Ellipsis, Ellipsis, 0), A[..., 0]),
        (([],), A[:0]),
    ],
    ids=str,
)
def test_an_int_among_index_tensors_is_selected_first(index: Any, expected: Any) -> None:
    """The position of index dims, and the reading of unusual items, is PyTorch's where it differs from NumPy's."""
    same(cd.tensor(A)[tensors(index)], expected)


def test_zero_dim_integer_tensors_act_like_ints() -> None:
    """A 0-d integer tensor of any dtype selects an index, and gives a view."""
    x = cd.tensor(A)
    for dtype in (cd.int8, cd.int16, cd.int64):
        part = x[cd.tensor(1, dtype=dtype)]
        same(part, A[1])
        assert part._is_view()
    same(x[cd.tensor(True)], A[None])


def test_basic_indices_are_one_view_and_others_are_copies() -> None:
    """Ints, slices and None give a single view that shares memory and version; tensors, lists and masks give copies."""
    x = cd.tensor(A)
    for index in (0, slice(0, 1), None, Ellipsis, (0, None, slice(1, 3)), (..., 1)):
        part = x[index]
        assert part._base is x
        assert part._counter is x._counter
        assert np.shares_memory(part.numpy(), x.numpy())
    for index in ([0], MASK.tolist(), True, (0, [1])):
        part = x[tensors(np.array(index)) if index == MASK.tolist() else index]
        assert not np.shares_memory(part.numpy(), x.numpy())


def test_byte_tensors_are_masks_and_warn() -> None:
    """uint8 tensors are masks with a deprecation warning, as in PyTorch."""
    with pytest.warns(UserWarning, match="indexing with dtype uint8 is deprecated"):
        same(cd.tensor(A)[cd.tensor([1, 0], dtype=cd.uint8)], A[:1])


def test_a_list_of_indices_is_a_tuple_and_warns() -> None:
    """A list with slices or sequences is read as a tuple, with a deprecation warning, as in PyTorch."""
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        same(cd.tensor(A)[[0, slice(1, 2)]], A[0, 1:2])


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.tensor(A)[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda: cd.tensor(A)[-3], IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
    (lambda: cd.tensor(A)[0, 7], IndexError, "index 7 is out of bounds for dimension 1 with size 3"),
    (lambda: cd.tensor(A)[0, 0, 0, 0], IndexError, "too many indices for tensor of dimension 3"),
    (lambda: cd.tensor(A)[tensors((MASK, MASK))], IndexError, "too many indices for tensor of dimension 3"),
    (lambda: cd.tensor(1.0)[0], IndexError, "invalid index of a 0-dim tensor"),
    (lambda: cd.tensor(1.0)[-1], IndexError, "invalid index of a 0-dim tensor"),
    (lambda: cd.tensor(1.0)[:], IndexError, r"slice\(\) cannot be applied to a 0-dim tensor."),
    (lambda: cd.tensor(1.0)[:, 0], IndexError, "too many indices for tensor of dimension 0"),
    (lambda: cd.tensor(A)[::-1], ValueError, "step must be greater than zero"),
    (lambda: cd.tensor(A)[0, ::-1], ValueError, "step must be greater than zero"),
    (lambda: cd.tensor(A)[::0], ValueError, "slice step cannot be zero"),
    (lambda: cd.tensor(A)[1.0:2], TypeError, "slice indices must be integers or None or have an __index__ method"),
    (lambda: cd.tensor(A)[1.5], IndexError, r"only integers, slices .* are valid indices \(got float\)"),
    (lambda: cd.tensor(A)["a"], IndexError, r"are valid indices \(got str\)"),
    (lambda: cd.tensor(A)[cd.tensor([1.0])], IndexError, "tensors used as indices must be long, int, byte or bool"),
    (lambda: cd.tensor(A)[cd.tensor([1], dtype=cd.int8)], IndexError, "tensors used as indices must be long"),
    (lambda: cd.tensor(A)[cd.tensor([0, 5])], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: cd.tensor(A)[cd.tensor([0, -5])], IndexError, "index -5 is out of bounds for dimension 0 with size 2"),
    (
        lambda: cd.tensor(A)[tensors((I, np.arange(3)))],
        IndexError,
        r"could not be broadcast together with shapes \[2\]",
    ),
    (
        lambda: cd.tensor(A)[:, tensors(MASK)],
        IndexError,
        r"The shape of the mask \[2, 3\] at index 0 does not match the shape of the .* tensor \[2, 3, 4\] at index",
    ),
    (lambda: cd.tensor(A).__setitem__(0, [1.0, 2.0]), TypeError, "can't assign a list to a float64 tensor"),
    (lambda: cd.tensor(A).__setitem__(0, None), TypeError, "can't assign a NoneType to a float64 tensor"),
    (lambda: cd.tensor(A).__setitem__(0, A[0]), TypeError, "can't assign a numpy.ndarray to a float64 tensor"),
    (
        lambda: cd.tensor(A).__setitem__(0, 1j),
        RuntimeError,
        "value cannot be converted to type double without overflow",
    ),
    (lambda: cd.arange(3).__setitem__(0, float("nan")), RuntimeError, "converted to type int64_t without overflow"),
    (lambda: cd.arange(3).to(cd.uint8).__setitem__(0, 300), RuntimeError, "converted to type uint8_t without overflow"),
    (
        lambda: cd.tensor(A).__setitem__(0, cd.ones(3)),
        RuntimeError,
        r"The expanded size of the tensor \(4\) must match",
    ),
    (lambda: cd.tensor(A).__setitem__(0, cd.ones(2, 3, 4)), RuntimeError, r"number of sizes provided \(2\) must be"),
    (
        lambda: cd.tensor(A).__setitem__(cd.tensor([0, 1]), cd.ones(3, 3, 4)),
        RuntimeError,
        r"value tensor of shape \[3, 3, 4\] cannot be broadcast to indexing result of shape \[2, 3, 4\]",
    ),
    (lambda: cd.tensor(A).__delitem__(0), TypeError, "Tensor does not support deleting items"),
    (lambda: cd.tensor(A).index_put((0,), cd.ones(1)), TypeError, "argument 'indices' must be Tensor, not int"),
    (
        lambda: cd.tensor(A).index_put((cd.tensor([0]),), cd.ones(1)),
        RuntimeError,
        r"index_put\(\): expected input and values to have the same dtype, but got Double and Float",
    ),
    (lambda: cd.tensor(A).index_put(cd.tensor([0]), cd.ones(1).double()), TypeError, "must be tuple of Tensors"),
    (lambda: cd.tensor(A).index_put((cd.tensor([0]),) * 4, cd.ones(1).double()), IndexError, "too many indices"),
    (
        lambda: cd.take(cd.tensor(A), cd.tensor([24])),
        IndexError,
        "index 24 is out of bounds for dimension 0",
    ),
    (
        lambda: cd.take(cd.tensor(A), cd.tensor([0.0])),
        RuntimeError,
        "Expected dtype int64 for index, got candelab",
    ),
    (lambda: cd.tensor(A).gather(1, cd.full((2, 1, 4), 7)), RuntimeError, "index 7 is out of bounds for dimension 1"),
    (lambda: cd.tensor(A).gather(1, cd.full((2, 1, 4), -1)), RuntimeError, "index -1 is out of bounds for dimension 1"),
    (lambda: cd.tensor(A).gather(1, cd.full((2, 1), 0)), RuntimeError, "Index tensor must have the same number of dim"),
    (lambda: cd.tensor(A).gather(1, cd.full((3, 1, 4), 0)), RuntimeError, "Size does not match at dimension 0"),
    (lambda: cd.tensor(A).index_select(0, cd.tensor([2])), IndexError, "index out of range in self"),
    (lambda: cd.tensor(A).index_select(0, cd.tensor([-1])), IndexError, "index out of range in self"),
    (lambda: cd.tensor(A).index_add(0, cd.tensor([2]), cd.tensor(A[:1])), IndexError, "index out of range in self"),
    (
        lambda: cd.tensor(A).index_add(0, cd.tensor([0]), cd.ones(1, 3, 4)),
        RuntimeError,
        "expected input and source to have the same dtype",
    ),
    (lambda: cd.tensor(A).index_fill(0, cd.tensor([[0]]), 1.0), RuntimeError, "Index has to be a vector/scalar"),
    (
        lambda: cd.tensor(A).index_fill(0, cd.tensor([0]), cd.ones(2)),
        RuntimeError,
        "only supports a 0-dimensional value",
    ),
    (
        lambda: cd.tensor(A).index_copy(0, cd.tensor([0]), cd.tensor(A)),
        IndexError,
        r"Number of indices \(1\) should be",
    ),
    (
        lambda: cd.tensor(A).index_copy(0, cd.tensor([0]), cd.ones(1, 3, 4)),
        RuntimeError,
        "expected input and source to have the same dtype",
    ),
    (
        lambda: cd.tensor(A).index_copy(0, cd.tensor([0]), cd.tensor(A[:1, :2])),
        RuntimeError,
        "source tensor shape must match self tensor shape",
    ),
    (
        lambda: cd.tensor(A).index_copy(0, cd.tensor([[0]]), cd.tensor(A)),
        IndexError,
        "Index is supposed to be a vector, but got 2 dims",
    ),
    (
        lambda: cd.tensor(A).scatter(0, cd.full((1, 1, 1), 0), cd.ones(1, 1, 1)),
        RuntimeError,
        r"scatter\(\): expected input and src to have the same dtype",
    ),
    (
        lambda: cd.tensor(A).scatter(0, cd.full((1, 1, 1), 0), 1.0, reduce="foo"),
        RuntimeError,
        "reduce argument must be either add or multiply.",
    ),
    (
        lambda: cd.tensor(A).scatter(0, cd.full((1, 1, 1), 2), 1.0),
        RuntimeError,
        "index 2 is out of bounds for dimension 0",
    ),
    (
        lambda: cd.tensor(A).scatter(0, cd.full((1, 1, 5), 0), 1.0),
        RuntimeError,
        r"Expected index \[1, 1, 5\] to be no larger than self \[2, 3, 4\] apart from dimension 0",
    ),
    (
        lambda: cd.tensor(A).select_scatter(cd.ones(3, 4), 1, 0),
        RuntimeError,
        "expected src to have a size equal to the sl",
    ),
    (lambda: cd.tensor(A).slice_scatter(cd.ones(2), 0, 0, 1, -1), RuntimeError, "slice step must be positive"),
    (lambda: cd.tensor(A).masked_fill(cd.ones(4), 0), RuntimeError, "mask expected to be a boolean tensor, but got"),
    (lambda: cd.tensor(A).masked_fill(tensors(A > 3), cd.ones(2)), RuntimeError, "only supports a 0-dimensional value"),
    (lambda: cd.tensor(A).masked_select(tensors(MASK)), RuntimeError, "must match the size of tensor b"),
    (
        lambda: cd.tensor(A).masked_scatter(tensors(A > 3), cd.ones(2).double()),
        RuntimeError,
        "Number of elements of source < number of ones in mask",
    ),
    (
        lambda: cd.tensor(A).masked_scatter(tensors(A > 3), cd.ones(24)),
        RuntimeError,
        "expected input and source to have the same dtype",
    ),
    (
        lambda: cd.take_along_dim(cd.tensor(A), cd.ones(2), 1),
        RuntimeError,
        "Expected dtype int64 for indices, got candelabra.float32",
    ),
    (
        lambda: cd.take_along_dim(cd.tensor(A), cd.full((2, 4), 0), 1),
        RuntimeError,
        "same number of dimensions, but got 3",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_a_bad_index_is_an_error_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid index has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()


def test_assignment_casts_to_the_tensors_dtype() -> None:
    """Floats are truncated in integer tensors, negative ints wrap in unsigned ones, bools keep the truth value."""
    whole = cd.arange(6)
    whole[0] = 2.7
    whole[whole > 3] = cd.tensor(9.9)
    whole[cd.tensor([1])] = cd.tensor([7.9])
    same(whole, [2, 7, 2, 3, 9, 9])
    small = cd.zeros(2, dtype=cd.uint8)
    small[0] = -1
    same(small, np.array([255, 0], np.uint8))
    truth = cd.zeros(2, dtype=cd.bool)
    truth[0] = 3
    same(truth, [True, False])


def test_assignment_broadcasts_and_drops_leading_ones() -> None:
    """A value may have additional leading dims of size 1."""
    x = cd.tensor(A)
    x[0] = cd.ones(1, 1, 1, 4).double()
    x[cd.tensor([1]), 0] = cd.full((1, 1), 2.0, dtype=cd.float64)
    expected = A.copy()
    expected[0], expected[1, 0] = 1, 2
    same(x, expected)


def test_assignment_of_a_tensor_to_parts_of_itself_reads_first() -> None:
    """An overlap has no effect: the value is read before the write."""
    x = cd.tensor(A)
    x[1:] = x[:-1]
    same(x, np.stack([A[0], A[0]]))
    x = cd.tensor(A)
    x[cd.tensor([1, 0])] = x
    same(x, A[[1, 0]])
    line = cd.arange(6)
    line[1:] = line[:-1]
    same(line, [0, 0, 1, 2, 3, 4])


def test_assignment_writes_through_views_and_bumps_the_version() -> None:
    """A write to a view of a view changes the base and its version."""
    x = cd.tensor(A)
    before = x._version
    x[1].t()[2, 0:2] = 100
    expected = A.copy()
    expected[1, 0:2, 2] = 100
    same(x, expected)
    assert x._version > before


def test_assignment_to_a_leaf_that_requires_grad_is_refused() -> None:
    """Leaves and their views cannot be written to while recording."""
    x = cd.tensor(A, requires_grad=True)
    for index in (0, ..., cd.tensor([0]), cd.tensor(MASK)):
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
        ):
            x[index] = 1.0
    same(x, A)


@pytest.mark.parametrize(
    "index", [1, (0, slice(1, 3)), I, (I, I), MASK, (slice(None), None, 0), A > 7, (0, I, I)], ids=str
)
def test_gradients_flow_through_reading_and_writing(index: Any) -> None:
    """Derivatives of x[i], and of x[i] = v in x and in v, agree with finite differences to second order."""
    index = tensors(index)
    x = cd.tensor(A / 10, requires_grad=True)
    v = (cd.tensor(A)[index].detach() / 7 + 1).requires_grad_()

    def write(x: Any, v: Any) -> Any:
        y = x * 1.0
        y[index] = v * v
        return y * y

    assert gradcheck(lambda x: x[index] ** 2, (x,))
    assert gradgradcheck(lambda x: x[index] ** 3, (x,))
    assert gradcheck(write, (x, v))
    assert gradgradcheck(write, (x, v))


def test_a_repeated_index_sums_its_gradients() -> None:
    """Every occurrence of an element adds to its gradient."""
    x = cd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad is not None
    same(x.grad, np.array([2, 0, 1], np.float32))


def part(size: int) -> st.SearchStrategy[Any]:
    """Draw an int or a slice for a dim."""
    bound = st.none() | st.integers(-size - 2, size + 2)
    slices = st.builds(slice, bound, bound, st.none() | st.integers(1, 3))
    return slices | st.integers(-size, size - 1) if size else slices


@st.composite
def indexed(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Draw a shape and an index: ints, slices, None and Ellipsis, or slices and adjacent integer arrays."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=4)))
    items: list[Any] = [draw(part(size)) for size in shape[: draw(st.integers(0, len(shape)))]]
    arrays = [d for d in range(len(items)) if shape[d]]
    if arrays and draw(st.booleans()):
        items = [slice(None) if isinstance(i, int) else i for i in items]
        first = draw(st.sampled_from(arrays))
        count = draw(st.integers(0, 3))
        for d in range(first, min(first + draw(st.integers(1, 2)), len(items))):
            if not shape[d]:
                break
            items[d] = np.array(
                draw(st.lists(st.integers(-shape[d], shape[d] - 1), min_size=count, max_size=count)), np.int64
            )
    else:
        if len(items) == len(shape) and draw(st.booleans()):
            items.insert(draw(st.integers(0, len(items))), Ellipsis)
        for _ in range(draw(st.integers(0, 2))):
            items.insert(draw(st.integers(0, len(items))), None)
    return shape, tuple(items)


@settings(max_examples=150)
@given(indexed())
def test_random_indices_read_and_write_as_in_numpy(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    """Reads and writes agree with NumPy for any shape and index, on transposed memory too."""
    shape, index = case
    size = int(np.prod(shape))
    for array in (np.arange(float(size)).reshape(shape), np.arange(float(size)).reshape(shape[::-1]).T):
        x = cd.from_numpy(array.copy(order="K"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(x[tensors(index)], array[index])
            expected = array.copy()
            expected[index] = -1
            x[tensors(index)] = -1
        same(x, expected)
