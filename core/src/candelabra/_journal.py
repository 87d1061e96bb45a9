"""Record the changes of a plugin while it loads, so that a failure can be undone.

Each registry that a plugin can write to (operators, public names, layers, kernels, backends) records an undo function
for each change. Nothing is recorded while no plugin is being loaded. Each thread has its own journal, so registrations
of other threads are not undone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra._annotations import Final

Undo = Callable[[], object]


class _Journal(threading.local):
    entries: list[Undo] | None = None


_journal: Final = _Journal()


def note(undo: Undo) -> None:
    """Record the undo function of a change, if this thread is loading a plugin."""
    if _journal.entries is not None:
        _journal.entries.append(undo)


class unrecorded:
    """A context manager: changes inside the block are not recorded, although a plugin's loading has caused them."""

    def __enter__(self) -> None:
        self._outer = _journal.entries
        _journal.entries = None

    def __exit__(self, *_: object) -> None:
        _journal.entries = self._outer


class Recording:
    """A context manager that records the changes inside the block; ``undo()`` reverts them, the newest first.

    Recordings can be nested: the changes of a plugin do not include those of another one that its import has loaded.
    """

    def __init__(self) -> None:
        self.entries: list[Undo] = []
        self._outer: list[Undo] | None = None

    def __enter__(self) -> Recording:
        self._outer = _journal.entries
        _journal.entries = self.entries
        return self

    def __exit__(self, *_: object) -> None:
        _journal.entries = self._outer

    def undo(self) -> None:
        """Revert all recorded changes. A second call has no effect."""
        while self.entries:
            self.entries.pop()()
