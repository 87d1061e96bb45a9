"""The memory plan names dead operands of one spec, and nothing that others refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.graph import Graph, Node, Value, fuse, memory_plan, trace

SQUARE = cd.ones(4, 4)


def pointwise(node: Node) -> bool:
    """Return whether a node is pointwise, and no view."""
    return node.form == "function" and getattr(node.op.rule, "pointwise", False)


def planned(function: Callable[..., Any], *arguments: cd.Tensor) -> list[dict[int, int]]:
    """Return the plan of each group of a function, in order."""
    graph = fuse(trace(function, *arguments), pointwise)
    plan = memory_plan(graph)
    return [plan.get(node, {}) for node in graph if isinstance(node.op, Graph)]


def returned_too(x: cd.Tensor) -> tuple[cd.Tensor, cd.Tensor]:
    """Return an operand of the group."""
    y = x @ x
    return y, (y + 1).exp()


def used_later(x: cd.Tensor) -> cd.Tensor:
    """Use an operand of the group after it."""
    y = x @ x
    return (y + 1).exp() @ y


def viewed_later(x: cd.Tensor) -> cd.Tensor:
    """Use a view of an operand after the group."""
    y = x @ x
    return (y + 1).exp() @ y.t()


def returned_view(x: cd.Tensor) -> tuple[cd.Tensor, cd.Tensor]:
    """Return a view of an operand."""
    y = x @ x
    return y[0], (y + 1).exp()


def seen_twice(x: cd.Tensor) -> cd.Tensor:
    """Read an operand and a view of it, in another order of elements."""
    y = x @ x
    return (y + y.t()).exp()


def written(x: cd.Tensor) -> cd.Tensor:
    """Write an operand in place before the group."""
    y = x @ x
    y[0].add_(1)
    return (y + 1).exp()


def transposed(x: cd.Tensor) -> cd.Tensor:
    """Read a view alone, whose strides are others than the result's."""
    return ((x @ x).t() + 1).exp()


def broadcast(x: cd.Tensor) -> cd.Tensor:
    """Read a row."""
    return ((x @ x).sum(0) + x).exp()


def of_another_dtype(x: cd.Tensor) -> cd.Tensor:
    """Return bools, for numbers."""
    return ((x @ x) > 0) & (x > 1)


@pytest.mark.parametrize(
    "function",
    [returned_too, used_later, viewed_later, returned_view, seen_twice, written, broadcast, of_another_dtype],
    ids=lambda f: f.__name__,
)
def test_memory_that_others_refer_to_is_not_reused(function: Callable[..., Any]) -> None:
    """Results that escape, views, operands of later nodes, and tensors of another spec keep their memory."""
    assert planned(function, SQUARE) == [{}]


def test_arguments_and_constants_keep_their_memory() -> None:
    """Inputs of a graph belong to the caller."""
    assert planned(lambda x: (x + SQUARE).exp(), cd.ones(4, 4)) == [{}]


def test_a_dead_operand_gives_its_memory_to_a_result() -> None:
    """Each operand serves one result."""
    assert planned(lambda x: ((x @ x) + 1).exp(), SQUARE) == [{0: 0}]
    assert planned(lambda x: ((x @ x) + x.sum(0)).exp(), SQUARE) == [{0: 0}]
    assert planned(lambda x: ((x @ x) + (x @ x.t())).exp(), SQUARE) == [{0: 0}]

    def two(x: cd.Tensor) -> tuple[cd.Tensor, cd.Tensor]:
        first = (x @ x) + (x @ x.t())
        return first, first.exp()

    assert planned(two, SQUARE) == [{0: 0, 1: 1}]


def test_a_group_is_the_last_use_by_position() -> None:
    """A memory that dies in the second of two groups is free there only."""

    def chain(x: cd.Tensor) -> cd.Tensor:
        y = x @ x
        z = (y + 1).exp() @ x
        return (z * y).sin()

    assert planned(chain, SQUARE) == [{}, {0: 0}]


def test_a_node_without_operands_is_no_group() -> None:
    """A graph of one node has no plan."""
    graph = trace(lambda x: x @ x, SQUARE)
    assert memory_plan(graph) == {}
    assert all(isinstance(value, Value) for value in graph.inputs)
