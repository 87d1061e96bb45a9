"""Gradients: of log_prob, entropy and divergences in the parameters, and of drawn numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

from tests.nn.distributions.families import close, d, stats, t

COVARIANCE = cd.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=cd.float64)
FAMILIES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "Beta": (d.Beta, (t(0.7, 2.5), t(1.5, 0.8))),
    "Cauchy": (d.Cauchy, (t(0.0, 1.0), t(1.0, 2.0))),
    "Chi2": (d.Chi2, (t(0.9, 5.0),)),
    "ContinuousBernoulli": (d.ContinuousBernoulli, (t(0.3, 0.5),)),
    "Dirichlet": (d.Dirichlet, (t(0.7, 2.5, 1.0),)),
    "Exponential": (d.Exponential, (t(0.7, 2.5),)),
    "FisherSnedecor": (d.FisherSnedecor, (t(3.0, 5.0), t(4.0, 7.0))),
    "Gamma": (d.Gamma, (t(0.7, 2.5), t(1.5, 0.8))),
    "GeneralizedPareto": (d.GeneralizedPareto, (t(0.0, 1.0), t(1.0, 2.0), t(0.2, -0.3))),
    "Gumbel": (d.Gumbel, (t(0.0, 1.0), t(1.0, 2.0))),
    "HalfCauchy": (d.HalfCauchy, (t(1.0, 2.0),)),
    "HalfNormal": (d.HalfNormal, (t(1.0, 2.0),)),
    "InverseGamma": (d.InverseGamma, (t(2.7, 3.5), t(1.5, 0.8))),
    "Kumaraswamy": (d.Kumaraswamy, (t(1.7, 2.5), t(1.5, 1.8))),
    "Laplace": (d.Laplace, (t(0.0, 1.0), t(1.0, 2.0))),
    "LogNormal": (d.LogNormal, (t(0.0, 1.0), t(0.5, 0.2))),
    "LogisticNormal": (d.LogisticNormal, (t(0.0, 1.0), t(0.5, 0.2))),
    "LowRankMultivariateNormal": (
        d.LowRankMultivariateNormal, (t(0.0, 1.0), cd.tensor([[1.0], [0.5]], dtype=cd.float64), t(1.0, 2.0))
    ),
    "MultivariateNormal": (lambda loc, m: d.MultivariateNormal(loc, m @ m.mT), (t(0.0, 1.0), COVARIANCE)),
    "Normal": (d.Normal, (t(0.0, 1.0), t(1.0, 2.0))),
    "Pareto": (d.Pareto, (t(1.0, 2.0), t(3.0, 4.0))),
    "RelaxedBernoulli": (lambda x: d.RelaxedBernoulli(t(0.7)[0], logits=x), (t(0.3, -1.0),)),
    "RelaxedOneHotCategorical": (lambda x: d.RelaxedOneHotCategorical(t(0.7)[0], logits=x), (t(0.3, -1.0, 0.1),)),
    "StudentT": (d.StudentT, (t(3.0, 5.0), t(0.0, 1.0), t(1.0, 2.0))),
    "Uniform": (d.Uniform, (t(0.0, 1.0), t(2.0, 5.0))),
    "Weibull": (d.Weibull, (t(1.0, 2.0), t(1.5, 0.8))),
    "Wishart": (lambda df, m: d.Wishart(df, m @ m.mT), (t(4.5)[0], COVARIANCE)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_drawn_numbers_are_differentiable(name: str) -> None:
    """The gradient of rsample is that of the numbers of one state of the generator, as functions of the parameters."""
    family, parameters = FAMILIES[name]
    inputs = tuple(v.clone().requires_grad_() for v in parameters)

    def drawn(*values: Any) -> Any:
        cd.manual_seed(5)
        return family(*values).rsample((3,))

    assert cd.autograd.gradcheck(drawn, inputs)


@pytest.mark.parametrize("name", FAMILIES)
def test_densities_are_differentiable(name: str) -> None:
    """The gradient of log_prob in the parameters and in the value is right."""
    family, parameters = FAMILIES[name]
    value = family(*parameters).sample()
    if isinstance(family(*parameters), (d.Dirichlet, d.Wishart, d.LogisticNormal)):
        inputs = tuple(v.clone().requires_grad_() for v in parameters)
        assert cd.autograd.gradcheck(lambda *v: family(*v).log_prob(value), inputs)
        return
    inputs = tuple(v.clone().requires_grad_() for v in (*parameters, value))

    def log_prob(*values: Any) -> Any:
        ours = family(*values[:-1])
        ours._validate_args = False
        return ours.log_prob(values[-1])

    assert cd.autograd.gradcheck(log_prob, inputs)


@pytest.mark.parametrize("family", [d.Bernoulli, d.Geometric, d.Categorical, lambda **k: d.Binomial(3, **k)])
@pytest.mark.parametrize("name", ["probs", "logits"])
def test_probabilities_are_differentiable(family: Any, name: str) -> None:
    """The gradients of log_prob and entropy in the probabilities or the logits are right."""
    given = t(0.3, 0.5, 0.2).requires_grad_()
    value = family(**{name: given}).sample()
    assert cd.autograd.gradcheck(lambda v: family(**{name: v}, validate_args=False).log_prob(value), (given,))
    assert cd.autograd.gradcheck(lambda v: family(**{name: v}, validate_args=False).entropy(), (given,))


def test_implicit_gradients_of_gamma_numbers() -> None:
    """The derivative in the concentration is ``-(dF/da) / p`` of SciPy's distribution function, in both tails."""
    a = cd.tensor([0.05, 0.4, 1.0, 3.0, 40.0, 1e4] * 50, dtype=cd.float64, requires_grad=True)
    x = d.Gamma(a, 1.0).rsample()
    x.sum().backward()
    a, x, grad = a.detach().numpy(), x.detach().numpy(), a.grad.numpy()
    step = 1e-4 * a
    difference = (stats.gamma.cdf(x, a + step) - stats.gamma.cdf(x, a - step)) / (2 * step)
    want = -difference / stats.gamma.pdf(x, a)
    middle = (x > 1e-12) & (abs(stats.gamma.cdf(x, a) - 0.5) < 0.49)
    assert middle.sum() > 200
    assert (abs(grad / want - 1)[middle] < 1e-4).all()


def test_means_of_gradients() -> None:
    """The mean gradient of a function of Dirichlet numbers is the gradient of its mean."""
    concentration = t(0.7, 2.0, 1.3).requires_grad_()
    x = d.Dirichlet(concentration).rsample((20_000,))
    (x[..., 0] ** 2).mean().backward()
    other = t(0.7, 2.0, 1.3).requires_grad_()
    total = other.sum()
    (other[0] * (other[0] + 1) / (total * (total + 1))).backward()
    close(concentration.grad, other.grad, rtol=0, atol=0.01)


def test_second_derivatives_of_gamma_numbers() -> None:
    """The derivative of a gamma number is differentiable again."""

    def drawn(a: Any) -> Any:
        cd.manual_seed(5)
        return d.Gamma(a, 1.0).rsample()

    assert cd.autograd.gradgradcheck(drawn, (t(0.3, 1.0, 4.0).requires_grad_(),))


def test_distributions_without_rsample() -> None:
    """Von Mises and discrete distributions are not reparameterized: rsample raises."""
    for ours in (d.VonMises(t(0.0), t(1.0)), d.Bernoulli(t(0.5)), d.LKJCholesky(2)):
        assert not ours.has_rsample
        with pytest.raises(NotImplementedError, match="does not implement rsample"):
            ours.rsample()


def test_divergences_are_differentiable() -> None:
    """A divergence has a gradient in the parameters of both distributions."""
    inputs = tuple(v.requires_grad_() for v in (t(0.0, 1.0), t(1.0, 2.0), t(0.5, 0.3), t(2.0, 1.5)))
    for p, q in ((d.Normal, d.Normal), (d.Normal, d.Laplace), (d.Laplace, d.Laplace)):
        assert cd.autograd.gradcheck(lambda a, b, e, f: d.kl_divergence(p(a, b), q(e, f)), inputs)  # noqa: B023 # at once
