"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.parameterization import BinaryParameters
from candelabra.distributions.utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(BinaryParameters, Distribution):
    """The number of failures before the first success, which has probability ``probs``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (given,) = self._broadcast(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not constraints.holds(given > 0):
            raise ValueError(
                f"Expected parameter probs ({type(given).__name__} of shape {tuple(given.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{given.detach()[given <= 0]}"
            )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return cd.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs: Tensor = self.probs
        with cd.no_grad():
            u = probs.new_empty(self._extended_shape(sample_shape)).uniform_(cd.finfo(probs.dtype).tiny, 1)
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failing = cd.where((probs == 1) & (value == 0), 0.0, probs)  # 0 * log(0) is 0 here
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross = cd.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross / self.probs


def __dir__() -> list[str]:
    return sorted(__all__)
