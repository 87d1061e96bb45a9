"""Models from repositories: not supported, because loading one runs the code of a stranger. The functions raise."""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse as urlparse  # programs import it from here

from candelabra._absent import missing

_REASON = (
    "candelabra downloads and runs no code from repositories. Install the model as a package, and load its weights "
    "from a file with candelabra.load"
)
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
"""The start of a file's hash in its name, ``name-0123abcd.pt``: for programs that check files themselves."""

_directory: list[str] = []
load = missing("hub", "load", _REASON)
list = missing("hub", "list", _REASON)
help = missing("hub", "help", _REASON)
load_state_dict_from_url = missing("hub", "load_state_dict_from_url", _REASON)
download_url_to_file = missing("hub", "download_url_to_file", _REASON)


def get_dir() -> str:
    """Return the folder for downloaded files: that of :func:`set_dir`, or ``hub`` in candelabra's cache."""
    if _directory:
        return _directory[-1]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "candelabra", "hub")


def _get_torch_home() -> str:
    return os.path.dirname(get_dir())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder that :func:`get_dir` returns."""
    _directory[:] = [os.path.expanduser(os.fspath(d))]


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


def __dir__() -> "list[str]":  # type: ignore[valid-type]  # noqa: UP037 - `list` is a function of this module
    return sorted(__all__)
