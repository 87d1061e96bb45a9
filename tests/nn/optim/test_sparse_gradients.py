"""Optimizers with sparse gradients, compared with the same steps with dense gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.nn import functional as F


def steps(
    optimizer: Callable[[Any], Any], table: np.ndarray, indices: np.ndarray, *, sparse: bool, **options: Any
) -> Any:
    """Return the table after three steps, and the optimizer."""
    module = nn.Embedding.from_pretrained(cd.tensor(table), freeze=False, sparse=sparse, **options)
    created = optimizer(module.parameters())
    for count in range(1, 4):
        created.zero_grad()
        rows = module(cd.tensor(indices[:count]))
        (rows.square().sum() + rows[:1].sin().sum()).backward()
        assert module.weight.grad is not None
        assert module.weight.grad.is_sparse is sparse
        created.step()
    return np.asarray(module.weight.detach()), created


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: optim.SGD(p, 0.1),
        lambda p: optim.SGD(p, 0.1, maximize=True, fused=False),
        lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
        lambda p: optim.Adagrad(p, 0.1),
    ],
    ids=["SGD", "SGD, maximize", "momentum", "Adagrad"],
)
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_steps_are_those_of_dense_gradients(optimizer: Any, padding_idx: Any, rng: np.random.Generator) -> None:
    """Rows without a gradient do not change, and equal indices add up."""
    table, indices = rng.normal(size=(6, 3)), rng.integers(0, 6, (3, 4))
    sparse, _ = steps(optimizer, table, indices, sparse=True, padding_idx=padding_idx)
    dense, _ = steps(optimizer, table, indices, sparse=False, padding_idx=padding_idx)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-12)


def test_sparse_adam_is_adam_in_the_rows_that_have_a_gradient(rng: np.random.Generator) -> None:
    """If every row has a gradient in every step, it is Adam; otherwise the other rows and their moments stay."""
    table, every = rng.normal(size=(4, 3)), np.tile(np.arange(4), (3, 1))
    # SparseAdam adds eps before the bias is corrected, which a tiny eps hides, whatever the gradients are.
    sparse, created = steps(lambda p: optim.SparseAdam(p, 0.1, eps=1e-20), table, every, sparse=True)
    dense, _ = steps(lambda p: optim.Adam(p, 0.1, eps=1e-20), table, every, sparse=False)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-14)
    assert list(created.state_dict()["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert created.state_dict()["state"][0]["step"] == 3
    some, created = steps(lambda p: optim.SparseAdam(p, 0.1, maximize=True), table, every[:, :2], sparse=True)
    np.testing.assert_array_equal(some[2:], table[2:])
    assert not (some[:2] == table[:2]).any()
    assert not created.state_dict()["state"][0]["exp_avg"][2:].any()


def test_a_step_without_elements_changes_nothing() -> None:
    """A gradient that stores nothing only counts the step."""
    p = nn.Parameter(cd.ones(3, 2))
    created = optim.SparseAdam([p])
    p.grad = cd.sparse_coo_tensor(cd.zeros(1, 0, dtype=cd.int64), cd.zeros(0, 2), (3, 2))
    created.step()
    assert p.tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_with_sparse_gradients(mode: str, rng: np.random.Generator) -> None:
    """The sparse gradient of EmbeddingBag has the elements of the dense one."""
    table, indices, offsets = rng.normal(size=(6, 3)), cd.tensor([4, 1, 1, 0, 3]), cd.tensor([0, 2, 2])
    gradients = []
    for sparse in (False, True):
        weight = cd.tensor(table, requires_grad=True)
        F.embedding_bag(indices, weight, offsets, mode=mode, sparse=sparse, padding_idx=0).square().sum().backward()
        assert weight.grad is not None
        assert weight.grad.is_sparse is sparse
        gradients.append(np.asarray(weight.grad.to_dense()))
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12)


def test_sparse_and_dense_gradients_of_one_table_add_up() -> None:
    """A table that is used in both ways gets a dense gradient."""
    weight = cd.ones(3, 2, requires_grad=True)
    (F.embedding(cd.tensor([1]), weight, sparse=True).sum() + weight.sum()).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1, 1], [2, 2], [1, 1]]
    F.embedding(cd.tensor([2]), weight, sparse=True).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [2, 2], [2, 2]]


@pytest.mark.parametrize("name", ["Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Adafactor"])
def test_optimizers_that_need_dense_gradients_say_so(name: str) -> None:
    """They refuse a sparse gradient before the parameter or the state changes."""
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        steps(getattr(optim, name), np.ones((4, 3)), np.zeros((3, 4), int), sparse=True)


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_adam_names_sparse_adam(name: str) -> None:
    """Adam refuses a sparse gradient, also with weight decay, and names the optimizer that takes it."""
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients, please consider SparseAdam"):
        steps(lambda p: getattr(optim, name)(p, weight_decay=0.1), np.ones((4, 3)), np.zeros((3, 4), int), sparse=True)


def test_adagrad_refuses_weight_decay_with_sparse_gradients() -> None:
    """Weight decay would change the rows without a gradient, too."""
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        steps(lambda p: optim.Adagrad(p, weight_decay=0.1), np.ones((4, 3)), np.zeros((3, 4), int), sparse=True)


@pytest.mark.parametrize("options", [{"weight_decay": 0.1}, {"weight_decay": 0.1, "momentum": 0.9}])
def test_sgd_refuses_weight_decay_with_sparse_gradients(options: dict[str, float]) -> None:
    """As in PyTorch: weight decay would change the rows without a gradient, too."""
    with pytest.raises(RuntimeError, match="SGD does not support sparse gradients with weight_decay"):
        steps(lambda p: optim.SGD(p, **options), np.ones((4, 3)), np.zeros((3, 4), int), sparse=True)


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_fused_steps_refuse_sparse_gradients(name: str) -> None:
    """As in PyTorch; the parameter does not change. Dense gradients are taken."""
    table, indices = np.ones((4, 3)), np.zeros((3, 4), int)
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients with fused=True"):
        steps(lambda p: getattr(optim, name)(p, 0.1, fused=True), table, indices, sparse=True)
    moved, _ = steps(lambda p: getattr(optim, name)(p, 0.1, fused=True), table, indices, sparse=False)
    assert not (moved[0] == 1).any()


@pytest.mark.parametrize("name", ["SparseAdam", "Adagrad"])
def test_a_scalar_may_have_a_sparse_gradient(name: str) -> None:
    """A sparse gradient without dims has one value and no positions."""
    p = nn.Parameter(cd.tensor(2.0))
    p.grad = cd.tensor(3.0).to_sparse()
    getattr(optim, name)([p], lr=0.5).step()
    assert p.item() == pytest.approx(1.5)


def test_lbfgs_makes_sparse_gradients_dense(rng: np.random.Generator) -> None:
    """LBFGS collects all gradients in one vector."""
    table = rng.normal(size=(4, 3))
    found = []
    for sparse in (True, False):
        module = nn.Embedding.from_pretrained(cd.tensor(table), freeze=False, sparse=sparse)
        optimizer = optim.LBFGS(module.parameters())

        def closure(module: Any = module, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (module(cd.tensor([0, 2])) - 1).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        found.append(np.asarray(module.weight.detach()))
    np.testing.assert_array_equal(*found)


def test_sparse_adam_refuses_complex_parameters() -> None:
    """PyTorch's SparseAdam refuses them, too."""
    with pytest.raises(
        ValueError, match=r"Complex params at indices \[\(0, 0\)\]: SparseAdam does not support complex"
    ):
        optim.SparseAdam([cd.ones(2, dtype=cd.complex64)])
