"""Distributions of numbers with the SciPy distribution of the same parameters, which the tests compare."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import candelabra as cd
import numpy as np

stats: Final[Any] = import_module("scipy.stats")  # it has no types
d: Final[Any] = cd.distributions


def t(*values: float) -> Any:
    """Return a float64 tensor."""
    return cd.tensor(values, dtype=cd.float64)


def close(got: Any, want: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """Assert that two tensors are nearly equal, with NaN equal to NaN."""
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=atol)


A, B = (0.7, 1.0, 2.5, 9.0), (1.5, 0.6, 3.0, 4.0)
"""Positive parameters on both sides of 1."""
LOC = (-1.0, 0.0, 0.5, 3.0)
P = (0.1, 0.35, 0.5, 0.9)
a, b, loc, p = (np.array(v) for v in (A, B, LOC, P))

CONTINUOUS: Final[dict[str, tuple[Callable[[], Any], Any]]] = {
    "Beta": (lambda: d.Beta(t(*A), t(*B)), stats.beta(a, b)),
    "Cauchy": (lambda: d.Cauchy(t(*LOC), t(*A)), stats.cauchy(loc, a)),
    "Chi2": (lambda: d.Chi2(t(*A)), stats.chi2(a)),
    "Exponential": (lambda: d.Exponential(t(*A)), stats.expon(scale=1 / a)),
    "FisherSnedecor": (lambda: d.FisherSnedecor(t(*A), t(*(B + np.array(5.0)))), stats.f(a, b + 5)),
    "Gamma": (lambda: d.Gamma(t(*A), t(*B)), stats.gamma(a, scale=1 / b)),
    "GeneralizedPareto": (
        lambda: d.GeneralizedPareto(t(*LOC), t(*A), t(-0.5, 0.0, 0.2, 0.3)),
        stats.genpareto(np.array([-0.5, 0.0, 0.2, 0.3]), loc, a),
    ),
    "Gumbel": (lambda: d.Gumbel(t(*LOC), t(*A)), stats.gumbel_r(loc, a)),
    "HalfCauchy": (lambda: d.HalfCauchy(t(*A)), stats.halfcauchy(scale=a)),
    "HalfNormal": (lambda: d.HalfNormal(t(*A)), stats.halfnorm(scale=a)),
    "InverseGamma": (lambda: d.InverseGamma(t(*(3 + a)), t(*B)), stats.invgamma(3 + a, scale=b)),
    "Laplace": (lambda: d.Laplace(t(*LOC), t(*A)), stats.laplace(loc, a)),
    "LogNormal": (lambda: d.LogNormal(t(*LOC), t(*(a / 5))), stats.lognorm(a / 5, scale=np.exp(loc))),
    "Normal": (lambda: d.Normal(t(*LOC), t(*A)), stats.norm(loc, a)),
    "Pareto": (lambda: d.Pareto(t(*A), t(*(2 + b))), stats.pareto(2 + b, scale=a)),
    "StudentT": (lambda: d.StudentT(t(*(2 + a)), t(*LOC), t(*B)), stats.t(2 + a, loc, b)),
    "Uniform": (lambda: d.Uniform(t(*LOC), t(*(loc + a))), stats.uniform(loc, a)),
    "VonMises": (lambda: d.VonMises(t(*LOC), t(*A)), stats.vonmises(a, loc)),
    "Weibull": (lambda: d.Weibull(t(*A), t(*B)), stats.weibull_min(b, scale=a)),
}
DISCRETE: Final[dict[str, tuple[Callable[[], Any], Any]]] = {
    "Bernoulli": (lambda: d.Bernoulli(probs=t(*P)), stats.bernoulli(p)),
    "Bernoulli of logits": (lambda: d.Bernoulli(logits=t(*P).logit()), stats.bernoulli(p)),
    "Binomial": (lambda: d.Binomial(7, probs=t(*P)), stats.binom(7, p)),
    "Binomial of logits": (lambda: d.Binomial(7, logits=t(*P).logit()), stats.binom(7, p)),
    "Geometric": (lambda: d.Geometric(probs=t(*P)), stats.geom(p, loc=-1)),
    "NegativeBinomial": (lambda: d.NegativeBinomial(t(*A), probs=t(*P)), stats.nbinom(a, 1 - p)),
    "Poisson": (lambda: d.Poisson(t(*A)), stats.poisson(a)),
}
EYE = cd.eye(3, dtype=cd.float64)
ALL: Final[dict[str, Callable[[], Any]]] = {
    **{name: make for name, (make, _) in (CONTINUOUS | DISCRETE).items()},
    "Categorical": lambda: d.Categorical(probs=t(0.2, 0.3, 0.5).expand(2, 3)),
    "Categorical of logits": lambda: d.Categorical(logits=t(0.2, 0.3, 0.5).expand(2, 3)),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.2, 0.5)),
    "Dirichlet": lambda: d.Dirichlet(t(0.5, 2.0, 3.0).expand(2, 3)),
    "Independent": lambda: d.Independent(d.Normal(t(0.0, 1.0).expand(3, 2), 1.0), 1),
    "Kumaraswamy": lambda: d.Kumaraswamy(t(0.5, 2.0), t(2.0, 3.0)),
    "LKJCholesky": lambda: d.LKJCholesky(3, t(0.5, 1.0)),
    "LogisticNormal": lambda: d.LogisticNormal(cd.zeros(2, 3, dtype=cd.float64), 1.0),
    "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(t(1.0, 2.0, 3.0), EYE[:, :2], t(1.0, 2.0, 3.0)),
    "MixtureSameFamily": lambda: d.MixtureSameFamily(
        d.Categorical(t(0.3, 0.7).expand(2, 2)), d.Normal(t(0.0, 5.0).expand(2, 2), 1.0)
    ),
    "MixtureSameFamily of vectors": lambda: d.MixtureSameFamily(
        d.Categorical(t(0.3, 0.7)), d.MultivariateNormal(t(0.0, 5.0, 1.0).expand(4, 2, 3), EYE)
    ),
    "Multinomial": lambda: d.Multinomial(5, t(0.2, 0.3, 0.5).expand(2, 3)),
    "MultivariateNormal": lambda: d.MultivariateNormal(t(1.0, 2.0, 3.0).expand(2, 3), EYE * 2),
    "OneHotCategorical": lambda: d.OneHotCategorical(t(0.2, 0.3, 0.5).expand(2, 3)),
    "OneHotCategoricalStraightThrough": lambda: d.OneHotCategoricalStraightThrough(t(0.2, 0.3, 0.5).expand(2, 3)),
    "RelaxedBernoulli": lambda: d.RelaxedBernoulli(t(0.5)[0], t(0.3, 0.6)),
    "RelaxedOneHotCategorical": lambda: d.RelaxedOneHotCategorical(t(0.5)[0], t(0.2, 0.3, 0.5).expand(2, 3)),
    "TransformedDistribution": lambda: d.TransformedDistribution(d.Normal(t(0.0, 1.0), 1.0), d.SigmoidTransform()),
    "Wishart": lambda: d.Wishart(t(4.0, 5.0), EYE),
}
