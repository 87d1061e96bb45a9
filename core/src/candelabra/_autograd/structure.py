"""The structure of a graph of autograd: what has to be equal for the same backward pass to serve two graphs.

A compiled function may run the backward pass of a graph that was recorded before the call. It is traced once. Later
calls compare the structure of their graph with that of the traced one, and give the compiled pass what the nodes have
saved. The structure is a flat list: for each node its class, shape, keys and edges, then what its class describes:
plain arguments, the layouts of saved payloads, and which of them are the same.

Attribution: a key of the nodes of the engine, with saved tensors as inputs, is the design of PyTorch's compiled
autograd.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.node import Node, TensorSpec, changed
from candelabra._device import Instance, device, instance_of_key
from candelabra._keys import AUTOGRAD, OVERRIDE, VIEW
from candelabra._layout import layout
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

PLAIN: Final = frozenset((int, bool, str, bytes, type(None), dtype, device, layout, Instance, type(...), range))
"""The types of arguments that are compared by value."""


class Unstructured(Exception):
    """A graph has a node whose backward pass depends on something that no structure describes."""


class Structure:
    """The nodes that lead from tensors to leaves, in an order that only depends on their edges.

    Raises :class:`Unstructured`; :class:`~candelabra.errors.GraphFreed` if the graph has been freed;
    :class:`~candelabra.errors.VersionMismatch` if a saved tensor was written since.
    """

    __slots__ = ("_numbers", "_positions", "cells", "functions", "key", "kept", "leaves", "nodes", "payloads")

    def __init__(self, roots: Iterable[Tensor]) -> None:
        self.key: list[Any] = []
        """What has to be equal."""
        self.kept: list[Any] = []
        """The objects whose identity is part of the key."""
        self.functions: list[Any] = []
        """The functions of the user that the backward pass calls: hooks, and those of custom operators."""
        self.nodes: list[Node] = []
        self.payloads: list[Any] = []
        """What the nodes have saved, each payload once."""
        self.cells: list[Any] = []
        """The version cells of the payloads."""
        self.leaves: list[Tensor | None] = []
        """The tensors of the leaves, in the order of their nodes; None for one that no longer exists."""
        self._numbers: dict[Node, int] = {}
        self._positions: dict[int, int] = {}
        self.key.append([self._number(tensor._fresh()._node) for tensor in roots])
        for node in self.nodes:  # grows
            self.key.append((type(node), node.shape, node.keys, [self._number(edge) for edge in node.edges()]))
            if node.hooks is not None:
                self._hooks(node)
            node.describe(self)

    def _number(self, node: Node | None) -> int:
        if node is None:
            return -1
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def _hooks(self, node: Node) -> None:
        hooks = node.hooks
        assert hooks is not None
        if hooks.retain is not None:
            raise Unstructured("a tensor that retains its gradient")
        for kind in (hooks.tensor, hooks.before, hooks.after, hooks.post_accumulate):
            for hook in kind.values():
                self.same(hook)
                self.functions.append(hook)
            self.key.append(len(kind))

    # -- what the classes of nodes describe ---------------------------------------------------------------------------
    def refuse(self, value: str) -> None:
        """Raise Unstructured for a value that no structure describes."""
        raise Unstructured(value)

    def same(self, value: Any) -> None:
        """Add an object by identity."""
        self.key.append(id(value))
        self.kept.append(value)

    def plain(self, value: Any) -> None:
        """Add an argument that is no tensor, by its type and value, or by its identity."""
        kind = type(value)
        if kind in PLAIN:
            self.key.append((kind, value))
        elif kind is float:
            self.key.append(value.hex())  # -0.0 differs from 0.0, and NaN equals itself
        elif kind is complex:
            self.key.append((value.real.hex(), value.imag.hex()))
        elif isinstance(value, (list, tuple)):
            self.key.append((kind, len(value)))
            for item in value:
                self.plain(item)
        elif kind is slice:
            self.plain((value.start, value.stop, value.step))
        elif kind is TensorSpec:
            self.key.append((value.shape, value.keys))
        elif isinstance(value, dict) or hasattr(value, "_payload"):
            raise Unstructured(f"an operator that keeps a {kind.__name__}")
        else:
            self.same(value)

    def payload(self, payload: Any, cell: Any, keys: int) -> None:
        """Add a saved payload, whose version cell is ``cell``, and the keys of its tensor."""
        position = self._positions.get(id(payload))
        if position is None:
            instance = instance_of_key(keys)
            if instance.depth:
                raise Unstructured("a tensor of a function transform")
            position = self._positions[id(payload)] = len(self.payloads)
            self.payloads.append(payload)
            self.cells.append(cell)
            strides = instance.backend.layout(payload) if instance.capabilities.strided else None
            self.key.append((tuple(payload.shape), strides))
        self.key.append((position, keys & ~(AUTOGRAD | VIEW)))

    def tensor(self, tensor: Tensor | None, version: int, node: Node, name: str) -> None:
        """Add a saved tensor, or None."""
        if tensor is None:
            self.key.append(None)
            return
        cell = tensor._counter
        if cell[0] != version:
            raise changed(node, name, tuple(tensor._payload.shape), tensor._keys, cell[0], version)
        if tensor._keys & OVERRIDE or not hasattr(tensor._payload, "shape"):
            raise Unstructured(f"a saved {type(tensor).__name__}")
        self.payload(tensor._fresh()._payload, cell, tensor._keys)

    def tensors(self, tensors: Any, versions: Sequence[int], node: Node, name: str) -> None:
        """Add a list of saved tensors, some of which may be None."""
        if not isinstance(tensors, (list, tuple)):
            tensors.unpack()  # it was released: raises
        self.key.append(len(tensors))
        for tensor, version in zip(tensors, versions, strict=True):
            self.tensor(tensor, version, node, name)

    def output(self, payload: Any, cell: Any, version: int, node: Node, keys: int, name: str) -> None:
        """Add a saved output."""
        if cell[0] != version:
            raise changed(node, name, tuple(payload.shape), keys, cell[0], version)
        self.payload(payload, cell, keys)


__all__ = ["PLAIN", "Structure", "Unstructured"]
