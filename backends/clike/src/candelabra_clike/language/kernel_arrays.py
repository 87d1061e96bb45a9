"""The arrays of kernels as typed statements, see :mod:`candelabra_clike.language.kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.language.types import INTEGERS, holds
from candelabra_clike.language.values import Address, Element, Operand, Value, as_value

if TYPE_CHECKING:
    from candelabra_clike.language.kernels import KernelBuilder


class KernelArray:
    """An array of a kernel: a buffer, the rest of one from an element on, or numbers of the work-item.

    ``x[i]`` is an element, ``x[i] = value`` stores one; of private arrays of two dims, ``x[i, j]``. ``type`` is that of
    values, ``memory`` that of elements.
    """

    def __init__(
        self, kernel: KernelBuilder, name: str, type: str, memory: str, converts: str = "", rank: int = 1,
        qualifiers: str | None = "GLOBAL const",
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.name = name
        self.type = type
        self.memory = memory
        self.converts = converts
        self.rank = rank
        self.qualifiers = qualifiers
        """Those of a pointer to the elements, or None for numbers of the work-item."""

    def __getitem__(self, at: Operand | tuple[Operand, ...]) -> Value:
        return Element(self.type, self.name, self._indices(at), self.converts)

    def __setitem__(self, at: Operand | tuple[Operand, ...], value: Operand) -> None:
        if self.qualifiers is not None and "const" in self.qualifiers:
            raise TypeError(f"the array {self.name!r} is only read")
        stored = as_value(value, self.type, f"an element of {self.name!r}")
        if not holds(self.type, stored.type):
            raise TypeError(f"an element of {self.name!r}: expected a value of type {self.type}, got {stored.type}")
        printed = self.kernel.printed(stored)
        if self.converts:
            printed = f"store_{self.converts}({printed})"
        self.kernel.line(f"{self.kernel.printed(self.in_memory(at))} = {printed};")

    def in_memory(self, at: Operand | tuple[Operand, ...]) -> Value:
        """Return an element as it is in memory."""
        return Element(self.memory, self.name, self._indices(at))

    def address(self, at: Operand) -> Value:
        """Return the address of an element."""
        if self.qualifiers is None:
            raise TypeError(f"the array {self.name!r} is not in the memory of the device")
        return Address("u64", self.name, self._indices(at)[0])

    def _indices(self, at: Operand | tuple[Operand, ...]) -> tuple[Value, ...]:
        indices = tuple([as_value(i, "i32", "an index") for i in (at if isinstance(at, tuple) else (at,))])
        if len(indices) != self.rank:
            raise TypeError(f"the array {self.name!r} of {self.rank} dims was indexed with {len(indices)} numbers")
        for index in indices:
            if index.type not in INTEGERS:
                raise TypeError(f"an index of {self.name!r} of type {index.type}: it needs an integer")
        return indices


class KernelVector(KernelArray):
    """The vector of a lane, see :mod:`candelabra_clike.language.lane_vectors`, as an array of its elements."""

    def __init__(self, kernel: KernelBuilder, lanes: LaneVector, like: KernelArray) -> None:
        super().__init__(kernel, f"{lanes.name}.each", like.type, like.memory, like.converts, qualifiers=None)
        self.lanes = lanes

    def load(self, array: KernelArray, at: Value) -> None:
        """Load the elements of an array from an index on, whose address is one of vectors."""
        self.kernel.line(self.lanes.load(self._pointer(array, at)).rstrip())

    def store(self, array: KernelArray, at: Value) -> None:
        """Store the elements into an array from an index on, whose address is one of vectors."""
        self.kernel.line(self.lanes.store(self._pointer(array, at)).rstrip())

    def _pointer(self, array: KernelArray, at: Value) -> str:
        if array.memory != self.memory:
            raise TypeError(f"a vector of {self.memory} was given the array {array.name!r} of {array.memory}")
        return f"{array.name} + ({self.kernel.printed(at)})"
