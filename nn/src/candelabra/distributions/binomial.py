"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.parameterization import BinaryParameters

__all__ = ["Binomial"]


class Binomial(BinaryParameters, Distribution):
    """The number of successes in ``total_count`` trials of probability ``probs``."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Tensor | int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        count, given = self._broadcast(probs, logits, total_count)
        self.total_count = count.type_as(given)
        super().__init__(given.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(Binomial, batch_shape, _instance, "total_count", "probs", "logits")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with cd.no_grad():
            return cd.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        log_choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # n * softplus(logits); with a derivative of 1/2 at 0 on either side of abs.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        return value * self.logits + log_choices - n * (positive + (-self.logits.abs()).exp().log1p())

    def _equal_count(self, method: str) -> int:
        count = int(self.total_count.max())
        if not bool(self.total_count.min() == count):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return count

    def entropy(self) -> Tensor:
        self._equal_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._equal_count("enumerate_support")
        return self._enumerated(cd.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)


def __dir__() -> list[str]:
    return sorted(__all__)
