"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The von Mises distribution of angles in [-π, π), of density proportional to ``exp(concentration cos(x - loc))``.

    Numbers are drawn by rejection and have no ``rsample`` (Best & Fisher, *Efficient simulation of the von Mises
    distribution*, Applied Statistics 28, 1979).
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(VonMises, batch_shape, _instance, "loc", "concentration")

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # The scaled Bessel function i0e(k) = exp(-k) i0(k) does not overflow.
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - cd.special.i0e(k).log()

    def _envelope(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that encloses the density."""
        k = self.concentration.to(cd.float64)
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return cd.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))  # a series, where rho cancels

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with cd.no_grad():
            r, k = self._envelope().expand(shape), self.concentration.to(cd.float64).expand(shape)
            angle = cd.zeros(shape, dtype=cd.float64, device=self.loc.device)
            waiting = cd.ones_like(angle, dtype=cd.bool)
            while bool(waiting.any()):
                first, second, side = cd.rand((3, *shape), dtype=cd.float64, device=self.loc.device)
                z = (math.pi * first).cos()
                cosine = (1 + r * z) / (r + z)
                c = k * (r - cosine)
                accepted = (c * (2 - c) > second) | ((c / second).log() + 1 >= c)
                angle = cd.where(accepted & waiting, (side - 0.5).sign() * cosine.acos(), angle)
                waiting = waiting & ~accepted
            turned = (angle + math.pi + self.loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """The mean of the circle."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The variance of the circle, ``1 - i1(k) / i0(k)``."""
        return 1 - cd.special.i1e(self.concentration) / cd.special.i0e(self.concentration)


def __dir__() -> list[str]:
    return sorted(__all__)
