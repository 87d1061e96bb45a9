"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.gamma import Gamma
from candelabra.distributions.parameterization import BinaryParameters
from candelabra.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameters, Distribution):
    """The number of successes, of probability ``probs``, before ``total_count`` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Tensor | float, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        count, given = self._broadcast(probs, logits, total_count)
        self.total_count = count.type_as(given)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits")

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        # Without validation: a count of 0 is allowed here.
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with cd.no_grad():
            return cd.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logsigmoid = self.total_count, cd.nn.functional.logsigmoid
        log_choices = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        log_choices = cd.where(n + value == 0.0, 0.0, log_choices)
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + log_choices


def __dir__() -> list[str]:
    return sorted(__all__)
