"""PyTorch's functions of functions that compiled programs call."""

from __future__ import annotations

from candelabra._higher_order_ops.foreach_map import foreach_map

__all__ = ["foreach_map"]
