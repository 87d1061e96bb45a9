"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.transforms import AffineTransform, PowerTransform
from candelabra.distributions.uniform import Uniform
from candelabra.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution over [0, 1] of ``cdf(x) = 1 - (1 - x**a)**b``, a = concentration1 and b = concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero = cd.zeros_like(self.concentration0)
        super().__init__(
            Uniform(zero, zero + 1, validate_args=validate_args),
            [
                PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                PowerTransform(exponent=self.concentration1.reciprocal()),
            ],
            validate_args=validate_args,
        )  # fmt: skip

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Tensor:
        """The mean of ``x**n``: ``b * beta(1 + n / a, b)``."""
        order, b = 1 + n / self.concentration1, self.concentration0
        return b * (order.lgamma() + b.lgamma() - (order + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return cd.where((b < 1) | (a < 1), math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()


def __dir__() -> list[str]:
    return sorted(__all__)
