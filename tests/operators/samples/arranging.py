"""Derivative samples of shapes, scattering and draws, and the kernels' arguments that no schema determines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd


def index(*values: Any) -> Any:
    """An int64 tensor."""
    return cd.tensor(list(values), dtype=cd.int64)


SAMPLES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "scatter_extreme": lambda t: (t(3, 2), 0, index([0, 0], [0, 1]), t(2, 2), "prod", True),
    "random_poisson": lambda t: (t(3), 1, 2),
    "random_binomial": lambda t: (t(3), t(3), 1, 2),
}
KERNEL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "scatter_extreme": {"reduce": "prod"},
    "squeeze": {"dims": ()},
}
