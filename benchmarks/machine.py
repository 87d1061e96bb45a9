"""What reports say of the machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def load() -> float:
    """Return the machine's load over the last minute, or 0 if the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
