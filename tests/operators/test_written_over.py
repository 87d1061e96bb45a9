"""In-place functions whose derivatives ask for the values that they write over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

INDEX = cd.tensor([0, 2, 0])


def scattered(x: Any, y: Any, reduce: str) -> Any:
    """Along a vector, in place."""
    return x.scatter_reduce_(0, INDEX, y, reduce)


def indexed(x: Any, y: Any, reduce: str) -> Any:
    """Whole slices, in place."""
    return x.index_reduce_(0, INDEX, y, reduce)


@pytest.mark.parametrize("reduce", ["prod", "amin", "amax", "mean"])
@pytest.mark.parametrize("function", [scattered, indexed])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_reductions_in_place_have_the_gradients_of_those_that_are_not(
    function: Callable[..., Any], reduce: str, wanted: tuple[bool, bool]
) -> None:
    """Whichever of the two asks for a gradient."""
    a, b = [0.5, 2.0, -1.5, 3.0], [1.5, -2.0, 0.25]
    found, expected = [], []
    for grads, name in ((found, function.__name__), (expected, "")):
        x, y = cd.tensor(a, requires_grad=wanted[0]), cd.tensor(b, requires_grad=wanted[1])
        if name:
            out = function(x.clone(), y, reduce)
        else:
            out = getattr(x, {"scattered": "scatter_reduce", "indexed": "index_reduce"}[function.__name__])(
                0, INDEX, y, reduce
            )
        (out * cd.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
        grads += [out.tolist(), *(t.grad.tolist() for t in (x, y) if t.grad is not None)]
    assert found == expected
    assert len(found) == 1 + sum(wanted)


def test_renorm_in_place_has_the_gradient_of_the_one_that_is_not() -> None:
    """Rows that are longer than allowed, and one that is not."""
    x = cd.tensor([[3.0, 4.0], [0.1, 0.2]], requires_grad=True)
    (x.clone().renorm_(2, 0, 1.0) ** 2).sum().backward()
    found, x.grad = x.grad, None
    (x.renorm(2, 0, 1.0) ** 2).sum().backward()
    assert x.grad is not None
    assert found is not None
    assert cd.allclose(found, x.grad)
