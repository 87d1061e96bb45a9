"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.exp_family import ExponentialFamily
from candelabra.distributions.parameterization import BinaryParameters, one_of
from candelabra.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    uniform,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """The distribution over [0, 1] of density proportional to ``probs**x (1 - probs)**(1 - x)``.

    Between ``lims``, where the formulas cancel, Taylor series around 1/2 are used. Source: Loaiza-Ganem & Cunningham,
    *The continuous Bernoulli*, NeurIPS 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        (given,) = broadcast_all(one_of(probs, logits))
        self._lims = lims
        if probs is not None:
            # Before the limits, which hide what is wrong.
            if validate_args is not None and not constraints.holds(self.arg_constraints["probs"].check(given)):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(given)
        else:
            self.logits = given
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new: Any = self._expanded(ContinuousBernoulli, batch_shape, _instance, "probs", "logits")
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities of the Bernoulli distribution of the same exponents."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self) -> tuple[Tensor, Tensor]:
        """Return where the formulas are stable, and the probabilities with another one elsewhere."""
        stable = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return stable, cd.where(stable, self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the normalizer, ``2 artanh(1 - 2 p) / (1 - 2 p)``."""
        stable, p = self._stable()
        below, above = cd.where(p <= 0.5, p, 0.0), cd.where(p >= 0.5, p, 1.0)
        denominator = cd.where(p <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        exact = ((-p).log1p() - p.log()).abs().log() - denominator
        x = (self.probs - 0.5) ** 2
        return cd.where(stable, exact, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        stable, p = self._stable()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return cd.where(stable, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        stable, p = self._stable()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return cd.where(stable, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross = cd.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - cross

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        stable, p = self._stable()
        exact = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = cd.where(stable, exact, value)
        return cd.where(value <= 0.0, 0.0, cd.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        stable, p = self._stable()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return cd.where(stable, exact, value)

    def entropy(self) -> Tensor:
        log_0, log_1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_0 - log_1) - self._cont_bern_log_norm() - log_0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        stable = (x <= low) | (x > high)
        cut = cd.where(stable, x, low)
        taylor = 0.5 * x + x**2 / 24.0 - x**4 / 2880.0
        return cd.where(stable, cut.expm1().abs().log() - cut.abs().log(), taylor)


def __dir__() -> list[str]:
    return sorted(__all__)
