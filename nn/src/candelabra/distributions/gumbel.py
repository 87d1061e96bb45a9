"""The Gumbel distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.transforms import AffineTransform, ExpTransform
from candelabra.distributions.uniform import Uniform
from candelabra.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of maxima: ``loc - scale * log(-log(u))`` of a uniform number ``u``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = cd.finfo(self.loc.dtype)
        low, high = cd.full_like(self.loc, info.tiny), cd.full_like(self.loc, 1 - info.eps)
        super().__init__(
            Uniform(low, high, validate_args=validate_args),
            [
                ExpTransform().inv, AffineTransform(loc=0, scale=-cd.ones_like(self.scale)),
                ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale),
            ],
            validate_args=validate_args,
        )  # fmt: skip

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


def __dir__() -> list[str]:
    return sorted(__all__)
