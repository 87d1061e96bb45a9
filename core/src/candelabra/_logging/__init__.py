"""PyTorch's names of the compiler's logs: ``candelabra.compiler.set_logs``."""

from __future__ import annotations

from candelabra._logging import _internal
from candelabra.compiler import set_logs

__all__ = ["_internal", "set_logs"]
