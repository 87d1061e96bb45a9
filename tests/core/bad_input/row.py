"""A row of the tables."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple


class Row(NamedTuple):
    """An invalid call: an id, the call with the fixtures, the error's class, and a pattern of its text."""

    name: str
    call: Callable[[SimpleNamespace], Any]
    error: type[BaseException]
    text: str
