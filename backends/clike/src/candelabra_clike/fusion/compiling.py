"""Compile a graph for a device of C-like kernels: groups of nodes become fused kernels, the core runs the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from candelabra.backend import is_contiguous_layout
from candelabra.graph import Graph, Node, default_kernel, fuse, gain, memory_plan, runner, values_read
from candelabra.graph import Value as Tensor

from candelabra_clike.engine import Engine
from candelabra_clike.fusion.kernels import fused_kernel, on_strided_arrays
from candelabra_clike.fusion.lowering import is_fusible
from candelabra_clike.fusion.products import products_in
from candelabra_clike.fusion.products import suits as suits_product
from candelabra_clike.fusion.reductions import reductions_in, suits
from candelabra_clike.fusion.rows import row_node, rows_in
from candelabra_clike.fusion.rows import suits as suits_row

KernelOf = Callable[[Node], Callable[..., Any] | None]
LEAST_IN_PLACE = 1 << 16
"""The size of a result in bytes from which a kernel of its own, which writes in place, is worth compiling."""


def fused(graph: Graph, serial: bool = True, multiplies: bool = True) -> Graph:
    """Return the graph with groups of nodes that fused kernels compute. Row programs fuse on serial devices; matrix
    products and convolutions where ``multiplies`` says that kernels in C compute them.
    """
    admitted: dict[Node, bool] = {}

    def admits(node: Node) -> bool:
        if node not in admitted:
            declined = (not serial and row_node(node)) or (not multiplies and products_in([node]))
            admitted[node] = not declined and is_fusible(node)
        return admitted[node]

    return in_place(fuse(graph, admits, partial(worth, serial=serial)), admits)


def in_place(graph: Graph, admits: Callable[[Node], bool]) -> Graph:
    """Return the graph with groups of one node for elementwise nodes that can write in place of a large operand.

    Kernels of groups follow the memory plan, those of single operators always allocate.
    """
    alone = {}
    for node in graph.nodes:
        large = [v for v in node.results if v.spec is not None and v.spec.nbytes >= LEAST_IN_PLACE]
        if large and not isinstance(node.op, Graph) and admits(node) and _is_elementwise(node):
            reads = values_read([node])
            alone[node] = Node(Graph(reads, [node], node.results), reads, node.results, where=node.where)
    plan = memory_plan(graph.with_nodes(alone.get(node, node) for node in graph.nodes))
    found = {node: group for node, group in alone.items() if group in plan}
    return graph.with_nodes(found.get(node, node) for node in graph.nodes)


def _is_elementwise(node: Node) -> bool:
    assert not isinstance(node.op, Graph)
    return not (node.is_view or node.op.random or any(found([node]) for found in (reductions_in, rows_in, products_in)))


def worth(nodes: list[Node], reads: Iterable[Tensor], writes: Iterable[Tensor], serial: bool = True) -> int:
    """Return the bytes that a group saves, or -1 if one loop nest cannot compute it.

    At most one node is a reduction, of elements that the others compute. All results of the others have one shape,
    since each is computed once per element. A single element, such as the gradient of a loss, is computed again for
    every element if nothing else uses it. A view is no new memory, so nothing else may use
    it. Random numbers are drawn in C order, so all arrays of their kernel are contiguous.
    """
    reads, writes = list(reads), list(writes)
    reductions, rows, products = reductions_in(nodes), rows_in(nodes), products_in(nodes)
    if products:
        alone = len(products) == 1 and not reductions and not rows and suits_product(products[0], nodes, writes)
        return gain(nodes, reads, writes) if alone and _views(nodes).isdisjoint(writes) else -1
    if rows:
        alone = len(rows) == 1 and not reductions and suits_row(rows[0], nodes, writes)
        return gain(nodes, reads, writes) if alone and _views(nodes).isdisjoint(writes) else -1
    if reductions:
        drawn = any(not isinstance(node.op, Graph) and node.op.random for node in nodes)
        alone = len(reductions) == 1 and not drawn and suits(reductions[0], nodes, reads, writes, serial)
        return gain(nodes, reads, writes) if alone and _views(nodes).isdisjoint(writes) else -1
    shapes = {v.spec.shape for node in nodes for v in node.results if v.spec is not None and v.spec.numel != 1}
    if len(shapes) > 1:
        return -1
    written = {v.spec.shape for v in writes if v.spec is not None}
    if len(written) > 1 or (shapes and written != shapes) or not _views(nodes).isdisjoint(writes):
        return -1
    if any(not isinstance(node.op, Graph) and node.op.random for node in nodes):
        arrays = [v.spec for v in (*reads, *writes) if v.spec is not None]
        if any({spec.shape} != written or not is_contiguous_layout(spec.shape, spec.strides) for spec in arrays):
            return -1
    return gain(nodes, reads, writes)


def _views(nodes: list[Node]) -> set[Tensor]:
    return {v for node in nodes if node.is_view for v in node.results}


def planned(engine: Engine, graph: Graph) -> tuple[Graph, KernelOf]:
    """Return the graph with the groups that a device fuses, and the function that returns the kernel of a group."""
    grouped = fused(graph, engine.traits.serial, engine.traits.multiplies)
    plan = memory_plan(grouped)

    def kernel_of(node: Node) -> Callable[..., Any] | None:
        if not isinstance(node.op, Graph):
            return None
        kernel = fused_kernel(node.op, engine, plan.get(node))
        kernel.traced()  # compiles it
        return on_strided_arrays(kernel, default_kernel(node))

    return grouped, kernel_of


def compiled(engine: Engine, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
    """Return the function of a graph for a device, or None if no kernel of it can be fused."""
    grouped, kernel_of = planned(engine, graph)
    return runner(grouped, kernel_of) if any(isinstance(node.op, Graph) for node in grouped.nodes) else None
