"""How :func:`F.linear_cross_entropy` divides its batch."""

from __future__ import annotations

import dataclasses
from typing import Any

from candelabra.dtypes import bfloat16, float16, float32, float64

__all__ = ["LinearCrossEntropyOptions"]

POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """The number of rows whose logits are in memory at a time.

    ``batch_chunk_size`` is that number, or ``chunking_method`` computes it: "aspect_ratio" makes the logits of a piece
    about as large as the input, "aspect_ratio:2" half of that, which is "auto". With neither, the batch is one piece.

    ``allow_retain_graph``, ``acc_policy`` and ``acc_dtype`` are checked and have no effect: the backward pass computes
    the logits again, so that the graph may be retained, and sums of half dtypes are computed in float32.

    Raises ``ValueError`` for an unknown policy, method or dtype and for a size that is not positive.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        from candelabra.nn._functional.linear_cross_entropy import divisor_of  # declares operators: at the first use

        if self.acc_policy not in POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and divisor_of(self.chunking_method) is None:
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        allowed = (None, float16, bfloat16, float32, float64)
        if self.acc_dtype not in allowed:
            names = ", ".join(map(str, allowed))
            raise ValueError(
                f"acc_dtype must be one of {{{names}}}, got {self.acc_dtype!r}. Pass acc_dtype=None for the default."
            )


def __dir__() -> list[str]:
    return sorted(__all__)
