"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.chi2 import Chi2
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.exp_family import ExponentialFamily
from candelabra.distributions.multivariate_normal import log_diagonal, only_matrix, scale_tril_of
from candelabra.distributions.utils import NUMBER, lazy_property, standard_normal

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The distribution of ``X.T @ X`` of ``df`` normal vectors of mean 0, the rows of X, for real ``df``.

    Exactly one of ``covariance_matrix``, ``precision_matrix`` and ``scale_tril`` describes the normal vectors. Numbers
    are drawn by Bartlett's decomposition. Those that are singular by rounding, likely for ``df`` near the dimension,
    are drawn again up to ``max_try_correction`` times.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Tensor | float, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        given = only_matrix(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if given is None:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        event_shape, size = matrix.shape[-2:], matrix.shape[-1]
        if isinstance(df, NUMBER):
            batch_shape = matrix.shape[:-2]
            self.df = cd.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = Size(cd.broadcast_shapes(matrix.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        if not constraints.holds(self.df > size - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        if not constraints.holds(self.df >= size):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)
        self._dist_chi2 = self._chi2()

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1),
        }  # fmt: skip

    def _chi2(self) -> Chi2:
        """The squares of the diagonal of Bartlett's factor."""
        factor = self._unbroadcasted_scale_tril
        index = cd.arange(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return Chi2((self.df.unsqueeze(-1) - index).expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        shape = Size(batch_shape) + self._event_shape
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(shape))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        self._finish(new, batch_shape)
        new._dist_chi2 = new._chi2()
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the normal vectors."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return cd.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    def _of_matrices(self, value: Tensor) -> Tensor:
        """Return numbers of the batch in a shape that broadcasts with matrices."""
        return value.expand(self._batch_shape).unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._of_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._of_matrices(cd.where(factor <= 0, math.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._of_matrices(self.df) * (covariance.pow(2) + outer)

    def _bartlett(self, sample_shape: Sequence[int]) -> Tensor:
        root = self._dist_chi2.rsample(sample_shape).sqrt()
        diagonal = root.clamp(min=cd.finfo(root.dtype).eps).diag_embed()
        below = standard_normal(self._extended_shape(sample_shape), root).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (diagonal + below)
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        sample = self._bartlett(sample_shape)
        singular = ~self.support.check(sample.detach())
        if bool(singular.any()):
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                sample = cd.where(singular.unsqueeze(-1).unsqueeze(-1), self._bartlett(sample_shape), sample)
                singular = ~self.support.check(sample.detach())
                if not bool(singular.any()):
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = cd.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        normalizer = nu * (p * math.log(2) / 2 + log_diagonal(factor)) + (nu / 2).mvlgamma(p)
        return (nu - p - 1) / 2 * cd.linalg.slogdet(value)[1] - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        volume = (p + 1) * (p * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
        index = cd.arange(p, dtype=nu.dtype, device=nu.device)
        digamma = (nu.unsqueeze(-1) / 2 - index / 2).digamma().sum(-1)
        return volume + (nu / 2).mvlgamma(p) - (nu - p - 1) / 2 * digamma + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - cd.linalg.slogdet(-2 * x)[1]) + half.mvlgamma(p)


def __dir__() -> list[str]:
    return sorted(__all__)
