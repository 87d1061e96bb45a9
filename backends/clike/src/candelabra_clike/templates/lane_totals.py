"""The combination of the values of adjacent work-items of a group: by shuffles in a warp, by local memory beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from candelabra_clike.language import Value, Variable, constant, shuffle
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder


class LaneTotal(NamedTuple):
    """A variable of every work-item, and the operation that combines two values of it."""

    variable: Variable
    operation: Callable[[Value, Value], Value]

    @property
    def shared(self) -> str:
        """The name of its local memory."""
        return f"shared_{self.variable.name}"

    def combine_with(self, k: KernelBuilder, value: Value) -> None:
        """Combine the variable with a value."""
        with k.block():
            k.assign(self.variable, self.operation(self.variable, k.let("other", value)))


def declare_memory(k: KernelBuilder, totals: Sequence[LaneTotal], lanes: int, group: int, warp: int) -> None:
    """Declare the local memory that :func:`combine_lanes` needs. It is declared outside of all blocks."""
    for t in totals if lanes > warp else ():
        k.array(t.shared, t.variable.type, group // warp, shared=True)


def combine_lanes(k: KernelBuilder, totals: Sequence[LaneTotal], lanes: int, warp: int) -> None:
    """Give ``lanes`` adjacent work-items the same value of each variable: the combination of their values, always in
    the same order. All work-items of the group execute the statements, once.

    ``lanes`` and ``warp`` are powers of two. The operation is associative, but need not be commutative: the result of
    the first lane counts.
    """
    leader, count = k.lane // lanes * lanes, lanes // warp
    for distance in _halves(min(lanes, warp)):
        for t in totals:
            t.combine_with(k, shuffle(t.variable, k.lane ^ distance))
    if lanes <= warp:
        for t in totals if lanes > 1 else ():
            k.assign(t.variable, shuffle(t.variable, leader))
        return
    memory = [(t, KernelArray(k, t.shared, t.variable.type, t.variable.type, qualifiers=None)) for t in totals]
    with k.when(k.lane % warp == 0):
        for t, shared in memory:
            shared[k.lane // warp] = t.variable
    k.barrier()
    if warp == 1:
        for distance in _halves(lanes):
            with k.when(k.lane % lanes < distance):
                for t, shared in memory:
                    shared[k.lane] = t.operation(shared[k.lane], shared[k.lane + distance])
            k.barrier()
        count = 1
    for t, shared in memory:
        k.assign(t.variable, shared[leader // warp])
        with k.loop("w", 1, constant("u32", count), unrolled=True) as w:
            t.combine_with(k, shared[leader // warp + w])


def _halves(lanes: int) -> list[int]:
    return [lanes >> i for i in range(1, lanes.bit_length())]
