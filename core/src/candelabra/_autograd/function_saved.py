"""What a :class:`Function` saves: like operators' saved values, but in a list instead of slots."""

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
    """A tensor as it was: payload, place in the graph, version."""

    tensor: Any
    """The tensor; of an output only a handle without history."""
    node: Node | None
    version: int
    output: int
    """Which output it is, -1 if none."""


def save(tensor: Any, output: int, node: Any) -> Any:
    """``tensor`` as a saved value of ``node``; through ``saved_tensors_hooks`` where those are on."""
    if tensor is None:
        return None
    if tensor._keys & INFERENCE:
        refuse_inference()
    if output >= 0:
        handle = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
        handle._version = tensor._version
        tensor = handle
    if state.bits & PACK:
        return Packed(tensor, "saved tensor", output)
    return SavedValue(tensor, tensor._node, tensor._version[0], output)


def unpack(value: Any, node: Any) -> Any:
    """The saved tensor, with the node that it had; RuntimeError if it was written to since."""
    if value is None:
        return None
    if not isinstance(value, SavedValue):
        return value.unpack(node)
    tensor = value.tensor
    if tensor._version[0] != value.version:
        raise changed(
            node, "saved tensor", tuple(tensor._payload.shape), tensor._keys, tensor._version[0], value.version
        )
    if value.output >= 0:
        return saved_output(node, value.output, "saved tensor", tensor._payload, tensor._version, value.version)
    return tensor if tensor._node is value.node else with_node(tensor, value.node)
