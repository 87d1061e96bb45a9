"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.chi2 import Chi2
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution with ``df`` degrees of freedom, moved by ``loc`` and scaled by ``scale``."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Tensor | float, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new: Any = self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return cd.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = cd.where(finite, self.df, 3.0)
        infinite = cd.where(self.df > 1, self.df.new_tensor(math.inf), math.nan)
        return cd.where(finite, self.scale.pow(2) * df / (df - 2), infinite)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * (normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def _log_beta(self) -> Tensor:
        return (0.5 * self.df).lgamma() + math.lgamma(0.5) - (0.5 * (self.df + 1)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1.0) * (y**2 / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        spread = half * (half.digamma() - (0.5 * self.df).digamma())
        return self.scale.log() + spread + 0.5 * self.df.log() + self._log_beta()


def __dir__() -> list[str]:
    return sorted(__all__)
