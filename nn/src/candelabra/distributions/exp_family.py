"""Exponential families, whose entropies and divergences follow from the logarithm of the normalizer."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions of density ``exp(<t(x), natural parameters> - log normalizer + k(x))``."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._missing("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise self._missing("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of k."""
        raise self._missing("_mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return the entropy: the Bregman divergence of the log normalizer (Nielsen & Nock, ICIP 2010)."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*parameters)
        gradients = cd.autograd.grad(log_normalizer.sum(), parameters, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        for p, g in zip(parameters, gradients, strict=True):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result


def __dir__() -> list[str]:
    return sorted(__all__)
