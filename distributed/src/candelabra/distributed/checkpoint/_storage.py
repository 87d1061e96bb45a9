"""The folder of a checkpoint, as programs pass it."""

from __future__ import annotations

import os


class FileSystemWriter:
    """A folder to write to, in place of ``checkpoint_id``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path


class FileSystemReader:
    """A folder to read from, in place of ``checkpoint_id``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
