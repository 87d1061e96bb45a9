"""Constraints, and the transforms from unconstrained numbers to them."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest

from tests.nn.distributions.families import d, t

c: Any = d.constraints
EYE = cd.eye(2)
INSIDE: dict[str, tuple[Any, Any, Any]] = {
    "boolean": (c.boolean, t(0, 1), t(0.5, -1)),
    "cat": (c.cat([c.positive, c.real], -1, [1, 2]), t(1, -1, 0), None),
    "corr_cholesky": (c.corr_cholesky, cd.tensor([[1.0, 0.0], [0.6, 0.8]]), EYE * 2),
    "greater_than": (c.greater_than(1), t(1.5, 2), t(1, math.nan)),
    "greater_than_eq": (c.greater_than_eq(1), t(1, 2), t(0.5, math.nan)),
    "half_open_interval": (c.half_open_interval(0, 2), t(0, 1.5), t(2, -1)),
    "independent": (c.independent(c.positive, 1), t(1, 2), t(1, -2)),
    "integer_interval": (c.integer_interval(0, 2), t(0, 2), t(0.5, 3)),
    "interval": (c.interval(0, 2), t(0, 2), t(-1, 3)),
    "less_than": (c.less_than(1), t(0.5, -2), t(1, 2)),
    "lower_cholesky": (c.lower_cholesky, cd.tensor([[1.0, 0.0], [-3.0, 2.0]]), -EYE),
    "lower_triangular": (c.lower_triangular, cd.tensor([[-1.0, 0.0], [-3.0, 2.0]]), cd.ones(2, 2)),
    "mixture": (c.MixtureSameFamilyConstraint(c.positive), t(1, 2), t(-1, -2)),
    "multinomial": (c.multinomial(3), t(1, 2), t(3, 1)),
    "nonnegative": (c.nonnegative, t(0, 2), t(-1, -2)),
    "nonnegative_integer": (c.nonnegative_integer, t(0, 2), t(-1, 0.5)),
    "one_hot": (c.one_hot, t(0, 1), t(1, 1)),
    "positive": (c.positive, t(0.1, 2), t(0, -2)),
    "positive_definite": (c.positive_definite, EYE * 2, EYE * 0),
    "positive_integer": (c.positive_integer, t(1, 2), t(0, 0.5)),
    "positive_semidefinite": (c.positive_semidefinite, EYE * 0, -EYE),
    "real": (c.real, t(1, -2), t(math.nan, math.nan)),
    "real_vector": (c.real_vector, t(1, -2), t(1, math.nan)),
    "simplex": (c.simplex, t(0.25, 0.75), t(0.5, 0.75)),
    "square": (c.square, EYE, cd.ones(2, 3)),
    "stack": (c.stack([c.positive, c.real], 0), t(1, -1), None),
    "symmetric": (c.symmetric, EYE, cd.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "unit_interval": (c.unit_interval, t(0, 1), t(-1, 1.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_inside(name: str) -> None:
    """check is True inside and False outside, without the dimensions of the event."""
    constraint, inside, outside = INSIDE[name]
    assert constraint.check(inside).all()
    assert constraint.check(inside).shape == inside.shape[: inside.dim() - constraint.event_dim] or name == "stack"
    assert isinstance(constraint.is_discrete, bool)
    if outside is not None:
        assert not constraint.check(outside).any()


def test_matrices_that_are_not_symmetric_are_not_definite() -> None:
    """Neither a triangular matrix nor a rectangular one has eigenvalues to check."""
    for constraint in (c.positive_definite, c.positive_semidefinite, c.symmetric):
        assert not constraint.check(cd.tensor([[2.0, 1.0], [0.0, 2.0]])).item()
        assert constraint.check(cd.ones(4, 2, 3)).tolist() == [False] * 4


def test_parts_are_checked_separately() -> None:
    """The constraints of slices apply to their slices."""
    assert INSIDE["cat"][0].check(t(-1, -1, math.nan)).tolist() == [False, True, False]
    assert INSIDE["stack"][0].check(t(-1, -1)).tolist() == [False, True]
    assert c.stack([c.real_vector, c.simplex], dim=0).event_dim == 1
    assert c.stack([c.real_vector, c.simplex], dim=-2).event_dim == 2


def test_representations_of_constraints() -> None:
    """repr has the class and its bounds."""
    assert repr(c.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(c.interval(0, 2)) == "Interval(lower_bound=0, upper_bound=2)"
    assert repr(c.integer_interval(0, 2)) == "IntegerInterval(lower_bound=0, upper_bound=2)"
    assert repr(c.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(c.less_than(1)) == "LessThan(upper_bound=1)"
    assert repr(c.simplex) == "Simplex()"
    assert repr(c.MixtureSameFamilyConstraint(c.real)) == "MixtureSameFamilyConstraint(Real())"


def test_dependent_constraints() -> None:
    """They are known only with the parameters of a distribution, as the support of Uniform."""
    assert c.is_dependent(c.dependent)
    assert c.is_dependent(d.Uniform.support)
    assert not c.is_dependent(d.Normal.support)
    assert repr(d.Uniform(0.0, 1.0).support) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    assert (d.Uniform.support.event_dim, d.Uniform.support.is_discrete) == (0, False)
    assert c.dependent(event_dim=2).event_dim == 2
    for name in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match=rf"\.{name} cannot be determined statically"):
            getattr(c.dependent, name)
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        c.dependent.check(t(1))


def test_wrong_arguments_of_constraints() -> None:
    """They raise an error that names them."""
    for build in (lambda: c.independent(3, 1), lambda: c.MixtureSameFamilyConstraint(3)):
        with pytest.raises(AssertionError, match="base_constraint must be a Constraint, got int"):
            build()
    with pytest.raises(AssertionError, match="reinterpreted_batch_ndims must be an int, got float"):
        c.independent(c.real, 1.5)
    with pytest.raises(AssertionError, match="reinterpreted_batch_ndims must be >= 0, got -1"):
        c.independent(c.real, -1)
    with pytest.raises(ValueError, match=r"Expected value\.dim\(\) >= 2 but got 1"):
        c.independent(c.real, 2).check(t(1))
    with pytest.raises(ValueError, match=r"Expected value\.dim\(\) >= 1 but got 0"):
        c.MixtureSameFamilyConstraint(c.real_vector).check(cd.tensor(1.0))
    for build in (lambda: c.cat([3]), lambda: c.stack([3])):
        with pytest.raises(AssertionError, match="All elements of cseq must be Constraint instances"):
            build()
    with pytest.raises(AssertionError, match=r"lengths \(2\) must match cseq \(1\)"):
        c.cat([c.real], 0, [1, 2])
    with pytest.raises(AssertionError, match="dim 3 out of range for value with 1 dimensions"):
        c.stack([c.real], 3).check(t(1))
    with pytest.raises(NotImplementedError, match="Constraint'> does not implement check"):
        c.Constraint().check(t(1))


UNCONSTRAINED = {
    "boolean", "integer_interval", "lower_triangular", "mixture", "multinomial", "nonnegative_integer", "one_hot",
    "positive_integer", "square", "symmetric",
}  # fmt: skip
"""Constraints without a transform."""


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_to_constraints(name: str, registry: str, rng: Any) -> None:
    """The values of the registered transform are inside; those of biject_to are bijections."""
    constraint = INSIDE[name][0]
    find = getattr(d, registry)
    if name in UNCONSTRAINED or (
        registry == "biject_to" and name in ("lower_cholesky", "positive_definite", "positive_semidefinite")
    ):
        with pytest.raises(NotImplementedError, match=f"Cannot transform {type(constraint).__name__} constraints"):
            find(constraint)
        return
    transform = find(constraint)
    shape = {"corr_cholesky": (3,), "stack": (2, 3), "lower_cholesky": (3, 3)}.get(name, (3,))
    x = cd.tensor(rng.normal(size=(3, 3) if "definite" in name else shape))
    y = transform(x)
    assert constraint.check(y).all()
    if registry == "biject_to":
        assert transform.bijective
        assert (transform.inv(y) - x).abs().max() < 1e-6


def test_registration() -> None:
    """A factory is registered for the class of a constraint, also by a decorator."""
    registry = d.constraint_registry.ConstraintRegistry()

    @registry.register(c.positive)  # type: ignore[untyped-decorator] # d is the package, found at run time
    def softplus(constraint: Any) -> Any:
        return d.SoftplusTransform()

    assert registry(c.positive) == d.SoftplusTransform()
    with pytest.raises(TypeError, match="either a Constraint subclass or instance, but got 3"):
        registry.register(3, softplus)
