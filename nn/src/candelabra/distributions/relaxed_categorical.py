"""The continuous relaxation of the one-hot categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.categorical import Categorical
from candelabra.distributions.one_hot_categorical import CategoricalVectors
from candelabra.distributions.parameterization import RelaxedParameters
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.transforms import ExpTransform
from candelabra.distributions.utils import broadcast_all, clamp_probs, uniform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(CategoricalVectors):
    """The logarithms of a `RelaxedOneHotCategorical`: Gumbel numbers around ``logits``, over the temperature."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Tensor, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._expand_categorical(ExpRelaxedCategorical, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        gumbels = -(-noise.log()).log()
        return ((self.logits + gumbels) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scores = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(k) + (k - 1) * self.temperature.log()


class RelaxedOneHotCategorical(RelaxedParameters, TransformedDistribution):
    """Points of the simplex that approach one-hot vectors as ``temperature`` approaches 0.

    Sources: Maddison, Mnih & Teh, *The concrete distribution*, ICLR 2017; Jang, Gu & Poole, *Categorical
    reparameterization with Gumbel-softmax*, ICLR 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self, temperature: Tensor, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))


def __dir__() -> list[str]:
    return sorted(__all__)
