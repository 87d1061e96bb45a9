"""The saved tensors of a :class:`Function`: like those of operators, but in a list instead of slots."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.node import changed
from candelabra._autograd.saved import Packed, saved_output, with_node
from candelabra._codegen.nodes import refuse_inference
from candelabra._keys import AUTOGRAD, INFERENCE, PACK, VIEW, state
from candelabra._tensor import wrap

if TYPE_CHECKING:
    from candelabra._autograd.node import Node


class SavedValue(NamedTuple):
    """A tensor with the payload, node and version that it had when it was saved."""

    tensor: Any
    """The tensor. For an output, a handle without history."""
    node: Node | None
    version: int
    output: int
    """The index of the output, or -1 for an input."""


def save(tensor: Any, output: int, node: Any) -> Any:
    """Return ``tensor`` as a saved value of ``node``, packed by ``saved_tensors_hooks`` if they are active."""
    if tensor is None:
        return None
    if tensor._keys & INFERENCE:
        refuse_inference()
    if output >= 0:
        handle = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
        handle._counter = tensor._counter
        tensor = handle
    if state.bits & PACK:
        return Packed(tensor, "saved tensor", output)
    return SavedValue(tensor, tensor._node, tensor._counter[0], output)


def unpack(value: Any, node: Any) -> Any:
    """Return the saved tensor with the node that it had. Raise RuntimeError if it was modified in place since."""
    if value is None:
        return None
    if not isinstance(value, SavedValue):
        return value.unpack(node)
    tensor = value.tensor
    if tensor._counter[0] != value.version:
        raise changed(
            node, "saved tensor", tuple(tensor._payload.shape), tensor._keys, tensor._counter[0], value.version
        )
    if value.output >= 0:
        return saved_output(node, value.output, "saved tensor", tensor._payload, tensor._counter, value.version)
    return tensor if tensor._node is value.node else with_node(tensor, value.node)
