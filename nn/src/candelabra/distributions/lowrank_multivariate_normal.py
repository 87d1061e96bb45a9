"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.multivariate_normal import batch_mahalanobis, batch_mv, log_diagonal
from candelabra.distributions.utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    ``loc`` and ``cov_diag`` are of shape (*, n), ``cov_factor`` of shape (*, n, m). With m below n this is cheaper than
    a `MultivariateNormal`: by the Woodbury identity and the lemma of the matrix determinant, only the *capacitance*
    ``I + W.T @ inverse(D) @ W``, m × m, is factorized.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch = Size(cd.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch + event_shape)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + event_shape)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        weighted = self._weighted_factor()
        unit = cd.eye(cov_factor.shape[-1], dtype=weighted.dtype, device=weighted.device)
        self._capacitance_tril = cd.linalg.cholesky(weighted @ cov_factor + unit)
        super().__init__(batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        names = ("loc", "cov_factor", "cov_diag")
        new: Any = self._expanded(LowRankMultivariateNormal, batch_shape, _instance, *names)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return new

    def _weighted_factor(self) -> Tensor:
        """``cov_factor.T @ inverse(diag(cov_diag))``."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _whitened_factor(self) -> Tensor:
        """The matrix A of ``precision = inverse(D) - A.T @ A``."""
        return cd.linalg.solve_triangular(self._capacitance_tril, self._weighted_factor(), upper=False)

    def _log_determinant(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """``x.T @ precision @ x``."""
        within = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return within - batch_mahalanobis(self._capacitance_tril, batch_mv(self._weighted_factor(), x))

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance, by that of the covariance scaled to a diagonal of at least 1."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        unit = cd.eye(self._event_shape[0], dtype=root.dtype, device=root.device)
        return (root * cd.linalg.cholesky(scaled @ scaled.mT + unit)).expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return (factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        whitened = self._whitened_factor()
        precision = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - whitened.mT @ whitened
        return precision.expand(self._matrix_shape())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        common = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        own = self._unbroadcasted_cov_diag.sqrt() * standard_normal(shape, self.loc)
        return self.loc + batch_mv(self._unbroadcasted_cov_factor, common) + own

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        squares = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_determinant() + squares)

    def entropy(self) -> Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_determinant())
        return entropy.expand(self._batch_shape)


def __dir__() -> list[str]:
    return sorted(__all__)
