"""``x[…]`` and ``x[…] = …`` in all of PyTorch's forms."""

from __future__ import annotations

from candelabra.fronts.registry import front
