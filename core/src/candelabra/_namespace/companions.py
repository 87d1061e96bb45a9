"""`candelabra.nn`, `optim` and `distributions`, which are a separate distribution, as `utils.data` is.
`candelabra.testing` comes with the conformance suite, whose comparison it is.

The package's ``__path__`` is extended by every folder ``candelabra`` on sys.path, so that plain imports find them
wherever pip has installed them, also in editable installs.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from candelabra._annotations import Final

COMPANIONS: Final[dict[str, tuple[str, str]]] = {
    "nn": ("candelabra.nn", "nn"),
    "optim": ("candelabra.optim", "nn"),
    "distributions": ("candelabra.distributions", "nn"),
    "testing": ("candelabra.testing", "conformance"),
}  # fmt: skip
"""Attributes of ``candelabra`` that other distributions contain: the module to import and the extra to install."""


def extend_path(path: list[str]) -> None:
    """Append to ``path`` each directory ``<entry of sys.path>/candelabra`` that it does not contain yet."""
    known = set(path)
    for entry in sys.path:
        folder = os.path.join(os.path.abspath(entry), "candelabra")
        if folder not in known and os.path.isdir(folder):
            known.add(folder)
            path.append(folder)


def companion(name: str, path: list[str]) -> ModuleType:
    """Import and return the package ``candelabra.<name>``. sys.path may have grown since the import of the core.

    Raises ``ModuleNotFoundError`` if the distribution is not installed.
    """
    extend_path(path)
    whole, extra = COMPANIONS[name]
    try:
        import_module(whole)
    except ModuleNotFoundError as error:
        if error.name is None or not whole.startswith(error.name):
            raise  # the package is installed, but not one of its dependencies
        raise ModuleNotFoundError(
            f'candelabra.{name} is not installed: pip install "candelabra[{extra}]"', name=f"candelabra.{name}"
        ) from None
    return sys.modules[f"candelabra.{name}"]
