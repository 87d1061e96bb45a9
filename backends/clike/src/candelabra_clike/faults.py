"""What kernels find wrong in values: indices out of bounds, found on the device and raised on the host.

A kernel cannot raise. It writes the first complaint into a small buffer of the device (``complain`` in the library),
and whoever next waits for the device reads it there: only then, and only if a kernel that can complain has run since.

A complaint says which index was wrong, of which dim. Of many wrong ones a kernel finds any, while the words that are
due name the lowest, or else the highest: so the last launches' index arrays are kept, and looked at again.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from candelabra_clike.array import StridedArray
    from candelabra_clike.engine import Engine

FORMAT: Final = "<qqqq"
"""Number of the complaint (0: none), value, dim and size, as the library's ``complain`` writes them."""
KEPT: Final = 64
"""So many launches' index arrays are kept at most, of no more than :data:`LONGEST` elements."""
LONGEST: Final = 1 << 17
TICKET: Final = (1 << 24) - 1
"""The low bits of a complaint's number tell the launch, those above the words."""


@dataclass(frozen=True)
class OutOfBounds:
    """What is raised for an operator's wrong index. ``text`` has the places ``{index}``, ``{dim}`` and ``{size}``.

    ``wraps``: negative indices count back from the end.
    """

    operator: str
    error: type[Exception]
    text: str
    wraps: bool = False

    def __call__(self, value: int, dim: int, size: int, place: str) -> Exception:
        """The error; ``place`` is the device, which found it too late to say so at the call."""
        text = self.text.format(index=value, dim=dim, size=size)
        return self.error(f"{place}: {self.operator!r} failed: {text}")


Words = Callable[[int, int, int, str], Exception]
"""Makes the error of a complaint from its three integers and the name of the device."""


class Indexed(NamedTuple):
    """An index array, and the dim that it points into."""

    array: StridedArray
    dim: int
    size: int


class Faults:
    """The complaints of one device."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Final = engine
        self._lock: Final = threading.Lock()
        self._words: Final[dict[Words, int]] = {}
        self._kept: Final[dict[int, Sequence[Indexed]]] = {}
        self._tickets: Final = count()
        self._buffer: Any = None
        self.possible = False
        """Whether a kernel that can complain has been launched since the last look."""

    def expect(self, words: Words, indices: Sequence[Indexed]) -> tuple[Any, int]:
        """The buffer and the number that a kernel complains with, if one of ``indices`` is out of bounds.

        The next synchronisation looks into the buffer.
        """
        number = self.number(words)
        ticket = next(self._tickets) & TICKET
        kept = self._kept
        if len(kept) >= KEPT:
            with self._lock:
                for old in list(kept)[: len(kept) - KEPT + 1]:
                    kept.pop(old, None)
        if all(index.array.size <= LONGEST for index in indices):
            kept[ticket] = indices
        return self.buffer(), number | ticket

    def number(self, words: Words) -> int:
        """The number under which kernels report a complaint with these words."""
        found = self._words.get(words)
        if found is None:
            with self._lock:
                found = self._words.setdefault(words, (len(self._words) + 1) << 24)
        return found

    def buffer(self) -> Any:
        """What a kernel that can complain is given; the next synchronisation looks into it."""
        if self._buffer is None:
            with self._lock:
                if self._buffer is None:
                    size = struct.calcsize(FORMAT)
                    made = self._engine.allocate(size)
                    self._engine.write(made, 0, memoryview(bytes(size)))
                    self._buffer = made
        self.possible = True
        return self._buffer

    def check(self) -> None:
        """Raise the first complaint since the last look, if there is one. The queue has to be done."""
        if not self.possible:
            return
        with self._lock:
            self.possible = False
            size = struct.calcsize(FORMAT)
            number, *facts = struct.unpack(FORMAT, self._engine.read(self._buffer, 0, size))
            kept = self._kept.get(number & TICKET, ())
            self._kept.clear()
            if not number:
                return
            self._engine.write(self._buffer, 0, memoryview(bytes(size)))
            words = next(w for w, n in self._words.items() if n == number & ~TICKET)
        wraps = isinstance(words, OutOfBounds) and words.wraps
        value, dim, extent = worst(kept, wraps) or facts
        raise words(value, dim, extent, repr(self._engine))


def worst(indices: Sequence[Indexed], wraps: bool) -> tuple[int, int, int] | None:
    """The lowest index of the first array that is out of bounds, or else its highest, with dim and size.

    None where nothing is wrong (any more).
    """
    from candelabra_clike.kernels.copying import dense

    for array, dim, size in indices:
        if not array.size:
            continue
        flat = dense(array)
        values = memoryview(flat.engine.read(flat.buffer, flat.offset * 8, flat.size * 8)).cast("B").cast("q")
        for value in (min(values), max(values)):
            if not (-size if wraps else 0) <= value < size:
                return value, dim, size
    return None
