"""The entry points of installed distributions, which are read once.

To read them takes some 5 ms for a hundred distributions, and four groups are needed before the first tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache

from candelabra._annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entry_points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of a group. They are read again only if ``sys.path`` has changed."""
    return tuple(_every(tuple(sys.path)).select(group=group))


def entry_point(name: str, value: str, group: str) -> EntryPoint:
    """Return an entry point that no metadata list, such as that of a device of the core."""
    from importlib.metadata import EntryPoint

    return EntryPoint(name, value, group)


@lru_cache(1)
def _every(path: tuple[str, ...]) -> Any:
    from importlib import metadata

    return metadata.entry_points()
