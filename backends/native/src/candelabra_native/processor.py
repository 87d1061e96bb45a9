"""The processor level: the instructions that kernels may use, as the x86-64 psABI names them."""

from __future__ import annotations

import platform
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

_FEATURES: Final = {
    "x86_64_v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86_64_v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""What Linux calls the features that each level adds to the one before."""
_LINUX: Final = Path("/proc/cpuinfo")


@lru_cache(1)
def level() -> str | None:
    """Return the highest level of this machine for which kernels are compiled, or None if it is older than all."""
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return "aarch64"
    if machine not in ("x86_64", "amd64") or not sys.platform.startswith("linux"):
        return None
    return level_of(flags_in(_LINUX.read_text() if _LINUX.exists() else ""))


def flags_in(text: str) -> set[str]:
    """Return the features of the first processor in the text of ``/proc/cpuinfo``."""
    return next((set(line.partition(":")[2].split()) for line in text.splitlines() if line.startswith("flags")), set())


def level_of(flags: set[str]) -> str | None:
    """Return the highest level whose features, and those of the levels before, are all present."""
    found = None
    for name, needed in _FEATURES.items():
        if not needed <= flags:
            break
        found = name
    return found
