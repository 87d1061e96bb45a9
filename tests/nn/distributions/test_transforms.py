"""Transforms: inverses, Jacobians against autograd, shapes, caches, and transformed distributions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

from tests.nn.distributions.families import close, d, t

TRANSFORMS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "abs": (d.AbsTransform, (3,)),
    "affine": (lambda **k: d.AffineTransform(1.0, -2.0, **k), (3,)),
    "affine of vectors": (lambda **k: d.AffineTransform(t(1, 2, 3), t(-1, 2, 3), event_dim=1, **k), (3,)),
    "affine of a number": (lambda **k: d.AffineTransform(0.5, 3, event_dim=1, **k), (3,)),
    "cat": (lambda **k: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], -1, [1, 2], **k), (3,)),
    "composed": (
        lambda **k: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform(), d.PowerTransform(0.5)], **k),
        (3,),
    ),
    "composed with vectors": (
        lambda **k: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()], **k), (3,),
    ),
    "corr_cholesky": (d.CorrCholeskyTransform, (3,)),
    "distribution function": (lambda **k: d.CumulativeDistributionTransform(d.Normal(0.0, 2.0), **k), (3,)),
    "exp": (d.ExpTransform, (3,)),
    "identity": (lambda **k: d.ComposeTransform([], **k), (3,)),
    "independent": (lambda **k: d.IndependentTransform(d.ExpTransform(), 1, **k), (3,)),
    "lower_cholesky": (d.LowerCholeskyTransform, (3, 3)),
    "positive_definite": (d.PositiveDefiniteTransform, (3, 3)),
    "power": (lambda **k: d.PowerTransform(t(2.0, 0.5, -1.0), **k), (3,)),
    "reshape": (lambda **k: d.ReshapeTransform((3,), (3, 1), **k), (3,)),
    "sigmoid": (d.SigmoidTransform, (3,)),
    "softmax": (d.SoftmaxTransform, (3,)),
    "softplus": (d.SoftplusTransform, (3,)),
    "stack": (lambda **k: d.StackTransform([d.ExpTransform()] * 3, -1, **k), (3,)),
    "stick breaking": (d.StickBreakingTransform, (3,)),
    "tanh": (d.TanhTransform, (3,)),
}  # fmt: skip


def values(name: str, rng: Any) -> Any:
    """Return values of the domain."""
    x = cd.tensor(rng.normal(size=(2, *TRANSFORMS[name][1])))
    return x.abs() if name in ("abs", "power") else x.tril() if "cholesky" in name and x.dim() == 3 else x


@pytest.mark.parametrize("name", TRANSFORMS)
def test_inverses_and_shapes(name: str, rng: Any) -> None:
    """The inverse of the result is the argument; the result is in the codomain and has the predicted shape."""
    transform, x = TRANSFORMS[name][0](), values(name, rng)
    y = transform(x)
    assert transform.codomain.check(y).all()
    assert transform.forward_shape(x.shape) == y.shape
    if transform.bijective:
        close(transform.inv(y), x, rtol=1e-6, atol=1e-9)
        assert transform.inverse_shape(y.shape) == x.shape
        assert transform.inv.bijective
    assert transform.inv.inv is transform
    close(transform(transform.inv(y)), y, rtol=1e-6, atol=1e-9)
    if name not in ("cat", "stack", "independent", "reshape", "corr_cholesky", "distribution function"):
        assert transform == TRANSFORMS[name][0]()
        assert transform.inv == TRANSFORMS[name][0]().inv
    assert transform != d.Transform()
    assert hash(transform) == hash(transform)
    assert type(transform).__name__ in repr(transform)
    assert copy.deepcopy(transform).codomain.event_dim == transform.codomain.event_dim


@pytest.mark.parametrize("name", [n for n in TRANSFORMS if TRANSFORMS[n][1] == (3,)])
def test_jacobians(name: str, rng: Any) -> None:
    """log_abs_det_jacobian is that of autograd's Jacobian, also of the inverse."""
    transform, x = TRANSFORMS[name][0](), values(name, rng)
    if not transform.bijective:
        with pytest.raises(NotImplementedError, match="does not implement log_abs_det_jacobian"):
            transform.log_abs_det_jacobian(x, transform(x))
        return
    y = transform(x)
    got = transform.log_abs_det_jacobian(x, y)
    close(transform.inv.log_abs_det_jacobian(y, x), -got)
    total = got.reshape(2, -1).sum(-1)
    for i in range(2):
        jacobian = cd.autograd.functional.jacobian(transform, x[i]).reshape(-1, 3)
        if name in ("stick breaking", "composed with vectors"):
            jacobian = jacobian[:3]  # the last element follows from the others
        if name == "corr_cholesky":
            jacobian = jacobian[[3, 6, 7]]
        close(total[i], jacobian.det().abs().log(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_caches(name: str, rng: Any) -> None:
    """With a cache, the inverse of the last result is its argument itself, and so in the other direction."""
    x = values(name, rng)
    for transform in (TRANSFORMS[name][0](cache_size=1), TRANSFORMS[name][0]().with_cache()):
        y = transform(x)
        assert transform(x) is y
        assert transform.inv(y) is x
        again = y.clone()
        assert transform(transform.inv(again)) is again
        assert transform.with_cache() is transform
        assert transform.inv.with_cache(0)._cache_size == 0
        assert transform.with_cache(0)._cache_size == 0
        assert copy.deepcopy(transform)._cached_x_y == (None, None)


def test_signs() -> None:
    """The sign of a monotonic transform is that of its derivative."""
    assert d.ExpTransform().sign == d.ExpTransform().inv.sign == 1
    assert d.AffineTransform(0.0, -2.0).sign == -1
    assert d.AffineTransform(0.0, t(-2.0, 3.0)).sign.tolist() == [-1, 1]
    assert d.ComposeTransform([d.PowerTransform(t(-1.0)), d.AffineTransform(0, -1)]).sign.item() == 1
    assert d.IndependentTransform(d.ExpTransform(), 1).sign == 1
    with pytest.raises(NotImplementedError, match="does not implement sign"):
        _ = d.SoftmaxTransform().sign


def test_wrong_arguments_of_transforms() -> None:
    """They raise an error that names them."""
    x = cd.ones(2, 3)
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        d.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match=r"Please use either \.domain\.event_dim or \.codomain\.event_dim"):
        _ = d.CorrCholeskyTransform().event_dim
    with pytest.raises(ValueError, match="in_shape, out_shape have different numbers of elements"):
        d.ReshapeTransform((3,), (2,))
    for call in (
        lambda: d.IndependentTransform(d.ExpTransform(), 3)(x), lambda: d.SoftmaxTransform().forward_shape(()),
        lambda: d.IndependentTransform(d.ExpTransform(), 3).inv(x),
        lambda: d.ReshapeTransform((3,), (3,)).forward_shape(()),
        lambda: d.CorrCholeskyTransform().inverse_shape((3,)), lambda: d.StickBreakingTransform().inverse_shape(()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Too few dimensions on input"):
            call()
    with pytest.raises(ValueError, match=r"Shape mismatch: expected .*\[4\]\) but got .*\[3\]"):
        d.ReshapeTransform((3,), (3, 1)).forward_shape((2, 4))
    with pytest.raises(ValueError, match="Input is not a flattened lower-diagonal number"):
        d.CorrCholeskyTransform().forward_shape((2,))
    with pytest.raises(ValueError, match="Input is not square"):
        d.CorrCholeskyTransform().inverse_shape((2, 3))
    with pytest.raises(AssertionError, match="All elements of tseq must be Transform instances"):
        d.CatTransform([3])
    with pytest.raises(AssertionError, match=r"lengths \(2\) must match transforms \(1\)"):
        d.CatTransform([d.ExpTransform()], lengths=[1, 2])
    with pytest.raises(AssertionError, match="dim 5 out of range for tensor with 2 dimensions"):
        d.StackTransform([d.ExpTransform()], 5)(x)
    with pytest.raises(AssertionError, match="dim 5 out of range for x with 2 dimensions"):
        d.CatTransform([d.ExpTransform()], 5).log_abs_det_jacobian(x, x)
    with pytest.raises(AssertionError, match=r"x\.size\(0\) = 2 must equal len\(transforms\) 1"):
        d.StackTransform([d.ExpTransform()])(x)
    with pytest.raises(AssertionError, match=r"x\.size\(0\) = 2 must equal length 1"):
        d.CatTransform([d.ExpTransform()]).inv(x)
    for name, call in {
        "_call": lambda: d.Transform()(x), "_inverse": lambda: d.Transform().inv(x),
    }.items():  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"Transform'> does not implement {name}"):
            call()


def test_a_transform_of_users_needs_its_own_with_cache() -> None:
    """A subclass with arguments of its own has no general copy with another cache."""

    class Scaled(d.Transform):  # type: ignore[misc] # d is the package, found at run time
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

    with pytest.raises(NotImplementedError, match=r"Scaled'>\.with_cache is not implemented"):
        Scaled(2.0).with_cache()


def test_slices_that_belong_to_the_event() -> None:
    """The Jacobians of slices along an event's dimension are added."""
    transform = d.CatTransform([d.IndependentTransform(d.ExpTransform(), 1)] * 2, dim=-1, lengths=[1, 2])
    x = cd.ones(4, 3)
    assert transform.log_abs_det_jacobian(x, transform(x)).tolist() == [3.0] * 4
    along = d.CatTransform([d.IndependentTransform(d.ExpTransform(), 1)] * 2, dim=0, lengths=[1, 3])
    assert along.log_abs_det_jacobian(x, along(x)).tolist() == [3.0] * 4


# -- distributions ----------------------------------------------------------------------------------------------------
def test_transformed_distributions() -> None:
    """log_prob follows from the Jacobian, cdf and icdf also through a decreasing transform."""
    base = d.Normal(t(0.0, 1.0), t(1.0, 2.0))
    ours, want = d.TransformedDistribution(base, [d.ExpTransform()]), d.LogNormal(t(0.0, 1.0), t(1.0, 2.0))
    x, u = t(0.5, 3.0), t(0.1, 0.7)
    close(ours.log_prob(x), want.log_prob(x))
    falling = d.TransformedDistribution(base, d.AffineTransform(1.0, -2.0))
    close(falling.cdf(x), d.Normal(1 - 2 * base.loc, 2 * base.scale).cdf(x))
    close(falling.cdf(falling.icdf(u)), u)
    assert d.TransformedDistribution(base, []).support is base.support
    assert ours.expand((3, 2)).sample().shape == (3, 2)


def test_transforms_broadcast_and_take_dimensions_of_the_batch() -> None:
    """Parameters of a transform expand the base; a transform of vectors makes the last dimension an event's."""
    ours = d.TransformedDistribution(d.Normal(cd.zeros(3, 1), 1.0), d.AffineTransform(cd.zeros(4), 1.0))
    assert (ours.batch_shape, ours.event_shape) == ((3, 4), ())
    stick = d.TransformedDistribution(d.Normal(cd.zeros(2, 3), 1.0), d.StickBreakingTransform())
    assert (stick.batch_shape, stick.event_shape) == ((2,), (4,))
    assert stick.log_prob(stick.sample()).shape == (2,)
    exp = d.TransformedDistribution(d.Dirichlet(cd.ones(2, 3)), d.ExpTransform())
    assert repr(exp.support) == "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)"


def test_wrong_arguments_of_transformed_distributions() -> None:
    """They raise an error that names them."""
    with pytest.raises(ValueError, match="transforms must be a Transform or list, but was 3"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), 3)
    with pytest.raises(ValueError, match="transforms must be a Transform or a list of Transforms"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), [3])
    with pytest.raises(ValueError, match="base_distribution needs to have shape with size at least 1, but got"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())
    with pytest.raises(ValueError, match="Expected reinterpreted_batch_ndims <= len"):
        d.Independent(d.Normal(0.0, 1.0), 1)
    with pytest.raises(NotImplementedError, match="Enumeration over cartesian product is not implemented"):
        d.Independent(d.Bernoulli(t(0.5, 0.1)), 1).enumerate_support()


def test_independent_dimensions() -> None:
    """Densities and entropies are added over the dimensions of the event."""
    base = d.Normal(cd.zeros(2, 3, dtype=cd.float64), t(1.0, 2.0, 3.0))
    ours = d.Independent(base, 1)
    x = cd.ones(2, 3, dtype=cd.float64)
    close(ours.log_prob(x), base.log_prob(x).sum(-1))
    close(ours.entropy(), base.entropy().sum(-1))
    assert ours.variance.shape == ours.mode.shape == (2, 3)
    assert (ours.has_rsample, ours.has_enumerate_support) == (True, False)
    discrete = d.Independent(d.Bernoulli(t(0.5, 0.1)), 0)
    assert discrete.has_enumerate_support
    assert discrete.enumerate_support().shape == (2, 2)
