"""The processor as kernels are made for it: its level, which is what the x86-64 psABI calls the instructions that they
may use, and its traits, which follow from the level.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Set
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from candelabra_clike.processor import processor_flags

if TYPE_CHECKING:
    from candelabra_clike import Traits

PARTS: Final = 8
"""What kernels take for the number of processor cores, when they divide their work. It is constant, because the order
of a sum must depend neither on the machine nor on the number of threads."""
_FEATURES: Final = {
    "x86_64_v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86_64_v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""What Linux calls the features that each level adds to the one before."""
LEVEL: Final = "CANDELABRA_NATIVE_LEVEL"
"""The environment variable with a lower level than the machine's, or 0 for none: then NumPy serves everything."""


@lru_cache(1)
def level() -> str | None:
    """Return the highest level of this machine for which kernels are compiled, or None if it is older than all.

    Raises ``ValueError`` if the environment variable names a level that this machine does not have.
    """
    own, wanted = _machine_level(), os.environ.get(LEVEL, "")
    if not wanted or wanted == own:
        return own
    if wanted == "0":
        return None
    if wanted not in _lower(own):
        have = ", ".join(_lower(own)) or "none"
        raise ValueError(f"{LEVEL}={wanted}: this machine has no such level; it has {have}")
    return wanted


@lru_cache(1)
def levels() -> tuple[str, ...]:
    """Return the levels whose kernels this process may run, the highest first."""
    return _lower(level())


def _lower(own: str | None) -> tuple[str, ...]:
    """Return a level and those below it, whose kernels a processor of that level runs too."""
    names = tuple(reversed(_FEATURES))
    return names[names.index(own) :] if own in names else (own,) if own else ()


def _machine_level() -> str | None:
    machine = platform.machine().lower()
    if machine in ("aarch64", "arm64"):
        return "aarch64"
    if machine not in ("x86_64", "amd64") or not sys.platform.startswith("linux"):
        return None
    return level_of(processor_flags())


def level_of(flags: Set[str]) -> str | None:
    """Return the highest level whose features, and those of the levels before, are all present."""
    found = None
    for name, needed in _FEATURES.items():
        if not needed <= flags:
            break
        found = name
    return found


def traits_of(level: str | None) -> Traits:
    """Return the traits of processors of a level.

    32 registers of 64 bytes on x86-64-v4. The 32 registers of 16 bytes of aarch64 count as 16 of 32 bytes.
    """
    from candelabra_clike import Traits

    lanes, registers = (16, 32) if level == "x86_64_v4" else (8, 16)
    return Traits(
        serial=True, compute_units=PARTS, group=1, local_memory=0, memory=1 << 62, largest=1 << 62, cache=32 << 20,
        lanes=lanes, registers=registers,
    )  # fmt: skip
