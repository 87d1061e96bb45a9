"""Inspecting the graph and registering hooks. As ``torch.autograd.graph``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.engine import reachable, running
from candelabra._autograd.hooks import RemovableHandle
from candelabra._autograd.node import Node, Port
from candelabra._autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

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
    return list(reachable([n for n in (t._fresh()._node for t in tensors) if n is not None]))


class _SeveralHandles(RemovableHandle):
    """A handle that removes the hooks on several tensors."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call ``fn`` once in each backward pass that computes gradients of ``tensors``.

    ``mode="all"``: with a list of the gradients, when all of them are there; None for tensors that take no part in the
    pass. ``mode="any"``: with the first gradient. Returns a handle that removes the hook. As
    ``torch.autograd.graph.register_multi_grad_hook``. Raises ``ValueError`` for another mode, ``RuntimeError`` for a
    tensor that does not require grad.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [get_gradient_edge(t) for t in tensors]
    key = object()

    def on_any(position: int, g: Tensor) -> None:
        notes = running.one.notes  # type: ignore[union-attr]
        if key not in notes:
            notes[key] = None
            fn(g)

    def on_all(position: int, g: Tensor) -> None:
        one: Any = running.one
        found, missing = one.notes.setdefault(
            key, ([None] * len(nodes), {n for n, edge in enumerate(nodes) if one.will_run(edge.node)})
        )
        found[position] = g
        missing.discard(position)
        if not missing:
            fn(found)

    hook = on_all if mode == "all" else on_any
    return _SeveralHandles([t.register_hook(partial(hook, n)) for n, t in enumerate(tensors)])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count an in-place write that no operator made, so that a backward pass that needs the old value raises.

    As ``torch.autograd.graph.increment_version``.
    """
    written: Any = (tensor,) if hasattr(tensor, "_payload") else tensor
    for one in written:
        one._counter[0] += 1


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "nodes_of", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
