"""Debug mode: every collective first compares what the ranks are about to call."""

from __future__ import annotations

import os
from typing import Final

from candelabra.distributed.engine import Communicator

LEVELS: Final = ("OFF", "INFO", "DETAIL")
_WIDTH: Final = 512
_set: Final[list[str]] = []


class MismatchedCollective(RuntimeError):
    """The ranks of a group have called different collectives, or with different arguments."""


def debug_level() -> str:
    """Return the level: of ``set_debug_level``, or of CANDELABRA_DISTRIBUTED_DEBUG or TORCH_DISTRIBUTED_DEBUG."""
    if _set:
        return _set[-1]
    environment = os.environ
    found = environment.get("CANDELABRA_DISTRIBUTED_DEBUG", environment.get("TORCH_DISTRIBUTED_DEBUG", "OFF")).upper()
    if found not in LEVELS:
        raise ValueError(f"The value of CANDELABRA_DISTRIBUTED_DEBUG must be one of {', '.join(LEVELS)}, got {found!r}")
    return found


def set_debug_level(level: str) -> None:
    """Set the level of this process: "OFF", "INFO", or "DETAIL", which compares every collective of all ranks."""
    if level not in LEVELS:
        raise ValueError(f"the debug level must be one of {', '.join(LEVELS)}, got {level!r}")
    _set[:] = [level]


def fingerprint(communicator: Communicator, signature: str, described: str) -> None:
    """Compare a call on all ranks. Raise :class:`MismatchedCollective` with what each rank calls, and where."""
    own = bytearray(2 * _WIDTH)
    for start, text in ((0, signature), (_WIDTH, described)):
        data = text.encode()[:_WIDTH]
        own[start : start + len(data)] = data
    everything = bytearray(len(own) * communicator.size)
    communicator.all_gather(memoryview(own), memoryview(everything))
    rows = [everything[i * len(own) : (i + 1) * len(own)] for i in range(communicator.size)]
    calls = {bytes(row[:_WIDTH]) for row in rows}
    if len(calls) > 1:
        texts = [bytes(row[_WIDTH:]).rstrip(b"\0").decode(errors="replace") for row in rows]
        raise MismatchedCollective("the ranks have called different collectives:\n  " + "\n  ".join(texts))
