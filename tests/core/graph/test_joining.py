"""Sums of gradients of slices that tile a tensor are concatenations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra._graph.joining import with_joined_slices
from candelabra.graph import Graph, runner, simplified, trace

Split = Callable[[cd.Tensor], cd.Tensor]

TILING: dict[str, Split] = {
    "halves": lambda x: x.chunk(2, -1)[0].sigmoid() * x.chunk(2, -1)[1],
    "three of the last dim": lambda x: (lambda q, k, v: q * k + v.exp())(*x.split(2, 2)),
    "parts of other sizes": lambda x: x[:1].sum(0) * x[1:].exp().sum(0),
    "a part is used twice": lambda x: x[:, :2] * x[:, 2:] * x[:, :2],
    "in another order": lambda x: (x[:, 3:] * x[:, :1]).exp() * x[:, 1:3].sum(1, keepdim=True),
}
OTHERS: dict[str, Split] = {
    "a part is missing": lambda x: x[:, :1] * x[:, 2:3],
    "parts overlap": lambda x: x[:, :3] * x[:, 1:],
    "parts of two dims": lambda x: x[:2].sum() * x[:, 2:].sum(),
    "with steps": lambda x: x[:, ::2] * x[:, 1::2],
}


def gradient(function: Split) -> Callable[[cd.Tensor], cd.Tensor]:
    """Return the function's derivative."""

    def run(x: cd.Tensor) -> Any:
        x = x.detach().requires_grad_()
        function(x).sum().backward()
        return x.grad

    return run


def names(graph: Graph) -> list[str]:
    """The names of the nodes."""
    return [node.name for node in graph]


@pytest.mark.parametrize("name", [*TILING, *OTHERS])
def test_the_gradient_of_slices_is_that_of_eager_calls(name: str, rng: Any) -> None:
    """Slices that tile the tensor are joined, others are added; the numbers are equal."""
    x = cd.tensor(rng.random((4, 4, 6)))
    derivative = gradient((TILING | OTHERS)[name])
    graph = simplified(trace(derivative, x))
    assert ("cat" in names(graph)) is (name in TILING)
    (out,) = runner(graph)(x._payload, *[t._payload for t in graph.captured.values()])
    assert (out == derivative(x)._payload).all()


def test_a_part_that_is_returned_stays(rng: Any) -> None:
    """What else uses the gradient of a slice gets it."""

    def both(g: cd.Tensor) -> tuple[cd.Tensor, cd.Tensor]:
        adjoint = cd.library.OPERATORS["basic_index_adjoint"].canonical
        first, second = adjoint(g, (4,), (slice(0, 2, 1),)), adjoint(g, (4,), (slice(2, 4, 1),))
        return first, first + second

    g = cd.tensor(rng.random(2))
    graph = with_joined_slices(trace(both, g))
    assert names(graph) == ["basic_index_adjoint", "basic_index_adjoint", "add"]


def test_a_part_that_is_written_later_stays(rng: Any) -> None:
    """A memory that is written is not moved."""

    def written(g: cd.Tensor) -> cd.Tensor:
        adjoint = cd.library.OPERATORS["basic_index_adjoint"].canonical
        h = g * 1
        first, second = adjoint(h, (4,), (slice(0, 2, 1),)), adjoint(g, (4,), (slice(2, 4, 1),))
        h.add_(1)
        return first + second

    g = cd.tensor(rng.random(2))
    graph = trace(written, g)
    assert names(with_joined_slices(graph)) == names(graph)
    (out,) = runner(simplified(graph))(g._payload)
    assert (out == written(g)._payload).all()
