"""In-place functions whose derivatives need the overwritten values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

INDEX = cd.tensor([0, 2, 0])


def scattered(x: Any, y: Any, reduce: str) -> Any:
    """Reduce along a vector in place."""
    return x.scatter_reduce_(0, INDEX, y, reduce)


def indexed(x: Any, y: Any, reduce: str) -> Any:
    """Reduce whole slices in place."""
    return x.index_reduce_(0, INDEX, y, reduce)


@pytest.mark.parametrize("reduce", ["prod", "amin", "amax", "mean"])
@pytest.mark.parametrize("function", [scattered, indexed])
@pytest.mark.parametrize("requires_grad", [(True, True), (True, False), (False, True)])
def test_in_place_reductions_have_the_gradients_of_functional_ones(
    function: Callable[..., Any], reduce: str, requires_grad: tuple[bool, bool]
) -> None:
    """Either operand, or both, may require a gradient."""
    a, b = [0.5, 2.0, -1.5, 3.0], [1.5, -2.0, 0.25]
    found, expected = [], []
    for grads, name in ((found, function.__name__), (expected, "")):
        x, y = cd.tensor(a, requires_grad=requires_grad[0]), cd.tensor(b, requires_grad=requires_grad[1])
        if name:
            out = function(x.clone(), y, reduce)
        else:
            out = getattr(x, {"scattered": "scatter_reduce", "indexed": "index_reduce"}[function.__name__])(
                0, INDEX, y, reduce
            )
        (out * cd.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
        grads += [out.tolist(), *(t.grad.tolist() for t in (x, y) if t.grad is not None)]
    assert found == expected
    assert len(found) == 1 + sum(requires_grad)


def test_in_place_renorm_has_the_gradient_of_the_functional_one() -> None:
    """Some rows exceed the limit, and one does not."""
    x = cd.tensor([[3.0, 4.0], [0.1, 0.2]], requires_grad=True)
    (x.clone().renorm_(2, 0, 1.0) ** 2).sum().backward()
    found, x.grad = x.grad, None
    (x.renorm(2, 0, 1.0) ** 2).sum().backward()
    assert x.grad is not None
    assert found is not None
    assert cd.allclose(found, x.grad)
