"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.categorical import Categorical
from candelabra.distributions.distribution import Distribution

__all__ = ["CategoricalVectors", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class CategoricalVectors(Distribution):
    """A distribution over vectors whose parameters are those of a `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def _expand_categorical(self, family: type, batch_shape: Sequence[int], instance: Any) -> Any:
        new = self._get_checked_instance(family, instance)
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities of the elements."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(CategoricalVectors):
    """A vector with one 1 and zeros, with the probabilities of a `Categorical`."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expand_categorical(OneHotCategorical, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, indices: Tensor) -> Tensor:
        return cd.nn.functional.one_hot(indices, self.event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = cd.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A `OneHotCategorical` whose numbers have the gradient of the probabilities (Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


def __dir__() -> list[str]:
    return sorted(__all__)
