"""What distributions have in common that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from candelabra import Size, Tensor
from candelabra.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["BinaryParameters", "RelaxedParameters", "one_of"]


def one_of(probs: Any, logits: Any) -> Any:
    """Return the one that is given. Raises ``ValueError`` if both or none are."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return logits if probs is None else probs


class BinaryParameters:
    """The attributes ``probs`` and ``logits``, of which one is set and the other is computed at the first use."""

    _is_binary = True

    def _broadcast(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Broadcast other parameters and the one of ``probs`` and ``logits`` that is given, set that one, and return
        all, with it at the end.
        """
        found = broadcast_all(*others, one_of(probs, logits))
        setattr(self, "logits" if probs is None else "probs", found[-1])
        return found

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def _param(self) -> Tensor:
        attributes = self.__dict__
        return attributes["probs"] if "probs" in attributes else attributes["logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new_empty(*args, **kwargs)


class RelaxedParameters:
    """The parameters of a relaxed distribution, which are those of the distribution that it transforms."""

    base_dist: Any

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, or the log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


def __dir__() -> list[str]:
    return sorted(__all__)
