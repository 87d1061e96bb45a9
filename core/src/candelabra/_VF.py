"""The functions of ``candelabra`` under PyTorch's internal name ``_VF``, by which programs call ``lstm`` and others."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import candelabra

    return getattr(candelabra, name)
