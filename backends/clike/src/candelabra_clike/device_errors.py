"""Errors that kernels find in values, such as an index out of bounds. They are raised on the host.

A kernel cannot raise an exception. It writes its first error into a small buffer on the device, by ``report_error`` of
the library. The next synchronisation reads the buffer if a kernel that can report errors has run since the last one.

The error names the operator, the index and the dim. A kernel with several wrong indices reports any one of them, while
the message names the lowest one if it is negative, otherwise the highest one. Therefore the index arrays of recent
launches are kept and inspected again.

An elementwise kernel refuses a value by :func:`refuse(condition, reason, value) <candelabra_clike.language.refuse>`.
The reason is a key of :data:`REASONS`, which has the error.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from candelabra.errors import IntegerDivisionByZero

if TYPE_CHECKING:
    from candelabra_clike.array import StridedArray
    from candelabra_clike.engine import Engine

FORMAT: Final = "<qqqq"
"""The number of the error (0 for none), value, dim and size, as ``report_error`` writes them."""
MAX_LAUNCHES: Final = 64
"""The number of launches whose index arrays are kept. Arrays of more than :data:`MAX_INDEX_SIZE` elements are not."""
MAX_INDEX_SIZE: Final = 1 << 17
TICKET_MASK: Final = (1 << 24) - 1
"""The low bits of an error number identify the launch, the other bits the error."""


@dataclass(frozen=True, eq=False)  # one object per error, so that its hash is that of the object
class IndexOutOfBounds:
    """The error for an index of an operator that is out of bounds. ``text`` has the fields ``{index}``, ``{dim}``,
    ``{size}``.

    ``wraps`` is true if negative indices count from the end.
    """

    operator: str
    error: type[Exception]
    text: str
    wraps: bool = False

    def __call__(self, value: int, dim: int, size: int, device: str) -> Exception:
        """Return the error. ``device`` names the device, since the error is raised after the call of the operator."""
        text = self.text.format(index=value, dim=dim, size=size)
        return self.error(f"{device}: {self.operator!r} failed: {text}")


ErrorFactory = Callable[[int, int, int, str], Exception]
"""Creates the error from three integers of the kernel and the name of the device."""


IndexOperand: TypeAlias = "tuple[StridedArray, int, int]"
"""An index array, and the number and the size of the dim that it indexes."""


class DeviceErrors:
    """The errors reported by the kernels of one device."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Final = engine
        self._lock: Final = threading.Lock()
        self._numbers: Final[dict[ErrorFactory, int]] = {}
        self._index_operands: Final[dict[int, Sequence[IndexOperand]]] = {}
        self._tickets: Final = count()
        self._buffer: Any = None
        self.possible = False
        """Whether a kernel that can report errors has been launched since the last check."""

    def register(self, factory: ErrorFactory, indices: Sequence[IndexOperand]) -> tuple[Any, int]:
        """Return the buffer and the number with which a kernel reports that one of ``indices`` is out of bounds.

        The next synchronisation reads the buffer.
        """
        number_of_error = self.number(factory)
        ticket = next(self._tickets) & TICKET_MASK
        recent = self._index_operands
        if len(recent) >= MAX_LAUNCHES:
            with self._lock:
                for old in list(recent)[: len(recent) - MAX_LAUNCHES + 1]:
                    recent.pop(old, None)
        for array, _, _ in indices:
            if array.size > MAX_INDEX_SIZE:
                break
        else:
            recent[ticket] = indices
        return self.buffer(), number_of_error | ticket

    def number(self, factory: ErrorFactory) -> int:
        """Return the number with which kernels report an error."""
        known = self._numbers.get(factory)
        if known is None:
            with self._lock:
                known = self._numbers.setdefault(factory, (len(self._numbers) + 1) << 24)
        return known

    def buffer(self) -> Any:
        """Return the error buffer as an argument of a kernel. The next synchronisation reads it."""
        if self._buffer is None:
            with self._lock:
                if self._buffer is None:
                    size = struct.calcsize(FORMAT)
                    buffer = self._engine.allocate(size)
                    self._engine.write(buffer, 0, memoryview(bytes(size)))
                    self._buffer = buffer
        self.possible = True
        return self._buffer

    def check(self) -> None:
        """Raise the first error since the last check, if there is one. All queued work must be complete."""
        if not self.possible:
            return
        with self._lock:
            self.possible = False
            size = struct.calcsize(FORMAT)
            number, *facts = struct.unpack(FORMAT, self._engine.read(self._buffer, 0, size))
            kept = self._index_operands.get(number & TICKET_MASK, ())
            self._index_operands.clear()
            if not number:
                return
            self._engine.write(self._buffer, 0, memoryview(bytes(size)))
            factory = next(w for w, n in self._numbers.items() if n == number & ~TICKET_MASK)
        wraps = isinstance(factory, IndexOutOfBounds) and factory.wraps
        value, dim, extent = find_out_of_bounds(kept, wraps) or facts
        raise factory(value, dim, extent, repr(self._engine))


def find_out_of_bounds(indices: Sequence[IndexOperand], wraps: bool) -> tuple[int, int, int] | None:
    """Return the lowest index of the first array that is out of bounds, or else its highest, with dim and size.

    Returns None if all indices are valid, for example because they have been overwritten since.
    """
    from candelabra_clike.kernels.copies import contiguous

    for array, dim, size in indices:
        if not array.size:
            continue
        flat = contiguous(array)
        values = memoryview(flat.engine.read(flat.buffer, flat.offset * 8, flat.size * 8)).cast("B").cast("q")
        for value in (min(values), max(values)):
            if not (-size if wraps else 0) <= value < size:
                return value, dim, size
    return None


REASONS: Final[dict[str, tuple[type[Exception], str]]] = {
    "DIVISION_BY_ZERO": (IntegerDivisionByZero, "ZeroDivisionError: integer division or modulo by zero"),
}
"""The class and the text of the error of each reason."""


@dataclass(frozen=True)
class Refusal:
    """The error of an operator that refuses a value for a reason."""

    operator: str
    reason: str

    def __call__(self, value: int, dim: int, size: int, device: str) -> Exception:
        """Return the error. A refusal has no index, so the first three arguments are unused."""
        error, text = REASONS[self.reason]
        return error(f"{device}: {self.operator!r} failed: {text}")
