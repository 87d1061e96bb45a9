"""Functions of networks in the top namespace: PyTorch's order of arguments, and reductions that are numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.nn import functional as F

X, Y, Z = (cd.tensor(rows) for rows in ([[0.1, 0.7], [0.3, -0.9]], [[0.2, 0.4], [0.9, 0.5]], [[0.6, -0.1], [1.5, 0.3]]))
SIGNS, ROWS = cd.tensor([[1.0, -1.0], [-1.0, 1.0]]), cd.tensor([1.0, -1.0])

LOSSES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("kl_div", lambda loss, r: loss(X, Y, reduction=r, log_target=True)),
    ("binary_cross_entropy_with_logits", lambda loss, r: loss(X, Y, Z, pos_weight=Y, reduction=r)),
    ("poisson_nll_loss", lambda loss, r: loss(X, Y, log_input=True, full=True, eps=1e-8, reduction=r)),
    ("margin_ranking_loss", lambda loss, r: loss(X, Y, SIGNS, 0.2, reduction=r)),
    ("hinge_embedding_loss", lambda loss, r: loss(X, SIGNS, 0.5, reduction=r)),
    ("cosine_embedding_loss", lambda loss, r: loss(X, Y, ROWS, 0.1, reduction=r)),
    ("triplet_margin_loss", lambda loss, r: loss(X, Y, Z, 2.0, 1.0, 1e-3, True, reduction=r)),
]


@pytest.mark.parametrize(("name", "call"), LOSSES, ids=[name for name, _ in LOSSES])
def test_a_number_stands_for_a_reduction(name: str, call: Callable[[Any, Any], Any]) -> None:
    """0 is none, 1 the mean and 2 the sum; any other number, and a name, are refused."""
    top = getattr(cd, name)
    for number, reduction in enumerate(("none", "mean", "sum")):
        assert cd.equal(call(top, number), call(getattr(F, name), reduction))
    with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
        call(top, 3)
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'reduction'.* must be int, not str"):
        call(top, "mean")


def test_the_mean_is_the_default() -> None:
    """Without a reduction the losses give the mean."""
    assert cd.kl_div(X, Y).item() == pytest.approx(F.kl_div(X, Y).item())
    assert cd.triplet_margin_loss(X, Y, Z).item() == pytest.approx(F.triplet_margin_loss(X, Y, Z).item())


def test_embedding_takes_the_table_first() -> None:
    """``cd.embedding(weight, indices)`` selects rows; the row ``padding_idx`` gets no gradient."""
    table, indices = X.clone().requires_grad_(), cd.tensor([1, 0, 1])
    out = cd.embedding(table, indices, 0)
    assert cd.equal(out, X[indices])
    assert cd.equal(cd.autograd.grad(out.sum(), [table])[0], cd.tensor([[0.0, 0.0], [2.0, 2.0]]))


def test_embedding_renorm_limits_rows_in_place() -> None:
    """The selected rows are scaled down to the norm, and the tensor itself is returned."""
    table = cd.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    assert cd.embedding_renorm_(table, cd.tensor([0, 1]), 1.0, 2.0) is table
    assert cd.allclose(table, cd.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))
    with pytest.raises(RuntimeError, match=r"scalar types: Long, Int; but got Float .*embedding_renorm_"):
        cd.embedding_renorm_(table, X, 1.0, 2.0)


def test_weight_and_bias_precede_running_statistics() -> None:
    """``cd.batch_norm`` and ``cd.instance_norm`` take weight and bias before the running statistics."""
    x, weight, bias = cd.arange(12.0).reshape(2, 2, 3), cd.tensor([2.0, 3.0]), cd.tensor([0.5, -0.5])
    mean, var = cd.tensor([1.0, 2.0]), cd.tensor([4.0, 9.0])
    evaluated = cd.batch_norm(x, weight, bias, mean, var, False, 0.1, 0.0, False)
    assert cd.allclose(evaluated[:, 1], (x[:, 1] - 2) / 3 * 3 - 0.5)
    cd.batch_norm(x, weight, bias, mean, var, True, 0.5, 1e-5, True)
    assert mean.tolist() == [2.5, 4.5]  # halfway to the means 4 and 7
    normalized = cd.instance_norm(x, weight, None, None, None, True, 0.1, 0.0, False)
    assert normalized[0, 0].tolist() == pytest.approx([-2 * math.sqrt(1.5), 0.0, 2 * math.sqrt(1.5)])


def test_bilinear_is_a_function_of_both_namespaces() -> None:
    """``cd.bilinear`` is ``nn.functional.bilinear``, and no method."""
    weight = cd.arange(8.0).reshape(2, 2, 2)
    assert cd.equal(cd.bilinear(X, Y, weight), F.bilinear(X, Y, weight))
    assert not hasattr(cd.Tensor, "bilinear")
