"""Distributions of functions of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions import constraints
from candelabra.distributions.composed_transforms import ComposeTransform
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.independent import Independent
from candelabra.distributions.transform import Transform
from candelabra.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transforms``, in their order, of numbers of ``base_distribution``."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    base_dist: Any

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        base_shape, base_dims = base_distribution._extended_shape(), len(base_distribution.event_shape)
        domain_dims, codomain_dims = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < domain_dims:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dims}, but got {base_shape}."
            )
        # Parameters of the transforms may broadcast the base.
        shape = whole.forward_shape(base_shape)
        expanded = whole.inverse_shape(shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_dims])
        if domain_dims > base_dims:
            base_distribution = Independent(base_distribution, domain_dims - base_dims)
        self.base_dist = base_distribution
        cut = len(shape) - max(codomain_dims, base_dims + codomain_dims - domain_dims)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        shape: Any = (*batch_shape, *self.event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._finish(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:
        return bool(self.base_dist.has_rsample)

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # The base draws by its own method: it may have no rsample.
        with cd.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the base's ``log_prob`` of the inverse, minus the logarithm of the Jacobian's determinant."""
        if self._validate_args:
            self._validate_sample(value)
        dims = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, value)
            total = total - sum_rightmost(term, dims - transform.domain.event_dim)
            value = x
        return total + sum_rightmost(self.base_dist.log_prob(value), dims - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Return ``1 - value`` where the transforms decrease, else ``value``."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


def __dir__() -> list[str]:
    return sorted(__all__)
