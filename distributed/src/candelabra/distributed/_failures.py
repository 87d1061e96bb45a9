"""A rank that raises ends the others, which would wait for it for ever."""

from __future__ import annotations

import faulthandler
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

LAST_WAIT: Final = 3.0
"""Seconds within which a rank that ends all ranks ends itself."""
ANNOUNCED: Final = re.compile(rb"rank \d+ ends all ranks ")
"""How a line of :func:`announce` begins, by which ``candelabra run`` recognizes it."""
_installed: Final[list[Callable[..., Any]]] = []


def announce(rank: int, why: str) -> None:
    """Say that a rank is about to end all ranks, if standard error is still open."""
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.write(f"rank {rank} ends all ranks {why}\n")
        sys.stderr.flush()


def end_all(abort: Callable[[int], Any], code: int) -> None:
    """End all ranks by ``abort(code)``, and this process at the latest after some seconds.

    MPI_Abort waits for an answer of the process manager, which does not come if a machine is gone.
    """
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(LAST_WAIT, exit=True, file=nowhere)
        abort(code)
        faulthandler.cancel_dump_traceback_later()


def install_hook(rank: int, abort: Callable[[int], Any]) -> None:
    """Print an exception that nothing catches with the rank, then end all ranks.

    It replaces ``sys.excepthook`` and ``threading.excepthook`` once, and calls the former ones for the traceback.
    """
    if _installed:
        return
    former, former_of_threads = sys.excepthook, threading.excepthook

    def end() -> None:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        end_all(abort, 1)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        announce(rank, f"because of {kind.__name__}: {error}")
        with suppress(OSError):
            former(kind, error, trace)
        end()

    def hook_of_threads(arguments: threading.ExceptHookArgs) -> None:
        announce(rank, "because of an error in a thread")
        former_of_threads(arguments)
        end()

    _installed.append(hook)
    sys.excepthook, threading.excepthook = hook, hook_of_threads
