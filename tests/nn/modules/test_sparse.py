"""EmbeddingBag and Embedding: bags by loops in NumPy, padding, norms, gradients, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

TABLE = normal(5, 3)
FLAT, OFFSETS = np.array([4, 1, 1, 0, 3, 2, 1]), np.array([0, 2, 2, 6])
REDUCE: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "max": np.max}


def bags_of(flat: Any, offsets: Any, mode: str, padding: int = -1, factors: Any = None) -> np.ndarray:
    """Return the reduction of each bag, 0 for one without rows."""
    out = np.zeros((len(offsets), 3))
    for bag, (start, end) in enumerate(zip(offsets, [*offsets[1:], len(flat)], strict=True)):
        chosen = [i for i in range(start, end) if flat[i] != padding]
        rows = TABLE[flat[chosen]] * (1 if factors is None else factors[chosen, None])
        if chosen:
            out[bag] = REDUCE[mode](rows, axis=0)
    return out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_reduced(mode: str) -> None:
    """Offsets begin the bags, of which one is empty; a matrix has a bag in each row; padding is left out."""
    for padding in (None, 1, -5):
        module = nn.EmbeddingBag(5, 3, mode=mode, _weight=tensor(TABLE), padding_idx=padding)
        row = -1 if padding is None else padding % 5
        found = module(tensor(FLAT), tensor(OFFSETS))
        np.testing.assert_allclose(array(found.detach()), bags_of(FLAT, OFFSETS, mode, row), rtol=1e-12)
        for dtype in (cd.int64, cd.int32):
            found = module(cd.tensor(FLAT[:6].reshape(2, 3), dtype=dtype))
            want = bags_of(FLAT[:6], [0, 3], mode, row)
            np.testing.assert_allclose(array(found.detach()), want, rtol=1e-12)
    last = nn.EmbeddingBag(5, 3, mode=mode, _weight=tensor(TABLE), include_last_offset=True)
    found = last(tensor(FLAT), tensor(np.array([0, 3, 7])))
    np.testing.assert_allclose(array(found.detach()), bags_of(FLAT, [0, 3], mode), rtol=1e-12)
    assert module(cd.zeros(0, 3, dtype=cd.int64)).shape == (0, 3)
    assert module(cd.zeros(2, 0, dtype=cd.int64)).tolist() == [[0.0] * 3] * 2
    assert last(cd.zeros(0, dtype=cd.int64), cd.zeros(1, dtype=cd.int64)).shape == (0, 3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_derivatives_of_bags(mode: str) -> None:
    """First and second derivatives agree with finite differences, and the row of padding has no gradient."""
    flat, offsets = tensor(FLAT), tensor(OFFSETS)
    table = cd.tensor(TABLE).requires_grad_()
    assert gradcheck(lambda w: F.embedding_bag(flat, w, offsets, mode=mode), [table])
    assert gradgradcheck(lambda w: F.embedding_bag(flat, w, offsets, mode=mode), [table])
    F.embedding_bag(flat, table, offsets, mode=mode, padding_idx=1).sum().backward()
    assert table.grad is not None
    assert not table.grad[1].any()
    assert table.grad[4].any()


def test_weights_of_samples() -> None:
    """Rows are multiplied by the weights, which have a gradient, as does the table."""
    factors = normal(7, seed=3)
    found = F.embedding_bag(
        tensor(FLAT), tensor(TABLE), tensor(OFFSETS), mode="sum", per_sample_weights=tensor(factors)
    )
    np.testing.assert_allclose(array(found), bags_of(FLAT, OFFSETS, "sum", factors=factors), rtol=1e-12)
    leaves = [cd.tensor(TABLE).requires_grad_(), cd.tensor(factors[:6].reshape(2, 3)).requires_grad_()]
    index = tensor(FLAT[:6].reshape(2, 3))
    assert gradcheck(lambda w, f: F.embedding_bag(index, w, mode="sum", per_sample_weights=f), leaves)
    assert gradgradcheck(lambda w, f: F.embedding_bag(index, w, mode="sum", per_sample_weights=f), leaves)


def test_norms_and_frequencies() -> None:
    """Selected rows are scaled down in place; gradients are divided by the number of occurrences of the row."""
    table = cd.tensor(TABLE)
    F.embedding_bag(tensor(FLAT[:4]), table, tensor(OFFSETS[:2]), max_norm=0.5)
    norms = np.linalg.norm(array(table), axis=1)
    np.testing.assert_allclose(norms[[0, 1, 4]], 0.5, rtol=1e-6)
    np.testing.assert_array_equal(array(table)[2:4], TABLE[2:4])
    table = cd.tensor(TABLE).requires_grad_()
    F.embedding_bag(tensor(FLAT), table, tensor(OFFSETS), mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad is not None
    np.testing.assert_allclose(array(table.grad), 1.0, rtol=1e-12)


def test_construction_of_bags() -> None:
    """The table is normal with zeros in the row of padding; the printed form is PyTorch's; a given table is frozen."""
    module = nn.EmbeddingBag(50, 40, padding_idx=-1)
    assert list(module.state_dict()) == ["weight"]
    assert 0.9 < module.weight[:-1].std().item() < 1.1
    assert not module.weight[-1].any()
    assert repr(module) == "EmbeddingBag(50, 40, mode='mean', padding_idx=49)"
    other = nn.EmbeddingBag(5, 3, 2.0, 1.0, True, "sum")
    assert repr(other) == "EmbeddingBag(5, 3, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True, mode='sum')"
    given = nn.EmbeddingBag.from_pretrained(tensor(TABLE), mode="max", include_last_offset=True)
    assert not given.weight.requires_grad
    assert given.include_last_offset
    assert nn.EmbeddingBag.from_pretrained(tensor(TABLE), freeze=False).weight.requires_grad


IX, T = cd.tensor([0, 1]), cd.zeros(5, 3)
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: F.embedding_bag(IX, T), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(IX, T, IX[None]), ValueError, "offsets has to be a 1D Tensor"),
    (lambda: F.embedding_bag(IX[None], T, IX), ValueError, "if input is 2D, then offsets has to be None"),
    (lambda: F.embedding_bag(IX[0], T, IX), ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dim"),
    (lambda: F.embedding_bag(IX, T[0], IX), ValueError, "weight has to be a 2D Tensor, but got Tensor of dimension 1"),
    (lambda: F.embedding_bag(IX[None], T, mode="min"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda: F.embedding_bag(IX[None], T, mode="max", scale_grad_by_freq=True), ValueError, "max mode does not"),
    (lambda: F.embedding_bag(IX[None], T, mode="max", sparse=True), ValueError, "max mode does not support sparse wei"),
    (lambda: F.embedding_bag(IX[None], T, per_sample_weights=T[:1, :2]), NotImplementedError, "only supported for"),
    (lambda: F.embedding_bag(IX[None], T, per_sample_weights=T), ValueError, "it must have the same shape as the"),
    (lambda: F.embedding_bag(IX[None], T, mode="sum", per_sample_weights=cd.zeros(1, 2, dtype=cd.float64)),
     RuntimeError, "expected per_sample_weights of the weight's dtype, candelabra.float32, got candelabra.float64"),
    (lambda: F.embedding_bag(IX, T, IX + 1), RuntimeError, r"offsets\[0\] has to be 0, i\.e\., .* However, got 1"),
    (lambda: F.embedding_bag(IX, T, 3 * IX), RuntimeError, r"offsets\[-1\] can not be greater than input's len"),
    (lambda: F.embedding_bag(IX, T, IX[:0], include_last_offset=True), RuntimeError, "offsets should be at"),
    (lambda: F.embedding_bag(IX[None], T, padding_idx=5), RuntimeError, "padding_idx must be within the number of"),
    (lambda: F.embedding_bag(IX[None].to(cd.int8), T), RuntimeError, "scalar types: Long, Int; but got"),
    (lambda: F.embedding_bag(IX[None] + 4, T), IndexError, "index out of range in self"),
    (
        lambda: F.embedding_bag(IX[None], T.requires_grad_(), scale_grad_by_freq=True, sparse=True), RuntimeError,
        "scale_grad_by_freq is not supported with sparse gradients",
    ),
    (lambda: nn.EmbeddingBag(3, 2, padding_idx=3), AssertionError, "padding_idx must be within num_embeddings"),
    (lambda: nn.EmbeddingBag(3, 2, _weight=T), AssertionError, "Shape of weight does not match num_embeddings and"),
    (lambda: nn.EmbeddingBag.from_pretrained(IX), AssertionError, "Embeddings parameter is expected to be 2-dimension"),
    (lambda: nn.Embedding.from_pretrained(IX), AssertionError, "Embeddings parameter is expected to be 2-dimensional"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), CALLS, ids=[str(n) for n in range(len(CALLS))])
def test_mistakes(call: Any, error: type[Exception], text: str) -> None:
    """Shapes, modes and combinations that do not match raise PyTorch's errors."""
    with pytest.raises(error, match=text):
        call()


def test_the_old_order_of_arguments_warns() -> None:
    """The table may be passed first if it is floating and the indices are int64."""
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        found = F.embedding_bag(tensor(TABLE), tensor(FLAT), tensor(OFFSETS))
    np.testing.assert_allclose(array(found), bags_of(FLAT, OFFSETS, "mean"), rtol=1e-12)


def test_an_embedding_of_a_table() -> None:
    """``from_pretrained`` takes PyTorch's arguments by position."""
    module = nn.Embedding.from_pretrained(tensor(TABLE), False, 2, 1.5, 1.0, True)
    assert repr(module) == ("Embedding(5, 3, padding_idx=2, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True)")
    assert module.weight.requires_grad
