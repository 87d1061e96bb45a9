"""The process groups of this rank: of the process, or of the thread if ranks are threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from candelabra.library import depends_on, is_compiling

if TYPE_CHECKING:
    from candelabra.distributed._process_group import ProcessGroup


class Ranks:
    """The default group and all others of one rank."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.alone: ProcessGroup | None = None
        """The group of this rank alone, created at its first use."""
        self.created = 0
        """The number of names of groups that were given, for names that no other group has."""


_process = Ranks()
_thread = threading.local()


def ranks() -> Ranks:
    """Return the groups of the calling rank. What is traced now is guarded by them: another rank is traced again."""
    found = _of_this_thread()
    if is_compiling():
        default, groups = found.default, list(found.groups)
        depends_on(
            lambda: (now := _of_this_thread()) is found and now.default is default and now.groups == groups,
            "the rank and its process groups",
        )
    return found


def _of_this_thread() -> Ranks:
    found: Ranks | None = getattr(_thread, "ranks", None)
    return _process if found is None else found


def enter(entered: Ranks | None) -> None:
    """Give this thread groups of its own, or with None those of the process."""
    _thread.ranks = entered
