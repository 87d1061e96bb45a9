"""Restore saved values for a derivative rule: wrap outputs, compare versions, unpack packed tensors.

A saved input is the tensor itself. A saved output is only its payload and version cell, because the output tensor
refers to the node and would form a reference cycle with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from candelabra._annotations import Any, Final
from candelabra._autograd.filling import filled_like
from candelabra._autograd.node import Node, Port, changed
from candelabra._keys import AUTOGRAD, PACK, VIEW, state, switch
from candelabra._plugins import registry
from candelabra._tensor import Tensor, new, wrap
from candelabra.dtypes import BY_BIT, DTYPE_MASK


def saved_output(node: Any, position: int, name: str, payload: Any, cell: Any, version: int) -> Tensor:
    """Return the saved output as a tensor of this node."""
    if cell[0] != version:
        raise changed(node, name, tuple(payload.shape), _output_keys(node, position), cell[0], version)
    out = new(Tensor)
    out._payload = payload
    if node.outputs == 1:
        out._keys = node.keys
        out._node = node
    else:
        out._keys = node.all_keys[position]
        port = node.ports[position]()  # the output's own port, so that its hooks and captures include this use
        out._node = port or Port(node, position, node.shapes[position], node.all_keys[position])
    out._counter = cell
    return out


def _output_keys(node: Any, position: int) -> int:
    keys: int = node.keys if node.outputs == 1 else node.all_keys[position]
    return keys


def with_node(tensor: Any, node: Node | None) -> Any:
    """Return a tensor with the same payload and version, and with the node that it had when it was saved."""
    if not isinstance(tensor, Tensor):
        return tensor._counter  # released: raises
    keys = tensor._keys & ~(AUTOGRAD | VIEW)
    out = wrap(tensor._payload, keys if node is None else keys | AUTOGRAD)
    out._counter = tensor._counter
    out._node = node
    return out


def checked_list(node: Node, name: str, tensors: Any, versions: list[int]) -> list[Tensor | None]:
    """Return a saved list argument after comparing every version."""
    if not isinstance(tensors, (list, tuple)):
        return [tensors._counter]  # released: raises
    for tensor, version in zip(tensors, versions, strict=True):
        if tensor is not None and tensor._counter[0] != version:
            raise changed(node, name, tensor.shape, tensor._keys, tensor._counter[0], version)
    return list(tensors)


def zero_gradient(node: Any, position: int, gradients: Sequence[Tensor | None]) -> Tensor:
    """Return zeros for an output whose gradient did not arrive, on the device of a gradient that did."""
    arrived = next(g for g in gradients if g is not None)
    return filled_like(arrived, 0, node.shapes[position], BY_BIT[node.all_keys[position] & DTYPE_MASK])


# -- packed values ----------------------------------------------------------------------------------------------------
class _HookStack(threading.local):
    def __init__(self) -> None:
        self.pairs: list[tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]] = []
        self.refusals: list[str] = []


_stack: Final = _HookStack()


class Packed:
    """A saved tensor that was packed by a pair of saved-tensor hooks."""

    __slots__ = ("cell", "content", "keys", "name", "node", "position", "shape", "unpack_hook", "version")

    def __init__(self, tensor: Tensor, name: str, position: int) -> None:
        pack, self.unpack_hook = _stack.pairs[-1]
        self.name = name
        self.cell = tensor._counter
        self.version = self.cell[0]
        self.shape = tuple(tensor._payload.shape)
        self.keys = tensor._keys
        self.node = tensor._node if position < 0 else None
        self.position = position
        before = state.bits
        switch(before & ~PACK)
        try:
            self.content = pack(with_node(tensor, None) if position >= 0 else tensor)
        finally:
            switch(before)

    def unpack(self, node: Any) -> Any:
        # A hook that keeps something else than the tensor is not affected by later writes to the tensor.
        if self.cell[0] != self.version and getattr(self.content, "_counter", None) is self.cell:
            raise changed(node, self.name, self.shape, self.keys, self.cell[0], self.version)
        tensor = self.unpack_hook(self.content)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"an unpack hook must return a Tensor, got {type(tensor).__name__}")
        if self.position >= 0:
            return saved_output(node, self.position, self.name, tensor._payload, tensor._counter, tensor._counter[0])
        return tensor if tensor._node is self.node else with_node(tensor, self.node)


class _Nothing:
    @staticmethod
    def unpack(node: Node) -> None:
        return None


def pack_saved(node: Any, outputs: tuple[str, ...]) -> None:
    """Pack the values that a new node saved, with the innermost pair of hooks."""
    for slot in node.saved_slots:
        kind, name = slot[:2], slot[2:]
        if kind == "c_" or not hasattr(node, slot) or (hasattr(node, f"p_{name}") and kind == "s_"):
            continue
        value = getattr(node, slot)
        if kind == "p_":
            position = outputs.index(name)
            tensor = wrap(value, _output_keys(node, position) & ~AUTOGRAD)
            tensor._counter = getattr(node, f"c_{name}")
            setattr(node, f"s_{name}", Packed(tensor, name, position))
            setattr(node, f"p_{name}", None)
            setattr(node, f"c_{name}", None)
        elif isinstance(value, (list, tuple)):
            setattr(node, slot, [_Nothing if v is None else Packed(v, name, -1) for v in value])
        else:
            setattr(node, slot, _Nothing if value is None else Packed(value, name, -1))


@contextmanager
def saved_tensors_hooks(pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> Iterator[None]:
    """Inside the block, pack each tensor that an operator saves with ``pack_hook``, and unpack it with ``unpack_hook``.

    As ``torch.autograd.graph.saved_tensors_hooks``: for example, to keep activations on disk or on the host. Raises
    ``RuntimeError`` inside :func:`disable_saved_tensors_hooks`.
    """
    if _stack.refusals:
        raise RuntimeError(_stack.refusals[-1])
    _stack.pairs.append((pack_hook, unpack_hook))
    before = state.bits
    switch(before | PACK)
    try:
        yield
    finally:
        _stack.pairs.pop()
        switch(before)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, :func:`saved_tensors_hooks` raises ``RuntimeError`` with this message, and so it does at once
    if it is in use. As ``torch.autograd.graph.disable_saved_tensors_hooks``.
    """
    if _stack.pairs:
        raise RuntimeError(error_message)
    _stack.refusals.append(error_message)
    try:
        yield
    finally:
        _stack.refusals.pop()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Inside the block, tensors may be written in place after an operator has saved them.

    Each saved tensor is copied at once; PyTorch copies it at the first write. As
    ``torch.autograd.graph.allow_mutation_on_saved_tensors``.
    """
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        yield


class save_on_cpu:
    """Keep saved tensors on the reference device, and copy them back to their own device for the backward pass."""

    def __init__(self) -> None:
        host = registry.default_device()
        self._context = saved_tensors_hooks(lambda t: (t.device, t.to(host)), lambda pair: pair[1].to(pair[0]))

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)
