"""The continuous relaxation of the Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.parameterization import BinaryParameters, RelaxedParameters
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.transforms import SigmoidTransform
from candelabra.distributions.utils import broadcast_all, probs_to_logits, uniform

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameters, Distribution):
    """The log odds of a `RelaxedBernoulli`: a logistic number around ``logits``, divided by ``temperature``."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self, temperature: Tensor, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self.temperature = temperature
        (given,) = self._broadcast(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new: Any = self._expanded(LogitRelaxedBernoulli, batch_shape, _instance, "probs", "logits")
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = probs_to_logits(uniform(shape, self._param), is_binary=True)
        return (noise + probs_to_logits(self.probs.expand(shape), is_binary=True)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(RelaxedParameters, TransformedDistribution):
    """Numbers in (0, 1) that approach those of a Bernoulli distribution as ``temperature`` approaches 0.

    Source: Maddison, Mnih & Teh, *The concrete distribution*, ICLR 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Tensor, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))


def __dir__() -> list[str]:
    return sorted(__all__)
