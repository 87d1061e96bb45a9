"""The pass that makes the packing of operands nodes of a graph, with a kernel of the test's own."""

from __future__ import annotations

from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra._graph.packing import PackedOnce
from candelabra._versions import expose
from candelabra.dtypes import dtype
from candelabra.graph import (
    Graph,
    Node,
    Packing,
    Spec,
    Value,
    decomposed,
    packed_operands,
    runner,
    trace,
    with_packed_operands,
)

CPU = cd.device("cpu")


class Reversed(NamedTuple):
    """The rows of a matrix in reverse order, or those of its transpose."""

    shape: tuple[int, ...]
    dtype: dtype
    transposed: bool = False


class Product:
    """The kernel of a product that reads its right matrix in layouts of its own, and counts how often it packs."""

    def __init__(self, kernel: Any, both: bool = False) -> None:
        self.kernel = kernel
        self.both = both
        self.packed = 0

    def __call__(self, x: Any, y: Any) -> Any:
        return self.kernel(x, y)

    def packing(self, x: Spec, y: Spec) -> Packing | None:
        """Pack the right matrix, unless it has one column."""
        assert (x.dtype, len(x.shape)) == (y.dtype, 2)
        if y.shape[1] == 1:
            return None
        layouts = [Reversed(y.shape, y.dtype), Reversed(y.shape[::-1], y.dtype, True)]
        return Packing(1, tuple(layouts[: 1 + self.both]), self.pack, self.over_packed)

    def pack(self, y: Any, layout: Reversed) -> Any:
        """Copy the rows."""
        self.packed += 1
        return (y.T if layout.transposed else y)[::-1].copy()

    def over_packed(self, x: Any, y: Any, packed: list[Any]) -> Any:
        """Multiply by the packed matrix: the other one is not read."""
        assert len(packed) == 1 + self.both
        if self.both:
            assert (packed[1] == y.T[::-1]).all()
        return self.kernel(x, packed[0][::-1])


def products(function: Any, *tensors: cd.Tensor, both: bool = False) -> tuple[Graph, Product]:
    """Trace a function with the test's kernel for its products."""
    graph = trace(function, *tensors)
    found = next(node for node in graph if node.name == "matmul")
    product = Product(found.kernel, both)
    nodes = [
        Node(n.op, n.args, n.results, n.form, product, n.where) if n.name == "matmul" else n for n in graph
    ]  # fmt: skip
    return graph.with_nodes(nodes), product


def numbers(*shape: int) -> cd.Tensor:
    """Numbers that differ."""
    return cd.arange(float(cd.tensor(shape).prod())).reshape(shape)


def names(graph: Graph) -> list[str]:
    """The names of the nodes, in order."""
    return [node.name for node in graph]


def run(graph: Graph, *tensors: cd.Tensor) -> list[Any]:
    """Run a graph without prepared nodes."""
    return [out.tolist() for out in runner(graph)(*[t._payload for t in tensors])]


def test_products_with_one_matrix_pack_it_once() -> None:
    """Calls that read the same values in one layout share a node, and compute what they computed before."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, product = products(lambda x, y: (x @ y, (x + 1) @ y), x, y)
    shared = with_packed_operands(graph)
    assert names(shared) == ["packed", "matmul", "add", "matmul"]
    assert run(shared, x, y) == [(x @ y).tolist(), ((x + 1) @ y).tolist()]
    assert product.packed == 1
    first = shared.nodes[0]
    assert [packed_operands(node) for node in shared] == [[], [*first.results], [], [*first.results]]
    assert "v0: float32[3, 3] = packed(a1, Reversed(shape=(3, 3)" in str(shared)
    assert "matmul(a0, a1, [v0])" in str(shared)


def test_packing_that_nothing_shares_stays_in_the_kernel() -> None:
    """A node of its own would gain nothing."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, _ = products(lambda x, y: x @ y + x @ (y * 2), x, y)
    assert names(with_packed_operands(graph)) == names(graph)


def test_a_kernel_may_decline() -> None:
    """A kernel that returns None for a call keeps its operand."""
    x, y = numbers(2, 3), numbers(3, 1)
    graph, product = products(lambda x, y: (x @ y, (x + 1) @ y), x, y)
    assert names(with_packed_operands(graph)) == names(graph)
    assert product.packed == 0


def test_a_write_between_two_calls_separates_them() -> None:
    """Both pack what the matrix is at that moment."""

    def write(x: cd.Tensor, y: cd.Tensor) -> tuple[cd.Tensor, ...]:
        first = x @ y, x @ y
        y.add_(1)
        return (*first, x @ y, x @ y)

    x, y = numbers(2, 3), numbers(3, 3)
    graph, product = products(write, x, y.clone())
    packed = with_packed_operands(graph)
    assert names(packed) == ["packed", "matmul", "matmul", "add_", "packed", "matmul", "matmul"]
    assert run(packed, x, y.clone()) == [(x @ z).tolist() for z in (y, y, y + 1, y + 1)]
    assert product.packed == 2


def test_several_layouts_of_one_operand() -> None:
    """Each layout is a node; the kernel takes them as a list, in order."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, product = products(lambda x, y: (x @ y, (x + 1) @ y), x, y, both=True)
    packed = with_packed_operands(graph)
    assert names(packed) == ["packed", "packed", "matmul", "add", "matmul"]
    assert run(packed, x, y) == [(x @ y).tolist(), ((x + 1) @ y).tolist()]
    assert product.packed == 2
    assert names(with_packed_operands(packed)) == names(packed)  # nothing is packed twice


def prepared(x: cd.Tensor, y: cd.Tensor) -> tuple[Graph, Product]:
    """A graph of a product whose matrix is packed before it."""
    graph, product = products(lambda x: x @ y, x)
    [captured] = graph.captured
    return with_packed_operands(graph, lambda value: value is captured), product


def test_fixed_operands_are_packed_before_the_graph() -> None:
    """The graph has the packed operand as an input, and prints and draws the node that computes it."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, product = prepared(x, y)
    assert names(graph) == ["matmul"]
    [node] = graph.prepared
    assert graph.inputs[-1] is node.results[0]
    assert graph.with_nodes(graph.nodes).prepared == graph.prepared
    text = str(graph)
    assert text.startswith("graph(a0: float32[2, 3], c0: float32[3, 3]):")
    assert "p0: float32[3, 3] = packed(c0, " in text
    assert "once for each version" in text
    assert "packed" in graph.draw().source
    once = PackedOnce(node)
    (out,) = runner(graph)(x._payload, y._payload, once(y._payload, y._counter))
    assert out.tolist() == (x @ y).tolist()
    assert product.packed == 1


def test_prepared_operands_are_packed_again_when_they_have_changed() -> None:
    """A write, another version cell or another payload packs again; memory that others write, at each call."""
    y = numbers(3, 3)
    graph, product = prepared(numbers(2, 3), y)
    once = PackedOnce(graph.prepared[0])
    assert once(y._payload, y._counter) is once(y._payload, y._counter)
    assert product.packed == 1
    y.add_(1)
    assert once(y._payload, y._counter).tolist() == y.flip(0).tolist()
    assert product.packed == 2
    y.data.add_(1)
    assert once(y._payload, y._counter).tolist() == y.flip(0).tolist()
    assert product.packed == 3
    other = y * 2
    assert once(other._payload, y._counter).tolist() == other.flip(0).tolist()
    assert once(other._payload, other._counter).tolist() == other.flip(0).tolist()
    assert product.packed == 5
    expose(other._counter)
    assert once(other._payload, other._counter) is not once(other._payload, other._counter)
    assert product.packed == 7


def test_a_packed_operand_decomposes_to_none() -> None:
    """A packing node has no operators that could replace it: its layout is the device's."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, _ = products(lambda x, y: (x @ y, (x + 1) @ y), x, y, both=True)
    packed = with_packed_operands(graph)
    transposed = Value(Spec((3, 4), (4, 1), 0, cd.float32, x._instance))
    [first, *others] = packed.nodes
    other = packed.with_nodes([Node(first.op, first.args, [transposed], kernel=first.kernel), *others])
    assert names(decomposed(other, lambda node: node.name == "packed"))[0] == "packed"


def test_a_call_without_kernel_ignores_packed_operands() -> None:
    """The operator serves a kernel that declines after all."""
    x, y = numbers(2, 3), numbers(3, 3)
    graph, _ = products(lambda x, y: (x @ y, (x + 1) @ y), x, y)
    packed = with_packed_operands(graph)
    nodes = [
        Node(n.op, n.args, n.results, n.form, lambda *_: NotImplemented, n.where) if n.name == "matmul" else n
        for n in packed
    ]
    assert run(packed.with_nodes(nodes), x, y) == [(x @ y).tolist(), ((x + 1) @ y).tolist()]


@pytest.mark.parametrize("name", ["Packing", "PackedLayout", "packed_operands", "with_packed_operands"])
def test_the_pass_is_public(name: str) -> None:
    """Devices of others use it as ours do."""
    assert name in cd.graph.__all__
