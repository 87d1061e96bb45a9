"""``utils.benchmark``, ``checkpoint``, ``dlpack`` and ``hooks``; candelabra-nn has ``data`` and ``tensorboard``.

A submodule is imported at its first use.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from candelabra._annotations import Any


def _extend_path() -> None:
    """Append the folders ``candelabra/utils`` of other distributions to ``__path__``."""
    import candelabra
    from candelabra._namespace.companions import extend_path

    extend_path(candelabra.__path__)
    known = {os.path.abspath(folder) for folder in __path__}
    for parent in candelabra.__path__:
        folder = os.path.join(os.path.abspath(parent), "utils")
        if folder not in known and os.path.isdir(folder):
            __path__.append(folder)


_extend_path()


def __getattr__(name: str) -> Any:
    if name not in (*__all__, "_pytree"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    whole = f"{__name__}.{name}"
    _extend_path()
    try:
        import_module(whole)
    except ModuleNotFoundError as error:
        if error.name != whole:
            raise
        raise ModuleNotFoundError(f'{whole} is not installed: pip install "candelabra[nn]"', name=whole) from None
    return sys.modules[whole]


__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "model_zoo", "tensorboard"]


def __dir__() -> list[str]:
    return sorted(__all__)
