"""The features of the host's processor."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

_LINUX: Final = Path("/proc/cpuinfo")


@lru_cache(1)
def processor_flags() -> frozenset[str]:
    """Return the features of the processor in Linux's words (``avx2``, ``fma``). Empty on other systems, and on
    processors other than x86.
    """
    return flags_in(_LINUX.read_text() if _LINUX.exists() else "")


def flags_in(text: str) -> frozenset[str]:
    """Return the features of the first processor in the text of ``/proc/cpuinfo``."""
    lines = (line for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next((line.partition(":")[2].split() for line in lines), ()))
