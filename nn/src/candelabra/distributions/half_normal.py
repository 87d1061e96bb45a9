"""The half-normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.distributions._half import Half
from candelabra.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The distribution of the absolute values of ``Normal(0, scale)``."""

    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


def __dir__() -> list[str]:
    return sorted(__all__)
