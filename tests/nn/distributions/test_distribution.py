"""The base class: shapes, expansion, validation, representation, and subclasses of users."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest

from tests.nn.distributions.families import ALL, DISCRETE, close, d, t


@pytest.mark.parametrize("name", ALL)
def test_shapes_and_expansion(name: str) -> None:
    """Samples have the sample's, the batch's and the event's shape; an expanded distribution repeats the densities."""
    ours = ALL[name]()
    shape = ours.batch_shape + ours.event_shape
    wide = ours.expand((3, *ours.batch_shape))
    assert type(wide) is type(ours)
    assert wide.batch_shape == (3, *ours.batch_shape)
    assert wide.event_shape == ours.event_shape
    for each in (ours, wide):
        assert each.sample().shape == each.batch_shape + each.event_shape
        drawn = each.sample((5, 2))
        assert drawn.shape == (5, 2, *each.batch_shape, *each.event_shape)
        assert not drawn.requires_grad
        assert each.support.check(drawn).all()
        assert each.log_prob(drawn).shape == (5, 2, *each.batch_shape)
        assert each.sample((0,)).shape == (0, *each.batch_shape, *each.event_shape)
        if each.has_rsample:
            assert each.rsample((2,)).shape == (2, *each.batch_shape, *each.event_shape)
    value = ours.sample((3,))
    close(wide.log_prob(value), ours.log_prob(value))
    if not isinstance(ours, (d.LKJCholesky, d.LogisticNormal, d.TransformedDistribution)):
        close(wide.mean, ours.mean.expand((3, *shape)))


@pytest.mark.parametrize("name", [n for n in ALL if "Categorical" in n or n in DISCRETE])
def test_enumeration_of_the_support(name: str) -> None:
    """All events of a finite support are along dimension 0, and their probabilities have the sum 1."""
    ours = ALL[name]()
    if not ours.has_enumerate_support:
        with pytest.raises(NotImplementedError, match="enumerate_support"):
            ours.enumerate_support()
        return
    values = ours.enumerate_support()
    assert values.shape[1:] == ours.batch_shape + ours.event_shape
    close(ours.log_prob(values).exp().sum(0), cd.ones(ours.batch_shape, dtype=cd.float64))
    narrow = ours.enumerate_support(expand=False)
    assert set(narrow.shape[1 : len(ours.batch_shape) + 1]) == {1}
    assert (narrow.expand(values.shape) == values).all()


def test_representations() -> None:
    """repr has the parameters that were given, or their shapes."""
    assert repr(d.Normal(0.0, 2.0)) == "Normal(loc: 0.0, scale: 2.0)"
    assert repr(d.Normal(cd.zeros(3), 1.0)) == "Normal(loc: candelabra.Size([3]), scale: candelabra.Size([3]))"
    assert repr(d.Bernoulli(logits=0.0)) == "Bernoulli(logits: 0.0)"
    assert repr(d.Chi2(3.0)) == "Chi2()"
    normal = "Normal(loc: candelabra.Size([2]), scale: candelabra.Size([2]))"
    assert repr(d.Independent(d.Normal(cd.zeros(2), 1.0), 1)) == f"Independent({normal}, 1)"
    mixture = d.MixtureSameFamily(d.Categorical(logits=cd.zeros(2)), d.Normal(cd.zeros(2), 1.0))
    assert repr(mixture) == f"MixtureSameFamily(\n  Categorical(logits: candelabra.Size([2])),\n  {normal})"


def test_numbers_and_tensors_as_parameters() -> None:
    """Numbers take the dtype of the first tensor, or the default dtype; other objects are refused."""
    assert d.Normal(0, 1).loc.dtype is cd.float32
    assert d.Normal(t(0.0), 1).scale.dtype is cd.float64
    assert d.Beta(2, 3).mean.item() == pytest.approx(0.4)
    assert d.Normal(cd.zeros(2, 1), cd.ones(3)).batch_shape == (2, 3)
    with pytest.raises(ValueError, match="Input arguments must all be instances of Number, "):
        d.Normal("0", 1.0)


def test_parameters_are_validated() -> None:
    """A parameter outside of its constraint raises, unless validation is off."""
    text = (
        r"Expected parameter scale \(Tensor of shape \(2,\)\) of distribution Normal\(.*\) to satisfy the constraint "
    )
    text += r"GreaterThan\(lower_bound=0.0\), but found invalid values:\ntensor\(\[ 1\., -1\.\]\)"
    with pytest.raises(ValueError, match=text):
        d.Normal(cd.zeros(2), cd.tensor([1.0, -1.0]))
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(ValueError, match=r"Expected parameter probs .* to be positive but found invalid values"):
        d.Geometric(probs=0.0)


def test_values_are_validated() -> None:
    """A value of another shape, of another type or outside of the support raises, unless validation is off."""
    ours = d.Dirichlet(cd.ones(2, 3))
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor"):
        ours.log_prob(0.5)
    with pytest.raises(ValueError, match=r"The right-most size of value must match event_shape: .*\[4\]\) vs .*\[3\]"):
        ours.log_prob(cd.ones(4))
    with pytest.raises(ValueError, match="Value is not broadcastable with batch_shape"):
        ours.log_prob(cd.ones(5, 3) / 3)
    text = r"Expected value argument \(Tensor of shape \(3,\)\) to be within the support \(Simplex\(\)\) of the "
    with pytest.raises(ValueError, match=text):
        ours.log_prob(cd.ones(3))
    assert d.Exponential(1.0, validate_args=False).log_prob(cd.tensor(-1.0)).item() == 1


def test_validation_is_optional() -> None:
    """set_default_validate_args changes the default of new distributions."""
    try:
        d.Distribution.set_default_validate_args(False)
        assert d.Normal(0.0, -1.0).log_prob(cd.tensor(math.nan)).isnan().item()
        with pytest.raises(ValueError, match="Expected parameter scale"):
            d.Normal(0.0, -1.0, validate_args=True)
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="expects True or False, got 3"):
        d.Distribution.set_default_validate_args(3)


class Lonely(cd.distributions.Distribution):
    """A distribution that defines nothing."""


def test_methods_that_a_family_does_not_define() -> None:
    """They raise, and name the class; without constraints or a support, validation warns."""
    ours = Lonely((2,), validate_args=False)
    for name in ("mean", "mode", "variance", "stddev", "support", "arg_constraints"):
        with pytest.raises(NotImplementedError, match="Lonely'> does not implement "):
            getattr(ours, name)
    for call in (ours.rsample, ours.entropy, ours.perplexity, ours.enumerate_support, lambda: ours.expand((2,))):
        with pytest.raises(NotImplementedError, match="Lonely'> does not implement "):
            call()
    for call in (ours.log_prob, ours.cdf, ours.icdf):
        with pytest.raises(NotImplementedError, match="Lonely'> does not implement "):
            call(cd.ones(2))
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        Lonely((2,))
    with pytest.warns(UserWarning, match="does not define `support`"):
        ours._validate_sample(cd.ones(2))
    with pytest.warns(FutureWarning, match="`sample_n"):
        assert d.Normal(0.0, 1.0).sample_n(3).shape == (3,)


class Shifted(cd.distributions.Normal):
    """A subclass with an argument of its own, as users write them."""

    def __init__(self, shift: float) -> None:
        self.shift = shift
        super().__init__(shift, 1.0)


class ShiftedExpanding(Shifted):
    """The same, with its own expansion."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the expanded distribution."""
        new = self._get_checked_instance(ShiftedExpanding, _instance)
        new.shift = self.shift
        return super().expand(batch_shape, _instance=new)


def test_subclasses_of_users() -> None:
    """A subclass with its own __init__ needs its own expand."""
    with pytest.raises(NotImplementedError, match="Subclass Shifted of Normal that defines a custom __init__ method"):
        Shifted(1.0).expand((3,))
    wide = ShiftedExpanding(1.0).expand((3,))
    assert (type(wide), wide.shift, wide.mean.tolist()) == (ShiftedExpanding, 1.0, [1.0, 1.0, 1.0])


def test_probabilities_and_logits_exclude_each_other() -> None:
    """Exactly one of them is given; the other one is computed at the first use, with a gradient."""
    for family in (d.Bernoulli, d.Geometric, d.Categorical, d.Binomial, d.OneHotCategorical):
        with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified, but not both"):
            family()
    logits = t(0.3, -1.0).requires_grad_()
    ours = d.Bernoulli(logits=logits)
    with cd.no_grad():
        assert ours.probs.requires_grad
    assert d.Bernoulli(probs=t(0.0, 1.0)).logits.isfinite().all()
    assert d.Bernoulli(logits=logits).param_shape == (2,)
    assert d.OneHotCategorical(logits=logits).param_shape == (2,)
    assert d.OneHotCategorical(logits=logits)._new((3,)).shape == (3,)
    with pytest.raises(ValueError, match="`probs` parameter must be at least one-dimensional"):
        d.Categorical(probs=cd.tensor(0.5))
    with pytest.raises(ValueError, match="`logits` parameter must be at least one-dimensional"):
        d.Categorical(logits=cd.tensor(0.5))
    with pytest.raises(ValueError, match="`concentration` parameter must be at least one-dimensional"):
        d.Dirichlet(cd.tensor(0.5))
    with pytest.raises(NotImplementedError, match="inhomogeneous total_count is not supported"):
        d.Multinomial(t(3.0), t(0.5, 0.5))
    for method in ("entropy", "enumerate_support"):
        with pytest.raises(NotImplementedError, match=f"Inhomogeneous total count not supported by `{method}`"):
            getattr(d.Binomial(t(2.0, 3.0), t(0.5, 0.5)), method)()


def test_the_package_is_imported_at_the_first_use() -> None:
    """Its public names are those of PyTorch, and each family stands in the module of PyTorch's name."""
    import candelabra.distributions.normal
    import candelabra.distributions.studentT

    assert candelabra.distributions.normal.Normal is cd.distributions.Normal
    assert candelabra.distributions.studentT.StudentT is cd.distributions.StudentT
    assert "distributions" in dir(cd)
    assert set(dir(d)) >= {"Normal", "kl_divergence", "biject_to", "transforms", "constraints"}
