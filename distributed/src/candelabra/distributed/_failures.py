"""A rank that raises ends the others, which would wait for it for ever."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

_installed: Final[list[Callable[..., Any]]] = []


def install_hook(rank: int, abort: Callable[[int], Any]) -> None:
    """Print an exception that nothing catches with the rank, then end all ranks.

    It replaces ``sys.excepthook`` and ``threading.excepthook`` once, and calls the former ones for the traceback.
    """
    if _installed:
        return
    former, former_of_threads = sys.excepthook, threading.excepthook

    def end(code: int = 1) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        abort(code)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(f"rank {rank} ends all ranks because of {kind.__name__}: {error}\n")
        former(kind, error, trace)
        end()

    def hook_of_threads(arguments: threading.ExceptHookArgs) -> None:
        sys.stderr.write(f"rank {rank} ends all ranks because of an error in a thread\n")
        former_of_threads(arguments)
        end()

    _installed.append(hook)
    sys.excepthook, threading.excepthook = hook, hook_of_threads
