"""The Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.exp_family import ExponentialFamily
from candelabra.distributions.parameterization import BinaryParameters
from candelabra.distributions.utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(BinaryParameters, ExponentialFamily):
    """1 with probability ``probs`` (of log odds ``logits``), else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (given,) = self._broadcast(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(Bernoulli, batch_shape, _instance, "probs", "logits")

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return cd.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with cd.no_grad():
            return cd.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -cd.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return cd.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(cd.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (cd.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return cd.nn.functional.softplus(x)


def __dir__() -> list[str]:
    return sorted(__all__)
