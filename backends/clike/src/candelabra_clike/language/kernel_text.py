"""The text of a kernel: its lines, and the names that are declared where the next line stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from candelabra_clike.language.printing import text
from candelabra_clike.language.simd import VectorVariable, lanes_of, vector_text
from candelabra_clike.language.values import Address, Element, Value, Variable, VectorElement

OF_ARRAYS: Final = (Element, VectorElement, Address)
"""The nodes that name an array."""


class KernelText:
    """Lines and names. The ids of a work-item are declared everywhere."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._visible = {"GLOBAL_ID", "GLOBAL_SIZE", "GROUP_ID", "LOCAL_ID"}
        self._scopes: list[list[str]] = [[]]
        """The names that each open block declares."""

    def line(self, statement: str) -> None:
        """Add a statement."""
        self._lines.append(statement)

    def new(self, name: str) -> str:
        """Declare a name, and return it. Raises ``TypeError`` if it is taken."""
        if name in self._visible:
            raise TypeError(f"the name {name!r} is taken")
        self._visible.add(name)
        self._scopes[-1].append(name)
        return name

    def unused(self, letter: str) -> str:
        """Return a name that is not taken: a letter with a number."""
        return next(name for i in count() if (name := f"{letter}{i}") not in self._visible)

    def printed(self, value: Value, lanes: int = 1) -> str:
        """Return the text of an expression, of a number or a vector. Raises ``TypeError`` if it has a variable of a
        block that has ended, or if it is a vector of other lanes.
        """
        for node in value.walk():
            name = node.name if isinstance(node, Variable) else node.array if isinstance(node, OF_ARRAYS) else None
            if name is not None and name.partition(".")[0] not in self._visible:
                raise TypeError(f"{name!r} is declared in a block that has ended, or not at all")
        found = lanes_of(value)
        if found not in (1, lanes):
            raise TypeError(f"expected {lanes} lanes, got a vector of {found}")
        return text(value) if lanes == 1 or isinstance(value, VectorVariable) else vector_text(value, lanes)

    @contextmanager
    def _block(self, head: str, *names: str) -> Iterator[None]:
        """A block that begins with a line, and declares names."""
        self._scopes.append([])
        for name in names:
            self.new(name)
        self.line(head)
        yield
        self.line("}")
        self._visible.difference_update(self._scopes.pop())
