"""Files: `save` and `load`, which never execute a pickle, and the classes that `load` may rebuild."""

from candelabra._annotations import Any
from candelabra._serialization.api import load as load
from candelabra._serialization.api import save as save
from candelabra._serialization.safe_globals import add_safe_globals as add_safe_globals
from candelabra._serialization.safe_globals import clear_safe_globals as clear_safe_globals
from candelabra._serialization.safe_globals import get_safe_globals as get_safe_globals
from candelabra._serialization.safe_globals import safe_globals as safe_globals
from candelabra.errors import FileFormatError as FileFormatError


def __getattr__(name: str) -> Any:
    from candelabra import types  # late: it imports `typing`, which takes longer than all of the core

    aliases = {"FILE_LIKE": types.FileLike, "MAP_LOCATION": types.MapLocation}
    if name not in aliases:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return aliases[name]


__all__ = [
    "FileFormatError", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
