"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


def batch_mv(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Multiply matrices with vectors; the batches broadcast."""
    return cd.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(scale_tril: Tensor, x: Tensor) -> Tensor:
    """Return ``x.T @ inverse(L @ L.T) @ x`` for each vector, given Cholesky factors L.

    Dimensions that only the vectors have become columns of the systems, so that no factor is copied for them.
    """
    outer = max(x.dim() + 1 - scale_tril.dim(), 0)
    columns = x.reshape(-1, *x.shape[outer:]).movedim(0, -1)
    squares = cd.linalg.solve_triangular(scale_tril, columns, upper=False).pow(2).sum(-2)
    return squares.movedim(-1, 0).reshape(x.shape[:outer] + squares.shape[:-1])


def log_diagonal(scale_tril: Tensor) -> Tensor:
    """Return the logarithms of the determinants of triangular matrices."""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse: the flipped factor of the flipped matrix, inverted."""
    flipped = cd.linalg.cholesky(precision.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).mT
    unit = cd.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return cd.linalg.solve_triangular(inverse, unit, upper=False)


def only_matrix(**matrices: Tensor | None) -> tuple[str, Tensor] | None:
    """Return the one matrix that is given, with its name, or None if there are more or none."""
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    return given[0] if len(given) == 1 else None


def scale_tril_of(name: str, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of the covariance that a matrix of this name describes."""
    if name == "scale_tril":
        return matrix
    return cd.linalg.cholesky(matrix) if name == "covariance_matrix" else precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    """The normal distribution over vectors of the last dimension of ``loc``.

    Exactly one of ``covariance_matrix``, ``precision_matrix`` and ``scale_tril`` (the Cholesky factor of the
    covariance, the cheapest) is given; the others are computed at their first use.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = only_matrix(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if given is None:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given
        if matrix.dim() < 2:
            title = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{title} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = Size(cd.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        names = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
        new: Any = self._expanded(MultivariateNormal, batch_shape, _instance, *names)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return cd.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        squares = batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - log_diagonal(factor)

    def entropy(self) -> Tensor:
        volume = log_diagonal(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + volume).expand(self._batch_shape)


def __dir__() -> list[str]:
    return sorted(__all__)
