"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.utils import broadcast_all, uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, exponential at ``concentration`` 0 and bounded above below it."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, cd.where(self.concentration < 0, end, math.inf))

    def _nonzero(self) -> tuple[Tensor, Tensor]:
        """Return where the concentration is 0, and the concentration with 1 there."""
        zero = cd.isclose(self.concentration, cd.zeros_like(self.concentration))
        return zero, cd.where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._nonzero()
        exponent = 1 / c + cd.ones_like(z)
        power = cd.where(exponent == 0, exponent, exponent * (c * z).log1p())
        return -self.scale.log() - cd.where(zero, z, power)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of more than ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._nonzero()
        return cd.where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of at most ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._nonzero()
        log_survival = (-value).log1p()
        power = self.scale / c * (-c * log_survival).expm1()
        return self.loc + cd.where(zero, -self.scale * log_survival, power)

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        return cd.where(finite, self.loc + self.scale / (1 - cd.where(finite, self.concentration, 0.5)), math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = cd.where(finite, self.concentration, 0.25)
        return cd.where(finite, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


def __dir__() -> list[str]:
    return sorted(__all__)
