"""A sum of the gradients of slices is a concatenation.

The gradient of a slice is a tensor of zeros with the slice's gradient in its place. A tensor that is split, as the
queries, keys and values of an attention layer are, gets the sum of several: as many fills, copies and additions of the
whole tensor. If the slices tile the tensor along one dim, their gradients one after another are the same sum.
"""

from __future__ import annotations

from candelabra._annotations import Any, NamedTuple
from candelabra._graph.structure import Graph, Memory, Node, Value
from candelabra._records.registry import OPERATORS
from candelabra._serving import kernel_for


class Piece(NamedTuple):
    """The gradient of a slice, and its place in the whole tensor: from ``start`` to ``stop`` along ``dim``."""

    gradient: Value
    dim: int
    start: int
    stop: int


def with_joined_slices(graph: Graph) -> Graph:
    """Return the graph with concatenations in place of sums of gradients of slices that tile a tensor."""
    written, outputs, users = graph.written(), set(graph.outputs), graph.users()
    sums: dict[Value, list[Piece]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        pieces = _pieces(node, sums, written)
        if pieces is not None:
            (result,) = node.results
            if len(users.get(result, ())) == 1 and result not in outputs:
                sums[result] = pieces
            if node.op is OPERATORS["add"]:
                node = _joined(node, pieces) or node
        nodes.append(node)
    return graph.with_nodes(nodes)


def _pieces(node: Node, sums: dict[Value, list[Piece]], written: set[Memory]) -> list[Piece] | None:
    """Return the pieces of a node's result, or None if it is no sum of gradients of slices."""
    if isinstance(node.op, Graph) or len(node.results) != 1 or any(v.memory in written for v in node.results):
        return None
    if node.op is OPERATORS["add"] and len(node.args) == 2:
        first, second = node.args
        if first is not second and first in sums and second in sums and first.spec == second.spec:
            return sums[first] + sums[second]
    if node.op is OPERATORS["basic_index_adjoint"]:
        gradient, shape, index = node.args
        piece = None if gradient.memory in written else _piece(gradient, shape, index)
        return None if piece is None else [piece]
    return None


def _piece(gradient: Value, shape: tuple[int, ...], index: tuple[Any, ...]) -> Piece | None:
    """Return the piece of an index that is a slice along one dim."""
    if not all(isinstance(i, slice) and i.step in (1, None) for i in index):
        return None
    sizes = shape[: len(index)]  # the dims after them are whole
    parts = [(d, i) for d, (i, size) in enumerate(zip(index, sizes, strict=True)) if (i.start, i.stop) != (0, size)]
    if len(parts) != 1:
        return None
    [(dim, part)] = parts
    return Piece(gradient, dim, part.start, part.stop) if part.start < part.stop else None


def _joined(node: Node, pieces: list[Piece]) -> Node | None:
    """Return the concatenation of the pieces of a sum, or None if they do not tile its result."""
    (result,) = node.results
    spec, dim = result.spec, pieces[0].dim
    assert spec is not None
    pieces = sorted(pieces, key=lambda piece: piece.start)
    ends = [0, *(piece.stop for piece in pieces)]
    tiles = ends == [*(piece.start for piece in pieces), spec.shape[dim]]
    specs = {(g.spec.dtype, g.spec.instance) for g in (p.gradient for p in pieces) if g.spec is not None}
    if not tiles or any(piece.dim != dim for piece in pieces) or specs != {(spec.dtype, spec.instance)}:
        return None
    kernel = kernel_for(spec.instance, "cat", spec.dtype)
    return Node(OPERATORS["cat"], ([p.gradient for p in pieces], dim), (result,), node.form, kernel, node.where)


__all__ = ["with_joined_slices"]
