"""The arrays of kernels as typed statements, see :mod:`candelabra_clike.language.kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.language.simd import counter_of
from candelabra_clike.language.types import INTEGERS, holds
from candelabra_clike.language.values import Address, Element, Operand, Value, VectorElement, as_value

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
        indices = self._indices(at)
        vector = self._vector(indices)
        return Element(self.type, self.name, indices, self.converts) if vector is None else vector

    def _vector(self, indices: tuple[Value, ...]) -> VectorElement | None:
        """Return the elements of a vector if the index has the counter of a loop over vectors."""
        counter = counter_of(indices[0])
        if counter is None:
            return None
        if self.converts or self.rank != 1:
            raise TypeError(f"the array {self.name!r} has no vectors: it is converted, or has several dims")
        return VectorElement(self.type, self.name, indices[0], self.qualifiers is None, counter.lanes)

    def __setitem__(self, at: Operand | tuple[Operand, ...], value: Operand) -> None:
        if self.qualifiers is not None and "const" in self.qualifiers:
            raise TypeError(f"the array {self.name!r} is only read")
        stored = as_value(value, self.type, f"an element of {self.name!r}")
        if not holds(self.type, stored.type):
            raise TypeError(f"an element of {self.name!r}: expected a value of type {self.type}, got {stored.type}")
        vector = self._vector(self._indices(at))
        if vector is not None:
            form = "PRIVATE_X{}({}, {}) = {};" if vector.private else "STORE_X{}({}, {}, {});"
            pointer, printed = self.pointer_text(vector.at), self.kernel.printed(stored, vector.lanes)
            self.kernel.line(form.format(vector.lanes, self.type, pointer, printed))
            return
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

    def pointer_text(self, at: Operand) -> str:
        """Return the text of a pointer to an element."""
        return f"{self.name} + ({self.kernel.printed(self._indices(at)[0])})"

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
        return array.pointer_text(at)
