"""Backward passes of graphs that were recorded before the call of a compiled function, as parts of its graph.

``compile(lambda: loss.backward())`` has no forward pass. Its trace runs the nodes that ``loss`` leads to, and the
values that they have saved are inputs of the compiled graph. Each call compares the structure of its graph with the
traced one (:mod:`candelabra._autograd.structure`), reads the saved values, and releases the nodes as the engine does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from types import FunctionType, MethodType

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.hooks import hooks_of
from candelabra._autograd.node import Node
from candelabra._autograd.structure import Structure, Unstructured
from candelabra._compile.environment import Environment, Unguarded, is_user_code
from candelabra._graph.structure import Value
from candelabra._tensor import Tensor
from candelabra.errors import GraphFreed, VersionMismatch

if TYPE_CHECKING:
    from candelabra._compile.recording import Recorder


UNKNOWN: Final = "a backward pass leads to a tensor that the function does not refer to"


class OuterGraph:
    """The graph that some tensors from outside lead to, as the trace met it."""

    def __init__(self, roots: list[Tensor], structure: Structure) -> None:
        self.roots = roots
        self.structure = structure
        self.released: set[int] = set()
        """The numbers of the nodes that the function has released."""

    def match(self) -> StructureGuard:
        """Return what each call compares with its own graph. It refers to no tensor."""
        return StructureGuard(self.structure, sorted(self.released))


class StructureGuard:
    """Compares the graph of a call with the traced one."""

    def __init__(self, structure: Structure, released: Sequence[int]) -> None:
        self.key, self.kept = structure.key, structure.kept
        self.released = released

    def __call__(self, *roots: Tensor) -> Structure | None:
        """Return the structure of the graph of a call, or None if it is another one."""
        try:
            found = Structure(roots)
        except (Unstructured, GraphFreed, VersionMismatch):
            return None
        return found if found.key == self.key else None

    def release(self, structure: Structure) -> None:
        """Release the nodes that the function has released while it was traced."""
        nodes = structure.nodes
        for number in self.released:
            nodes[number].release()
        structure.nodes = []


class OuterGraphs:
    """The graphs from before the call whose backward passes a traced function runs."""

    def __init__(self, recorder: Recorder, environment: Environment | None, known: Iterable[Tensor]) -> None:
        self.recorder = recorder
        self.environment = environment
        self.known = list(known)
        """The arguments, and the tensors that the function refers to."""
        self.graphs: list[OuterGraph] = []
        self.places: dict[Node, tuple[OuterGraph, int]] = {}
        """For each node its graph and number."""
        self.values: dict[Value, tuple[int, int]] = {}
        """For each value that a node has saved the positions of the graph and of the payload."""
        self.named: set[int] = set()
        """The ids of the leaves that the function refers to otherwise, as an optimizer does."""
        self._saved: dict[int, tuple[int, int]] = {}
        self.hooked: dict[int, tuple[Tensor, tuple[int, ...]]] = {}
        """The leaves with hooks that a backward pass of the function runs, and the identities of these."""

    def enter(self, nodes: Iterable[Node], keep_graph: bool, accumulates: bool) -> None:
        """Note a backward pass over ``nodes``, before it runs: those from before the call have to be equal later."""
        recorder, passed = self.recorder, set(nodes)
        roots = self._unknown(self.known, passed)
        if roots:
            try:
                self._add(roots)
            except (Unstructured, Unguarded) as error:
                recorder.note_break(f"a backward pass depends on {error}")
                return
        if self._unknown(recorder.external.values(), passed):
            recorder.note_break(UNKNOWN)
            return
        for node in passed:
            if node.hooks is not None and not all(map(_is_guarded, node.hooks.functions())):
                recorder.note_break("a hook of an installed package runs in the backward pass")
            place = self.places.get(node)
            if place is not None and not keep_graph:
                place[0].released.add(place[1])
            if node.is_leaf:
                self._leaf(node, place is not None, accumulates)

    def _unknown(self, tensors: Iterable[Tensor], passed: set[Node]) -> list[Tensor]:
        """Return the results of operators before the call, among some tensors, whose graphs are not known yet."""
        found = {
            id(t): t for t in tensors if (node := t._node) in passed and not node.is_leaf and node not in self.places
        }
        return list(found.values())

    def _add(self, roots: list[Tensor]) -> None:
        structure = Structure(roots)
        graph, position = OuterGraph(roots, structure), len(self.graphs)
        self._depend_on(structure.functions)
        self.graphs.append(graph)
        for number, node in enumerate(structure.nodes):
            self.places.setdefault(node, (graph, number))
        for i, payload in enumerate(structure.payloads):
            self._saved.setdefault(id(payload), (position, i))
            value = self.recorder.payloads.get(payload)
            if value is not None:
                self.values[value] = position, i
        for leaf in structure.leaves:
            if leaf is not None and id(leaf) in self.recorder.leaves:
                self.named.add(id(leaf))
            elif leaf is not None:
                self.recorder.watch(leaf)

    def _depend_on(self, functions: Iterable[Any]) -> None:
        """Guard what functions refer to that the backward pass calls."""
        environment = self.environment
        for function in functions:
            if environment is not None:
                environment.visit(function, environment._name(function), "a function that the backward pass calls")
        if environment is not None:
            for tensor in environment.tensors.values():
                self.recorder.watch(tensor)

    def _leaf(self, node: Node, is_outer: bool, accumulates: bool) -> None:
        owner = node.owner()  # type: ignore[attr-defined]
        if owner is None or node in self.recorder.made_leaves:
            return
        if id(owner) not in self.recorder.leaves:
            if accumulates:
                self.recorder.note_break(UNKNOWN)
            return
        if is_outer:  # its hooks are part of the structure
            return
        functions = [] if node.hooks is None else node.hooks.functions()
        try:
            self._depend_on(functions)
        except Unguarded as error:
            self.recorder.note_break(f"a hook runs in the backward pass that depends on {error}")
        self.hooked[id(owner)] = owner, tuple(map(id, functions))

    def name(self, args: Iterable[Any]) -> None:
        """Note the leaves among the arguments of a call that the engine does not make."""
        for leaf in args:
            if isinstance(leaf, Tensor) and id(leaf) in self.recorder.leaves:
                self.named.add(id(leaf))
            elif isinstance(leaf, (list, tuple)):
                self.name(leaf)

    def meet(self, value: Value, payload: Any) -> None:
        """Note a value from outside. It may be what a node has saved."""
        place = self._saved.get(id(payload))
        if place is not None:
            self.values[value] = place

    def tensor_of(self, handle: Tensor) -> Tensor:
        """Return the tensor that the function refers to, or that is a leaf, of which another one is a handle."""
        if id(handle._payload) not in self._saved:
            return handle
        candidates = (*self.known, *self.recorder.leaves.values())
        return next((t for t in candidates if t._payload is handle._payload and t._counter is handle._counter), handle)

    def leaves(self) -> list[tuple[int, int, Tensor]]:
        """Return the leaves of the graphs: positions of the graph and of the leaf, and its tensor."""
        return [
            (i, j, leaf)
            for i, graph in enumerate(self.graphs)
            for j, leaf in enumerate(graph.structure.leaves)
            if leaf is not None
        ]


def _is_guarded(hook: Any) -> bool:
    """Return whether a hook is code of the user, for which there are guards, or the one that retains a gradient."""
    while isinstance(hook, (partial, MethodType)):
        hook = hook.func if isinstance(hook, partial) else hook.__func__
    found = hook if isinstance(hook, (FunctionType, type)) else type(hook)
    return is_user_code(found.__module__ or "") or found.__module__ == hooks_of.__module__


def has_hooks(tensor: Tensor, expected: tuple[int, ...]) -> bool:
    """Return whether the hooks of a leaf are those with these identities."""
    hooks = tensor._node.hooks  # type: ignore[union-attr]
    return (() if hooks is None else tuple(map(id, hooks.functions()))) == expected


__all__ = ["StructureGuard", "OuterGraph", "OuterGraphs", "has_hooks"]
