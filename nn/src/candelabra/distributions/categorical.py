"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.parameterization import BinaryParameters, one_of

__all__ = ["Categorical"]


class Categorical(BinaryParameters, Distribution):
    """One of the integers 0 to k - 1, with probabilities along the last dimension of ``probs`` or ``logits``.

    ``probs`` are weights, which are normalized. ``logits`` are logarithms of weights.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        if given.dim() < 1:
            name = "logits" if probs is None else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(Categorical, batch_shape, _instance, "probs", "logits")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self.probs.new_full(self._extended_shape(), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        count = Size(sample_shape).numel()
        if count == 0 or rows.shape[0] == 0:
            return cd.empty(self._extended_shape(sample_shape), dtype=cd.int64, device=rows.device)
        return cd.multinomial(rows, count, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, log_probs = value.long().unsqueeze(-1), self.logits
        if value.shape[:-1] != log_probs.shape[:-1]:
            shape = cd.broadcast_shapes(value.shape[:-1], log_probs.shape[:-1])
            value, log_probs = value.expand((*shape, 1)), log_probs.expand((*shape, -1))
        return log_probs.gather(-1, value).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=cd.finfo(self.logits.dtype).min)  # 0 * -inf is 0 here
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(cd.arange(self._num_events, device=self._param.device), expand)


def __dir__() -> list[str]:
    return sorted(__all__)
