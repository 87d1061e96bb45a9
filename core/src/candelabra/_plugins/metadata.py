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


@lru_cache(1)
def _every(path: tuple[str, ...]) -> Any:
    from importlib import metadata

    return metadata.entry_points()
