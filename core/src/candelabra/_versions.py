"""What tells whether the memory of a tensor was written: for programs that keep what they computed from it.

A tensor and its views have one version cell, the list ``[version]``, which every in-place operator advances. Some
tensors share memory and count their writes apart: ``Tensor.data``, a parameter and the tensor that it wraps. A
cell of such a tensor has a second item, the :class:`SharedMemory`, which knows all cells of the memory. Autograd reads
the version alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from candelabra._annotations import Any, Final

Cell = list[Any]
"""``[version]``, or ``[version, SharedMemory]``."""
_lock: Final = Lock()
MOST_CELLS: Final = 32
"""The cells of one memory, at most. Writes to memory that has more of them count as unseen."""


class SharedMemory:
    """The version cells of tensors that share memory.

    ``unseen``: others write the memory without a version, such as NumPy. ``data``: the cell of the results of
    ``Tensor.data``, or None.
    """

    __slots__ = ("cells", "data", "unseen")

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells: list[Cell] = []
        self.data: Cell | None = None
        self.unseen = False
        for cell in cells:
            self.add(cell)

    def add(self, cell: Cell) -> None:
        """Add a cell, with those that it shared its memory with before."""
        before = cell[1] if len(cell) > 1 else None
        if before is self:
            return
        found = [cell]
        if before is not None:
            found, self.unseen, self.data = before.cells, self.unseen or before.unseen, self.data or before.data
        for each in found:
            each[1:] = [self]
        self.cells = [*self.cells, *found]  # a new list, since another thread may read the old one
        if len(self.cells) > MOST_CELLS:
            self.cells, self.unseen = [], True


def _memory_of(cell: Cell) -> SharedMemory:
    return cell[1] if len(cell) > 1 else SharedMemory([cell])


def join_versions(cell: Cell, other: Cell) -> None:
    """Note that two tensors share memory, with these cells."""
    if cell is not other:
        with _lock:
            _memory_of(other).add(cell)


def cell_of_data(cell: Cell) -> Cell:
    """Return the cell of ``tensor.data`` for that of ``tensor``: writes through either are seen by :func:`state`."""
    with _lock:
        memory = _memory_of(cell)
        if memory.data is None or memory.data is cell:
            memory.data = [0]
            memory.add(memory.data)
        return memory.data


def expose(cell: Cell) -> None:
    """Note that others can write the memory of a tensor without a version: it is shared with another library."""
    with _lock:
        _memory_of(cell).unseen = True


def state(cell: Cell) -> Any:
    """Return a value that is another one after every write to the memory of a tensor, or None if writes are unseen."""
    if len(cell) == 1:
        return cell[0]
    memory: SharedMemory = cell[1]
    return None if memory.unseen else [each[0] for each in memory.cells]


__all__ = ["cell_of_data", "expose", "join_versions", "state"]
