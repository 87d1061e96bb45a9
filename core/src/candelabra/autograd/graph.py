"""Inspecting the graph and registering hooks. As ``torch.autograd.graph``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._autograd.engine import _count
from candelabra._autograd.node import Node, Port
from candelabra._autograd.saved import save_on_cpu, saved_tensors_hooks

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


class GradientEdge(NamedTuple):
    """The destination of a tensor's gradient: a node, and the number of its output."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of a tensor that requires grad: its ``grad_fn`` (or a leaf's node) and output number."""
    node = tensor._fresh()._node
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    if isinstance(node, Port) and node.e0 is not None:
        return GradientEdge(node.e0, node.index)
    return GradientEdge(node, 0)


def nodes_of(*tensors: Tensor) -> list[Node]:
    """Return every node that the tensors depend on."""
    return list(_count([n for n in (t._fresh()._node for t in tensors) if n is not None]))


__all__ = [
    "GradientEdge", "Node", "get_gradient_edge", "nodes_of", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
