"""Special cases of the index operators: empty indices of another rank, sums of bools, masks of 0-d tensors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest


@pytest.mark.parametrize("shape", [(2, 0), (0,), (0, 3, 1)])
def test_an_empty_index_may_have_any_rank(shape: tuple[int, ...]) -> None:
    """The result of an empty index is empty, and its gradient is zeros."""
    x = cd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    index = cd.empty(shape, dtype=cd.int64)
    picked = x.gather(0, index)
    assert picked.shape == shape
    picked.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert cd.scatter_add(x.detach(), 0, index, cd.empty(shape)).tolist() == [1.0, 2.0, 3.0]
    assert cd.scatter(x.detach(), 0, index, cd.empty(shape)).tolist() == [1.0, 2.0, 3.0]


def test_an_index_of_another_rank_is_refused() -> None:
    """A 1-d tensor cannot be indexed by a matrix of indices."""
    with pytest.raises(RuntimeError, match="Index tensor must have the same number of dimensions as input tensor"):
        cd.tensor([1.0, 2.0]).gather(0, cd.tensor([[0, 1], [1, 0]]))
    with pytest.raises(RuntimeError, match="Index tensor must have the same number of dimensions as self tensor"):
        cd.tensor([1.0, 2.0]).scatter_add(0, cd.tensor([[0, 1]]), cd.tensor([[1.0, 1.0]]))


@pytest.mark.parametrize("rows", [1, 3])
def test_bools_add_up_to_their_disjunction(rows: int) -> None:
    """Bools are added at repeated indices too, and the result is bool."""
    source = cd.tensor([[False] * rows, [True] * rows, [False] * rows])
    added = cd.zeros(2, rows, dtype=cd.bool).index_add(0, cd.tensor([1, 1, 0]), source)
    assert added.tolist() == [[False] * rows, [True] * rows]
    put = cd.zeros(2, rows, dtype=cd.bool).index_put((cd.tensor([1, 1, 0]),), source, accumulate=True)
    assert put.tolist() == added.tolist()


@pytest.mark.parametrize("held", [True, False])
def test_a_mask_selects_from_a_number(held: bool) -> None:
    """A mask of a 0-d tensor selects one element or none, with its gradient."""
    x: Any = cd.tensor(3.0, requires_grad=True)
    picked = cd.masked_select(x, cd.tensor(held))
    assert picked.tolist() == ([3.0] if held else [])
    picked.sum().backward()
    assert x.grad.item() == float(held)
