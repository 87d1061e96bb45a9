"""Files: `save` and `load`, which never execute a pickle, and the classes that `load` may rebuild."""

from candelabra._serialization.api import load as load
from candelabra._serialization.api import save as save
from candelabra._serialization.safe_globals import add_safe_globals as add_safe_globals
from candelabra._serialization.safe_globals import clear_safe_globals as clear_safe_globals
from candelabra._serialization.safe_globals import get_safe_globals as get_safe_globals
from candelabra._serialization.safe_globals import safe_globals as safe_globals
from candelabra.errors import FileFormatError as FileFormatError

__all__ = [
    "FileFormatError", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
