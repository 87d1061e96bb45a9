"""The line of the user's program that is running, for errors about values that a transformed function reads."""

from __future__ import annotations

import linecache
import sys
from types import FrameType

PACKAGE = __name__.partition(".")[0]


def users_line() -> str:
    """Return file, line and source of the innermost frame outside of this package, as in a traceback."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame):
        frame = frame.f_back
    if frame is None:
        return ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    return f'\n  File "{file}", line {line}, in {frame.f_code.co_name}' + (f"\n    {source}" if source else "")


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame runs code of this package, or code that it has generated."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == PACKAGE or frame.f_code.co_filename.startswith(f"<{PACKAGE}")
