"""The common base of the distributions of absolute values."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.transforms import AbsTransform


class Half(TransformedDistribution):
    """The distribution of the absolute values of a distribution with ``scale`` that is symmetric about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    def __init__(self, symmetric: Distribution, validate_args: bool | None) -> None:
        super().__init__(symmetric, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution on both sides of 0."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return cd.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        value = cd.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        if self._validate_args:
            self._validate_sample(value)
        return cd.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
