"""What a plugin changes while it loads, kept so that a failure can take it back.

Each registry that a plugin can write to (operators, fronts, layers, kernels, backends) notes how to undo what it did.
Outside a load nothing is kept. The journal is the thread's own: what other threads register meanwhile stays.
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
    """Remember how to take back what was just done, if a plugin is being loaded in this thread."""
    if _journal.entries is not None:
        _journal.entries.append(undo)


class unrecorded:
    """``with unrecorded():`` what happens inside is not the plugin's, though its loading caused it."""

    def __enter__(self) -> None:
        self._outer = _journal.entries
        _journal.entries = None

    def __exit__(self, *_: object) -> None:
        _journal.entries = self._outer


class Recording:
    """``with Recording() as recording:`` notes what happens inside; ``recording.undo()`` takes it back, newest first.

    Recordings nest: a plugin whose import loads another one is not charged with what that one brought.
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
        """Take everything back. Can be called twice; the second time there is nothing left."""
        while self.entries:
            self.entries.pop()()
