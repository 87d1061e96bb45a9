"""The LKJ distribution over Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.beta import Beta
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.utils import broadcast_all, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices M of size ``dim``, of density proportional to ``det(M)**(η - 1)``.

    η is ``concentration``; at 1 the matrices are uniform. Numbers are drawn by the onion method. Source: Lewandowski,
    Kurowicka & Joe, *Generating random correlation matrices based on vines and extended onion method*, J. Multivariate
    Analysis 100 (2009), section 3.2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row k without its diagonal has the distribution Beta(k / 2, η + (dim - 1 - k) / 2); that
        # of row 0 is not used. (PyTorch 2.13 takes k - 1 / 2 for k / 2. Its matrices of more than two variables do not
        # have the density of its log_prob.)
        index = cd.arange(-1, dim - 1, dtype=self.concentration.dtype, device=self.concentration.device).clamp(min=0)
        last = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(0.5 * index + 0.5, last - 0.5 * index)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new: Any = self._expanded(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with cd.no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = standard_normal(self._extended_shape(sample_shape), squared).tril(-1)
            length = normal.norm(dim=-1, keepdim=True)
            below = squared.sqrt() * normal / cd.where(length == 0, 1.0, length)  # row 0 is 0
            rest = (1 - (below**2).sum(-1)).clamp(min=cd.finfo(below.dtype).tiny)
            return below + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density of a factor: that of the matrix, times the Jacobian of ``L @ L.T``."""
        if self._validate_args:
            self._validate_sample(value)
        rows = cd.arange(2, self.dim + 1, device=self.concentration.device)
        exponents = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        unnormalized = (exponents * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        # The normalizer on page 1999 of the paper; its product of gamma functions is a multivariate gamma function.
        size = self.dim - 1
        last = self.concentration + 0.5 * size
        log_gammas = (last - 0.5).mvlgamma(size) - last.lgamma() * size
        return unnormalized - 0.5 * size * math.log(math.pi) - log_gammas


def __dir__() -> list[str]:
    return sorted(__all__)
