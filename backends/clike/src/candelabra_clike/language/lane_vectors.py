"""Vectors of lanes: adjacent elements of an array that a lane of a GPU loads or stores at once.

A load of 16 bytes keeps four times as many bytes in flight as one of a float32, which is what the bandwidth of a GPU's
memory takes. Devices whose kernels are serial have vectors of another kind, with which they compute (``LOAD_X8``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

VECTOR_BYTES: Final = 16
"""The size of the largest load or store of a lane."""
WORDS: Final = {16: "BYTES_16", 8: "BYTES_8", 4: "u32", 2: "u16", 1: "u8"}
"""The type of each size that a lane loads or stores at once, in the words of :mod:`candelabra_clike.dialect`."""


class LaneVector(NamedTuple):
    """A variable with ``width`` elements of a type in memory: a union of them and of the words that are loaded.

    Addresses of vectors are multiples of their size, or of 16 bytes for larger ones. ``pointer`` is always the
    expression of a pointer to the first element.
    """

    name: str
    memory: str
    width: int

    @property
    def bytes(self) -> int:
        """The size."""
        return self.width * int(self.memory[1:]) // 8

    @property
    def word(self) -> str:
        """The type that is loaded and stored."""
        return WORDS[min(self.bytes, VECTOR_BYTES)]

    @property
    def words(self) -> range:
        """The numbers of the words."""
        return range(-(-self.bytes // VECTOR_BYTES))

    def element(self, i: int | str) -> str:
        """Return the expression of an element, in memory."""
        return f"{self.name}.each[{i}]"

    def declaration(self) -> str:
        """Return the declaration."""
        return f"union {{ {self.word} all[{len(self.words)}]; {self.memory} each[{self.width}]; }} {self.name};\n"

    def load(self, pointer: str) -> str:
        """Return statements that load the elements."""
        words = f"((GLOBAL const {self.word}*)({pointer}))"
        return "".join(f"{self.name}.all[{i}] = {words}[{i}];\n" for i in self.words)

    def store(self, pointer: str) -> str:
        """Return statements that store the elements."""
        words = f"((GLOBAL {self.word}*)({pointer}))"
        return "".join(f"{words}[{i}] = {self.name}.all[{i}];\n" for i in self.words)

    def is_aligned(self, pointer: str) -> str:
        """Return the condition that an address is one of vectors."""
        return f"((u64)({pointer}) & {min(self.bytes, VECTOR_BYTES) - 1}u) == 0"
