"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.categorical import Categorical
from candelabra.distributions.constraints import MixtureSameFamilyConstraint
from candelabra.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of the last dimension of the batch of ``component_distribution``, with a `Categorical`'s weights."""

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of candelabra.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of candelabra.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        weights, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(weights), reversed(batch))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return self._finish(new, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _averaged(self, of_components: Tensor) -> Tensor:
        """Return the weighted sum of events over the components."""
        probs: Tensor = self.mixture_distribution.probs
        weights = probs.reshape(probs.shape + Size([1] * self._event_ndims))
        return (weights * of_components).sum(-1 - self._event_ndims)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The law of total variance: the mean of the variances and the variance of the means."""
        distances = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._averaged(self.component_distribution.variance) + self._averaged(distances)

    def cdf(self, x: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        weights = self.mixture_distribution.logits.log_softmax(-1)
        return (self.component_distribution.log_prob(self._pad(x)) + weights).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with cd.no_grad():
            drawn = self.component_distribution.sample(sample_shape)
            component = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            dim = drawn.dim() - 1 - self._event_ndims
            shape = drawn.shape[:dim] + Size([1]) + drawn.shape[dim + 1 :]
            component = component.reshape(component.shape + Size([1] * (self._event_ndims + 1)))
            return drawn.gather(dim, component.expand(shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


def __dir__() -> list[str]:
    return sorted(__all__)
