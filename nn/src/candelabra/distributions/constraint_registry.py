"""Transforms from unconstrained numbers to constrained ones, for optimization over parameters.

``biject_to(constraint)`` is a bijection; ``transform_to(constraint)`` need not be one, and is better conditioned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.distributions import constraints, transforms
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.utils import NUMBER

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """A table from the classes of constraints to functions that return a transform."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register a function for a class of constraints, or for the class of an object; without it, a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        """Return a transform whose values satisfy the constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    """Register one function for several constraints, in both tables."""

    def decorate(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@_both(constraints.real)
def _real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> transforms.Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _below(constraint: Any) -> transforms.Transform:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, NUMBER) and isinstance(high, NUMBER) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda constraint: transforms.PositiveDefiniteTransform())
_both(constraints.corr_cholesky)(lambda constraint: transforms.CorrCholeskyTransform())


def _register_composed(registry: ConstraintRegistry) -> None:
    """Register the constraints over other ones, whose transforms are in the same table."""

    def independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def cat(constraint: Any) -> transforms.Transform:
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


_register_composed(biject_to)
_register_composed(transform_to)


def __dir__() -> list[str]:
    return sorted(__all__)
