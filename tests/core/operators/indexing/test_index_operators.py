"""The operators that index by name, such as gather and index_select."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd.gradcheck import gradcheck

A = np.arange(24.0).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, False]])


def same(actual: Any, expected: Any) -> None:
    """Assert that shape, dtype and every element are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.detach().numpy(), expected)


def _numpy_scatter(out: Any, dim: int, index: Any, src: Any, combine: Any) -> Any:
    for place in np.ndindex(*index.shape):
        target = (*place[:dim], index[place], *place[dim + 1 :])
        out[target] = combine(out[target], src[place])
    return out


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gather_and_scatter_follow_their_definition(dim: int) -> None:
    """Each agrees with a loop, with an index smaller than the tensor and with repeated indices."""
    rng = np.random.default_rng(3)
    d = dim % 3
    shape = [2, 2, 3]
    shape[d] = 5
    index = rng.integers(0, A.shape[d], shape)
    src = rng.standard_normal([s + 1 for s in shape])
    x, i, s = cd.tensor(A), cd.tensor(index), cd.tensor(src)
    picked = np.take_along_axis(A[tuple(slice(0, n) if k != d else slice(None) for k, n in enumerate(shape))], index, d)
    same(x.gather(dim, i), picked)
    same(x.scatter(dim, i, s), _numpy_scatter(A.copy(), d, index, src, lambda a, b: b))
    same(x.scatter(dim, i, 2), _numpy_scatter(A.copy(), d, index, np.full(index.shape, 2.0), lambda a, b: b))
    np.testing.assert_allclose(
        x.scatter_add(dim, i, s).numpy(), _numpy_scatter(A.copy(), d, index, src, lambda a, b: a + b), rtol=1e-13
    )
    np.testing.assert_allclose(
        x.scatter(dim, i, s, reduce="multiply").numpy(),
        _numpy_scatter(A.copy(), d, index, src, lambda a, b: a * b),
        rtol=1e-13,
    )
    y = cd.tensor(A)
    assert y.scatter_(dim, i, s) is y
    same(y, x.scatter(dim, i, s).numpy())
    x.requires_grad_()
    s.requires_grad_()
    assert gradcheck(lambda x: x.gather(dim, i), (x,))
    assert gradcheck(lambda x, s: x.scatter_add(dim, i, s), (x, s))


def test_index_operators_agree_with_numpy() -> None:
    """index_select, index_add, index_fill, index_copy, take, take_along_dim and their in-place forms agree."""
    x, i = cd.tensor(A), cd.tensor([2, 0, 2])
    same(x.index_select(1, i), A[:, [2, 0, 2]])
    source = np.arange(24.0).reshape(2, 3, 4) * 0.5
    expected = A.copy()
    np.add.at(expected, (slice(None), [2, 0, 2]), 2 * source)
    same(x.index_add(1, i, cd.tensor(source), alpha=2), expected)
    filled = A.copy()
    filled[:, [2, 0]] = 9
    same(x.index_fill(1, i, 9), filled)
    same(cd.tensor(A).index_fill_(1, i, cd.tensor(9)), filled)
    copied = A.copy()
    copied[:, [2, 0]] = source[:, :2]
    same(x.index_copy(1, cd.tensor([2, 0]), cd.tensor(source[:, :2])), copied)
    same(cd.take(x, cd.tensor([[0, -1]])), A.reshape(-1)[[[0, -1]]])
    order = np.argsort(-A, axis=1)
    same(cd.take_along_dim(x, cd.tensor(order), 1), np.take_along_axis(A, order, 1))
    same(cd.take_along_dim(x, cd.tensor([[[1]]]), 1), A[:, 1:2])


def test_half_types_add_in_single_precision() -> None:
    """A thousand ones add up to 1000 in every dtype."""
    for dtype in (cd.float16, cd.bfloat16):
        ones = cd.ones(4000, dtype=dtype)
        total = cd.zeros(1, dtype=dtype).index_add(0, cd.zeros(4000, dtype=cd.int64), ones)
        assert total.item() == pytest.approx(4000, rel=0.01)
        total = cd.zeros(1, 3, dtype=dtype).index_put(
            (cd.zeros(4000, dtype=cd.int64),), cd.ones(4000, 3, dtype=dtype), True
        )
        assert total[0, 1].item() == pytest.approx(4000, rel=0.01)


def test_index_put_takes_masks_and_none() -> None:
    """A mask is replaced by its indices; None selects a whole dim; accumulate adds every occurrence."""
    x = cd.zeros(2, 3)
    x.index_put_((cd.tensor(MASK),), cd.tensor([1.0, 2.0, 3.0]))
    same(x, np.array([[1, 0, 2], [0, 3, 0]], np.float32))
    x = cd.zeros(2, 3).index_put((None, cd.tensor([0, 0, 2])), cd.tensor([1.0, 2.0, 3.0]), accumulate=True)
    same(x, np.array([[3, 0, 3]] * 2, np.float32))


def test_nonzero_in_both_forms() -> None:
    """The result has rows of indices in C order, or one tensor per dim; 0-d tensors are supported."""
    rows = cd.tensor(MASK).nonzero()
    same(rows, np.argwhere(MASK))
    for actual, expected in zip(cd.nonzero(cd.tensor(MASK), as_tuple=True), np.nonzero(MASK), strict=True):
        same(actual, expected)
    assert tuple(cd.tensor(3.0).nonzero().shape) == (1, 0)
    same(cd.tensor(3.0).nonzero(as_tuple=True)[0], [0])
    same(cd.argwhere(cd.tensor(MASK)), np.argwhere(MASK))
    out = cd.empty(0, dtype=cd.int64)
    assert cd.nonzero(cd.tensor(MASK), as_tuple=False, out=out) is out
    same(out, np.argwhere(MASK))
    indices = (cd.empty(0, dtype=cd.int64), cd.empty(0, dtype=cd.int64))
    cd.nonzero(cd.tensor(MASK), as_tuple=True, out=indices)
    for actual, expected in zip(indices, np.nonzero(MASK), strict=True):
        same(actual, expected)
    with pytest.raises(TypeError, match=r"nonzero\(\): argument 'out' must be a tuple of 2 Tensors"):
        cd.nonzero(cd.tensor(MASK), as_tuple=True, out=out)


def test_parts_replaced_in_a_copy() -> None:
    """select_scatter, slice_scatter, diagonal_scatter and the masked forms do not change their input."""
    x = cd.tensor(A)
    expected = A.copy()
    expected[:, 1] = 5
    same(x.select_scatter(cd.full((2, 4), 5.0), 1, 1), expected)
    expected = A.copy()
    expected[:, 0:3:2] = 5
    same(x.slice_scatter(cd.full((2, 2, 4), 5.0), 1, 0, 3, 2), expected)
    same(cd.diagonal_scatter(cd.zeros(2, 2), cd.ones(2)), np.eye(2, dtype=np.float32))
    same(x.masked_fill(cd.tensor(A > 7), 0), np.where(A > 7, 0, A))
    same(x.masked_scatter(cd.tensor(A > 21), cd.tensor([8.0, 9.0, 1.0]).double()), np.where(A > 21, A - 14, A))
    same(x.masked_select(cd.tensor(A > 7)), A[A > 7])
    same(cd.arange(4).masked_fill(cd.arange(4) > 1, 2.5), [0, 1, 2, 2])
    same(x, A)
