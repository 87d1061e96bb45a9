"""The multinomial distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.binomial import Binomial
from candelabra.distributions.categorical import Categorical
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.one_hot_categorical import CategoricalVectors
from candelabra.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(CategoricalVectors):
    """How often each category was drawn in ``total_count`` trials, one number for all of the batch."""

    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._expand_categorical(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample(Size((self.total_count, *sample_shape))).movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add(-1, drawn, cd.ones_like(drawn, dtype=counts.dtype))

    def entropy(self) -> Tensor:
        n = self.total_count
        marginal = Binomial(total_count=n, probs=self.probs)
        counts = marginal.enumerate_support(expand=False)[1:]
        log_factorials = (marginal.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + log_factorials

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = cd.where((value == 0) & (logits == -math.inf), 0.0, logits)
        log_choices = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return log_choices + (logits * value).sum(-1)


def __dir__() -> list[str]:
    return sorted(__all__)
