"""Repeat, rotate, diagonals, stack, split, meshgrid and as_strided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck

A = np.arange(24.0).reshape(2, 3, 4)
M = A[0]


def same(actual: Any, expected: Any) -> None:
    """Assert that shape and every element are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.detach().numpy(), expected)


def t(array: Any) -> Any:
    """Return a tensor of a NumPy array or number."""
    return cd.tensor(np.asarray(array))


CASES: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda x: x.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3))),
    (lambda x: x.repeat(2, 1, 1, 2), lambda a: np.tile(a, (2, 1, 1, 2))),
    (lambda x: x.repeat((1, 0, 1)), lambda a: np.tile(a, (1, 0, 1))),
    (lambda x: cd.tile(x, 2), lambda a: np.tile(a, 2)),
    (lambda x: cd.tile(x, (2, 2)), lambda a: np.tile(a, (2, 2))),
    (lambda x: x.repeat_interleave(2), lambda a: np.repeat(a, 2)),
    (lambda x: x.repeat_interleave(2, dim=1), lambda a: np.repeat(a, 2, 1)),
    (lambda x: x.repeat_interleave(cd.tensor([1, 0, 2]), dim=1), lambda a: np.repeat(a, [1, 0, 2], 1)),
    (lambda x: cd.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    (lambda x: x.swapdims(0, 2), lambda a: a.swapaxes(0, 2)),
    (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    (lambda x: x.mT, lambda a: a.swapaxes(-1, -2)),
    (lambda x: cd.fliplr(x), np.fliplr),
    (lambda x: cd.flipud(x), np.flipud),
    (lambda x: cd.rot90(x), np.rot90),
    (lambda x: x.rot90(2, (0, 2)), lambda a: np.rot90(a, 2, (0, 2))),
    (lambda x: x.rot90(-1, (1, 2)), lambda a: np.rot90(a, -1, (1, 2))),
    (lambda x: x.rot90(0, (1, 2)), lambda a: a),
    (lambda x: x.diagonal(1, 1, 2), lambda a: np.diagonal(a, 1, 1, 2)),
    (lambda x: cd.diag(x[0]), lambda a: np.diag(a[0])),
    (lambda x: x[0].diag(-1), lambda a: np.diag(a[0], -1)),
    (lambda x: cd.diag(x[0, 0], 2), lambda a: np.diag(a[0, 0], 2)),
    (lambda x: cd.diagflat(x[0], -1), lambda a: np.diagflat(a[0], -1)),
    (lambda x: x[0].trace(), lambda a: np.trace(a[0])),
    (lambda x: cd.hstack([x, x]), lambda a: np.hstack([a, a])),
    (lambda x: cd.hstack([x[0, 0], x[0, 1]]), lambda a: np.hstack([a[0, 0], a[0, 1]])),
    (lambda x: cd.vstack([x[0, 0], x[0, 1]]), lambda a: np.vstack([a[0, 0], a[0, 1]])),
    (lambda x: cd.dstack([x[0], x[1]]), lambda a: np.dstack([a[0], a[1]])),
    (lambda x: cd.column_stack([x[0], x[0, :, 0]]), lambda a: np.column_stack([a[0], a[0, :, 0]])),
    (lambda x: cd.concat([x, x], 2), lambda a: np.concatenate([a, a], 2)),
    (lambda x: cd.atleast_3d(x[0, 0]), lambda a: np.atleast_3d(a[0, 0])),
    (lambda x: cd.atleast_2d(x[0, 0]), lambda a: np.atleast_2d(a[0, 0])),
    (lambda x: cd.atleast_1d(x[0, 0, 0]), lambda a: np.atleast_1d(a[0, 0, 0])),
    (lambda x: x.narrow_copy(2, 1, 2), lambda a: a[..., 1:3]),
    (lambda x: cd.stack(x.unbind(1), -1), lambda a: a.swapaxes(1, 2)),
    (lambda x: x.as_strided((2, 2), (1, 2), 1), lambda a: a.reshape(-1)[[[1, 3], [2, 4]]]),
    (lambda x: x[1].as_strided((2, 3), (1, 1)), lambda a: a.reshape(-1)[[[12, 13, 14], [13, 14, 15]]]),
    (lambda x: x.mT.as_strided((3,), (0,), 4), lambda a: a.reshape(-1)[[4, 4, 4]]),
]


@pytest.mark.parametrize(("actual_tensor", "expected"), CASES, ids=[f"{n}" for n in range(len(CASES))])
def test_shapes_and_elements_are_numpys(actual_tensor: Callable[[Any], Any], expected: Callable[[Any], Any]) -> None:
    """Results agree with NumPy's, for contiguous and transposed memory, and with derivatives to second order."""
    same(actual_tensor(t(A)), expected(A))
    x = cd.tensor(A / 5, requires_grad=True)
    assert gradcheck(lambda x: actual_tensor(x) ** 2, (x,))
    assert gradgradcheck(lambda x: actual_tensor(x) ** 3, (x,))


@pytest.mark.parametrize("case", CASES[:35], ids=[f"{n}" for n in range(35)])
def test_memory_in_another_order_gives_the_same_elements(
    case: tuple[Callable[[Any], Any], Callable[[Any], Any]],
) -> None:
    """A tensor that is transposed in memory gives the same elements."""
    actual_tensor, expected = case
    same(actual_tensor(t(A.transpose(2, 1, 0).copy()).permute(2, 1, 0)), expected(A))


def test_diag_embed_puts_vectors_on_diagonals() -> None:
    """The last dim becomes a diagonal of two new dims at any position."""
    x = t(A[:, 0])
    actual = cd.diag_embed(x, 1, 0, 2)
    assert tuple(actual.shape) == (5, 2, 5)
    same(actual.diagonal(1, 0, 2), A[:, 0])
    assert actual.sum().item() == A[:, 0].sum()


def test_splits_are_views_of_equal_or_given_sizes() -> None:
    """tensor_split and the related functions split as NumPy does, and share memory."""
    x = t(A)
    for parts, expected in (
        (x.tensor_split(3, 2), np.array_split(A, 3, 2)),
        (x.tensor_split([1, 3, 9], 2), np.split(A, [1, 3, 9], 2)),
        (x.tensor_split(cd.tensor([2]), 1), np.split(A, [2], 1)),
        (x.hsplit(3), np.hsplit(A, 3)),
        (x.vsplit(2), np.vsplit(A, 2)),
        (x.dsplit([1]), np.dsplit(A, [1])),
        (cd.hsplit(x[0, 0], 2), np.hsplit(A[0, 0], 2)),
        (x.chunk(3, 2), np.split(A, [2], 2)),
        (x.split([1, 2], 1), np.split(A, [1], 1)),
    ):
        assert len(parts) == len(expected)
        for actual, wanted in zip(parts, expected, strict=True):
            same(actual, wanted)
            assert not wanted.size or np.shares_memory(actual.numpy(), x.numpy())


def test_meshgrid_in_both_orders() -> None:
    """The indexing may be "ij" or "xy"."""
    a, b, c = np.arange(2), np.arange(3), np.arange(4)
    for indexing in ("ij", "xy"):
        for actual, wanted in zip(
            cd.meshgrid(t(a), t(b), t(c), indexing=indexing), np.meshgrid(a, b, c, indexing=indexing), strict=True
        ):
            same(actual, wanted)
    assert [tuple(g.shape) for g in cd.meshgrid([t(a[:0]), t(b)])] == [(0, 3), (0, 3)]


def test_atleast_of_several_is_a_tuple() -> None:
    """One tensor gives a tensor; several tensors, or a tuple, give a tuple."""
    single, pair, listed = cd.atleast_1d(t(1.0)), cd.atleast_2d(t(1.0), t(M)), cd.atleast_3d((t(1.0),))
    assert tuple(single.shape) == (1,)
    assert [tuple(p.shape) for p in pair] == [(1, 1), (3, 4)]
    assert [tuple(p.shape) for p in listed] == [(1, 1, 1)]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T, lambda x: x.t(), lambda x: x.transpose(0, 1), lambda x: x[0], lambda x: x[:, None],
        lambda x: x.unbind(0)[1], lambda x: x.diagonal(), lambda x: x.as_strided((2, 2), (1, 1)),
        lambda x: x.swapdims(0, 1),
        lambda x: x.squeeze(), lambda x: x.unsqueeze(1), lambda x: x.view(-1), lambda x: x.expand(2, 3, 4),
        lambda x: x.narrow(0, 1, 1), lambda x: x.unfold(1, 2, 1), lambda x: x.flatten(), lambda x: cd.movedim(x, 0, 1),
    ],
)  # fmt: skip
def test_views_share_memory_base_and_version(view: Callable[[Any], Any]) -> None:
    """A view sees writes to its base, and shares the version."""
    x = t(M)
    part = view(x)
    assert part._base is x
    x.fill_(7)
    assert (part == 7).all().item()
    assert part._counter is x._counter


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.repeat(1, 1), lambda x: cd.tile(x, 1), lambda x: x.rot90(0), lambda x: x.flip(0),
        lambda x: x.diag(),
        lambda x: x.narrow_copy(0, 0, 1), lambda x: cd.hstack([x]), lambda x: x.repeat_interleave(1, 0),
        lambda x: x.roll(0, 0),
    ],
)  # fmt: skip
def test_copies_share_nothing(copy: Callable[[Any], Any]) -> None:
    """A documented copy has its own memory, even if no element changes its position."""
    x = t(M)
    assert not np.shares_memory(copy(x).numpy(), x.numpy())


def test_writes_through_as_strided_change_the_base_and_its_gradient() -> None:
    """Elements that were written to have no gradient; the others keep theirs."""
    x = cd.tensor(M, requires_grad=True)
    y = x * 1.0
    y.as_strided((2,), (5,), 1).fill_(0)
    y.sum().backward()
    expected = np.ones(12)
    expected[[1, 6]] = 0
    same(x.grad, expected.reshape(3, 4))
    assert y[0, 1].item() == y[1, 2].item() == 0


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: t(M).repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dim"),
    (lambda: t(M).repeat(-1, 1), RuntimeError, r"Trying to create tensor with negative dimension -3: \[-3, 4\]"),
    (lambda: t(M).repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
    (lambda: t(M).repeat_interleave(t([1, 2]), 0), RuntimeError, "repeats must have the same size as input along dim"),
    (lambda: cd.fliplr(cd.ones(2)), RuntimeError, "Input must be >= 2-d."),
    (lambda: cd.flipud(cd.tensor(1.0)), RuntimeError, "Input must be >= 1-d."),
    (lambda: t(M).rot90(1, (0,)), RuntimeError, "expected total rotation dims == 2, but got dims = 1"),
    (
        lambda: t(M).rot90(1, (0, 0)),
        RuntimeError,
        "expected rotation dims to be different, but got dim0 = 0 and dim1 = 0",
    ),
    (lambda: cd.ones(2).rot90(), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    (lambda: cd.diag(t(A)), RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 3D"),
    (lambda: cd.diag_embed(t(M), 0, 0, 0), RuntimeError, "diagonal dimensions cannot be identical 0, 0"),
    (lambda: cd.trace(t(A)), RuntimeError, "trace: expected a matrix, but got tensor with dim 3"),
    (lambda: cd.hstack(()), RuntimeError, "hstack expects a non-empty TensorList"),
    (
        lambda: cd.vstack(t(M)),
        TypeError,
        r"vstack\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
    ),
    (lambda: cd.meshgrid(t([0]), t([1.0])), RuntimeError, "meshgrid expects all tensors to have the same dtype"),
    (lambda: cd.meshgrid(t(M)), RuntimeError, "Expected 0D or 1D tensor in the tensor list but got"),
    (
        lambda: cd.meshgrid(t([0]), indexing="foo"),
        RuntimeError,
        'indexing must be one of "xy" or "ij", but received: foo',
    ),
    (lambda: cd.tensor(1.0).tensor_split(1), RuntimeError, "tensor_split expected at least a 1-dimensional tensor"),
    (lambda: t(M).tensor_split(0), RuntimeError, "number of sections must be larger than 0, got 0"),
    (lambda: t(M).hsplit(3), RuntimeError, "the size of the dimension 4 is not divisible by the split_size 3"),
    (
        lambda: t(M).dsplit(2),
        RuntimeError,
        "dsplit requires a tensor with at least 3 dimension, but got a tensor with 2",
    ),
    (lambda: t(M).as_strided((2,), (1, 1)), RuntimeError, "mismatch in length of strides and shape"),
    (lambda: t(M).as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported at the moment"),
    (lambda: t(M).as_strided((2,), (12,)), RuntimeError, "are out of bounds for storage of 12 elements"),
    (lambda: t(M).as_strided((2,), (1,), 11), RuntimeError, "are out of bounds for storage of 12 elements"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_shapes_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()


def test_a_view_splits_the_blocks_of_memory_from_the_innermost_on() -> None:
    """A permuted tensor whose outer sizes happen to match the inner ones is copied, not viewed."""
    x = cd.arange(12).reshape(3, 2, 2).permute(2, 0, 1)
    assert x.reshape(6, 2).tolist() == [[0, 2], [4, 6], [8, 10], [1, 3], [5, 7], [9, 11]]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.view(6, 2)


def test_axis_stands_for_dim() -> None:
    """``axis`` is accepted as a keyword."""
    x = cd.arange(6.0).reshape(2, 1, 3)
    assert cd.cat([x, x], axis=2).shape == cd.cat([x, x], 2).shape == (2, 1, 6)
    assert cd.stack([x, x], axis=1).shape == (2, 2, 1, 3)
    assert x.squeeze(axis=1).shape == (2, 3)
    assert x.unsqueeze(axis=0).shape == (1, 2, 1, 3)
    assert len(x.unbind(axis=2)) == len(x.split(1, axis=2)) == len(x.chunk(3, axis=2)) == 3
    assert cd.take_along_dim(x, cd.tensor([[[2]]]), axis=2).shape == (2, 1, 1)
