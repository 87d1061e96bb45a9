"""What a row of the tables is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One bad call: an id, the call over the fixtures, the error's class, and a pattern in its text."""

    name: str
    call: Callable[[SimpleNamespace], Any]
    error: type[BaseException]
    text: str
