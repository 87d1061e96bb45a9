"""Files: `save` and `load`, which never execute a pickle."""

from candelabra._serialization.api import load as load
from candelabra._serialization.api import save as save
from candelabra.errors import FileFormatError as FileFormatError

__all__ = [
    "FileFormatError", "load", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
