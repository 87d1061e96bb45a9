"""Choices for :func:`F.scaled_dot_product_attention`.

The backend of a device has one kernel of attention or none. Dispatch selects it, so that a choice has no effect.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False
"""Accepted for PyTorch's programs, without effect."""


class SDPBackend(enum.Enum):
    """PyTorch's implementations of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __int__(self) -> int:
        return self.value


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """Check the names of implementations. The choice has no effect: dispatch selects the kernel.

    Raises ``AssertionError`` for anything but an SDPBackend or a list.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield {}


def __dir__() -> list[str]:
    return sorted(__all__)
