"""Add gradients to the ``.grad`` of leaves, without a copy if nothing else refers to them."""

from __future__ import annotations

import sys
import threading

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.node import Leaf, Node
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, state, switch
from candelabra._records.registry import OPERATORS

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

_accumulating: Final = threading.Lock()


class Counts:
    """The reference counts of a gradient and of its payload that only the engine refers to.

    They depend on the interpreter, so they are measured once, at import: the references of locals and arguments, and
    the argument of getrefcount.
    """

    tensor = 0
    payload = 0


class OfLeaf(Counts):
    """In :func:`accumulate`, called by the loop of the engine."""


class OfSpecial(Counts):
    """In :func:`accumulate`, called by the engine's method for special nodes."""


class OfSum(Counts):
    """In the engine's search for a sum that can be written in place."""


def accumulate(leaf: Node, g: Tensor, create_graph: bool, alone: type[Counts] = OfLeaf) -> None:
    """Add ``g`` to the ``.grad`` of a leaf's tensor.

    A first gradient that has no more references than ``alone`` is stored without a copy. Otherwise it is copied, so
    that ``x.grad.zero_()`` changes nothing but ``x.grad``.
    """
    assert isinstance(leaf, Leaf)
    tensor = leaf.owner()
    if tensor is None:
        return
    with _accumulating:
        present = tensor._grad
        if create_graph:
            tensor._grad = g if present is None else present + g
        elif present is None:
            unshared = (
                not g._keys & (VIEW | AUTOGRAD)
                and sys.getrefcount(g) <= alone.tensor
                and sys.getrefcount(g._payload) <= alone.payload
            )
            tensor._grad = g if unshared else _copy(g)
        elif present._keys & AUTOGRAD:
            tensor._grad = present + g
        else:
            present.add_(g)
    if leaf.hooks is not None:
        for hook in list(leaf.hooks.post_accumulate.values()):
            hook(tensor)


def _measure_reference_counts() -> None:
    class Probe:
        __slots__ = ("_payload",)
        _payload: object

        def __init__(self) -> None:
            self._payload = object()

    def through_own_sum(partial: dict[int, Any]) -> None:
        total = partial.pop(0, None)
        OfSum.tensor = sys.getrefcount(total)
        OfSum.payload = sys.getrefcount(total._payload)

    def through_special(g: Any) -> None:
        through_accumulate(g, OfSpecial)

    def through_accumulate(g: Any, counts: type[Counts]) -> None:
        counts.tensor = sys.getrefcount(g)
        counts.payload = sys.getrefcount(g._payload)

    def as_leaf(held: list[Any]) -> None:
        g = held.pop()
        through_accumulate(g, OfLeaf)

    def as_special(held: list[Any]) -> None:
        g = held.pop()
        through_special(g)

    through_own_sum({0: Probe()})
    as_leaf([Probe()])
    as_special([Probe()])


_measure_reference_counts()


def _copy(g: Tensor) -> Tensor:
    before = state.bits
    switch(before | NO_GRAD)
    try:
        out: Tensor = OPERATORS["clone"].function(g)
    finally:
        switch(before)
    return out
