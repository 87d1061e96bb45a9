"""Points at which lazy devices compute: the record of their pending work stays short, however seldom it is read.

A lazy device records what its kernels would do and computes an array when it is read. A training loop that reads
nothing would let the record grow: each step's parameters depend on those of the step before. So the core asks such a
device (:meth:`Backend.evaluate`) to compute

- the gradients of a backward pass at its end, and with them all that was written in place since: parameters, the state
  of an optimizer, running statistics;
- all that was written in place after each :data:`WRITES` writes, for loops without a backward pass.

Other devices make one comparison in each backward pass.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import ref

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.node import Leaf, Node
from candelabra._device import Instance, instance_of_key, lazy_instances

if TYPE_CHECKING:
    from weakref import ReferenceType

    from candelabra._tensor import Tensor

WRITES: Final = 256
"""The number of in-place writes of a thread after which what they wrote is computed."""


class _Written(threading.local):
    """The tensors on lazy devices that this thread has written in place since they were last computed."""

    def __init__(self) -> None:
        self.tensors: dict[int, ReferenceType[Tensor]] = {}  # by id: comparing tensors would launch kernels
        self.count = 0


_written: Final = _Written()


def note_write(target: Tensor) -> None:
    """Remember a tensor on a lazy device whose payload was replaced."""
    _written.tensors[id(target)] = ref(target)
    _written.count += 1
    if _written.count >= WRITES:
        evaluate(())


def evaluate_gradients(nodes: Iterable[Node], captured: Iterable[Any]) -> None:
    """Let lazy devices compute the gradients that a backward pass has accumulated or captured."""
    leaves = (node.owner() for node in nodes if isinstance(node, Leaf))
    evaluate([*(leaf._grad for leaf in leaves if leaf is not None), *captured])


def evaluate(tensors: Iterable[Tensor | None]) -> None:
    """Let lazy devices compute tensors, and all that this thread has written in place."""
    written = [reference() for reference in _written.tensors.values()]
    _written.tensors.clear()
    _written.count = 0
    payloads: dict[Instance, list[Any]] = {}
    for tensor in (*tensors, *written):
        if tensor is not None:
            instance = instance_of_key(tensor._keys)
            if instance in lazy_instances:
                payloads.setdefault(instance, []).append(tensor._payload)
    for instance, pending in payloads.items():
        instance.backend.evaluate(pending)
