"""What kernels find wrong in values: indices out of bounds, found on the device and raised on the host.

A kernel cannot raise. It writes its first complaint into a small buffer of the device (``complain`` in the library),
and whoever next waits for the device reads it there: only then, and only if a kernel that can complain has run since.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra_clike.engine import Engine

FORMAT: Final = "<qqqq"
"""Number of the complaint (0: none), and three integers that say more, as the library's ``complain`` writes them."""
Words = Callable[[int, int, int], Exception]
"""Makes the error of a complaint from its three integers."""


class Faults:
    """The complaints of one device."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Final = engine
        self._lock: Final = threading.Lock()
        self._words: Final[dict[int, Words]] = {}
        self._numbers: Final[dict[Words, int]] = {}
        self._buffer: Any = None
        self.possible = False
        """Whether a kernel that can complain has been launched since the last look."""

    def buffer(self) -> Any:
        """What a kernel that can complain is given; from then on the next synchronisation looks into it."""
        if self._buffer is None:
            with self._lock:
                if self._buffer is None:
                    size = struct.calcsize(FORMAT)
                    made = self._engine.allocate(size)
                    self._engine.write(made, 0, memoryview(bytes(size)))
                    self._buffer = made
        self.possible = True
        return self._buffer

    def number(self, words: Words) -> int:
        """The number under which kernels report a complaint with these words."""
        with self._lock:
            found = self._numbers.setdefault(words, len(self._numbers) + 1)
            self._words[found] = words
            return found

    def check(self) -> None:
        """Raise the first complaint since the last look, if there is one. The queue has to be done."""
        if not self.possible:
            return
        with self._lock:
            self.possible = False
            size = struct.calcsize(FORMAT)
            number, *facts = struct.unpack(FORMAT, self._engine.read(self._buffer, 0, size))
            if not number:
                return
            self._engine.write(self._buffer, 0, memoryview(bytes(size)))
        raise self._words[number](*facts)
