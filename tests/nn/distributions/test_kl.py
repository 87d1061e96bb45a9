"""Divergences against the mean of the difference of the densities' logarithms, for each registered pair."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest

from tests.nn.distributions.families import close, d, t

kl: Any = d.kl
I2 = cd.eye(2, dtype=cd.float64)
P: dict[str, Any] = {
    "Bernoulli": lambda: d.Bernoulli(t(0.2, 0.7)),
    "Beta": lambda: d.Beta(t(2.0, 1.5), t(1.2, 3.0)),
    "Binomial": lambda: d.Binomial(4, t(0.2, 0.7)),
    "Categorical": lambda: d.Categorical(cd.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], dtype=cd.float64)),
    "Cauchy": lambda: d.Cauchy(t(0.0, 1.0), t(1.0, 2.0)),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.2, 0.7)),
    "Dirichlet": lambda: d.Dirichlet(cd.tensor([[2.0, 3.0, 1.5], [1.0, 2.0, 2.5]], dtype=cd.float64)),
    "Exponential": lambda: d.Exponential(t(0.8, 2.0)),
    "Gamma": lambda: d.Gamma(t(2.0, 3.5), t(1.0, 2.5)),
    "Geometric": lambda: d.Geometric(t(0.2, 0.7)),
    "Gumbel": lambda: d.Gumbel(t(0.0, 1.0), t(0.5, 0.8)),
    "HalfNormal": lambda: d.HalfNormal(t(0.5, 2.0)),
    "Independent": lambda: d.Independent(d.Normal(cd.ones(2, 3, dtype=cd.float64), t(1.0, 2.0, 3.0)), 1),
    "Laplace": lambda: d.Laplace(t(0.0, 1.0), t(0.5, 2.0)),
    "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(t(1.0, 2.0).expand(2, 2), I2[:, :1], t(1.0, 2.0)),
    "MultivariateNormal": lambda: d.MultivariateNormal(t(0.0, 1.0).expand(2, 2), I2 + 0.5),
    "Normal": lambda: d.Normal(t(0.3, 1.0), t(0.5, 1.5)),
    "OneHotCategorical": lambda: d.OneHotCategorical(t(0.2, 0.3, 0.5).expand(2, 3)),
    "Pareto": lambda: d.Pareto(t(0.5, 1.0), t(5.0, 6.0)),
    "Poisson": lambda: d.Poisson(t(0.5, 3.0)),
    "TransformedDistribution": lambda: d.LogNormal(t(0.3, 1.0), t(0.5, 1.5)),
    "Uniform": lambda: d.Uniform(t(0.6, 0.2), t(0.8, 0.9)),
}
Q: dict[str, Any] = {
    **P,
    "Bernoulli": lambda: d.Bernoulli(t(0.4, 0.5)),
    "Beta": lambda: d.Beta(t(1.5, 2.5), t(2.0, 1.1)),
    "Binomial": lambda: d.Binomial(4, t(0.4, 0.5)),
    "Categorical": lambda: d.Categorical(t(0.4, 0.4, 0.2)),
    "Cauchy": lambda: d.Cauchy(t(0.5, -1.0), t(2.0, 1.0)),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.4, 0.9)),
    "Dirichlet": lambda: d.Dirichlet(t(1.5, 2.0, 3.0)),
    "Exponential": lambda: d.Exponential(t(1.5, 0.5)),
    "Gamma": lambda: d.Gamma(t(1.5, 2.5), t(2.0, 1.0)),
    "Geometric": lambda: d.Geometric(t(0.4, 0.5)),
    "Gumbel": lambda: d.Gumbel(t(0.5, 0.0), t(1.5, 2.0)),
    "HalfNormal": lambda: d.HalfNormal(t(1.5, 1.0)),
    "Independent": lambda: d.Independent(d.Normal(cd.zeros(2, 3, dtype=cd.float64), t(2.0, 1.0, 3.0)), 1),
    "Laplace": lambda: d.Laplace(t(0.5, 0.0), t(1.0, 1.5)),
    "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(t(0.0, 1.0), I2[:, 1:], t(2.0, 1.5)),
    "MultivariateNormal": lambda: d.MultivariateNormal(t(0.5, 0.0), I2 * 2 + 0.3),
    "Normal": lambda: d.Normal(t(0.0, 2.0), t(1.0, 2.0)),
    "OneHotCategorical": lambda: d.OneHotCategorical(t(0.4, 0.4, 0.2)),
    "Pareto": lambda: d.Pareto(t(0.5, 0.1), t(4.0, 3.0)),
    "Poisson": lambda: d.Poisson(t(1.5, 2.0)),
    "TransformedDistribution": lambda: d.LogNormal(t(0.0, 2.0), t(1.0, 2.0)),
    "Uniform": lambda: d.Uniform(t(-0.1, 0.0), t(1.2, 1.0)),
}
PAIRS = sorted((p.__name__, q.__name__) for p, q in kl._KL_REGISTRY if p is not d.ExponentialFamily)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(600)


def mean_difference(p: Any, q: Any) -> Any:
    """Return the mean over p of log p - log q: over the support, by quadrature of quantiles, or over drawn events."""
    p._validate_args = q._validate_args = False
    if type(p).__name__ in ("Geometric", "Poisson") or p.has_enumerate_support:
        x = cd.arange(200, dtype=cd.float64).unsqueeze(-1) if not p.has_enumerate_support else p.enumerate_support()
        log_p, log_q = p.log_prob(x), q.log_prob(x)
        return (log_p.exp() * cd.where(log_p.isinf(), 0.0, log_p - log_q)).sum(0), 1e-8
    if p.event_shape or isinstance(p, (d.Beta, d.Gamma)):
        x = p.sample((10_000,))
        difference = p.log_prob(x) - q.log_prob(x)
        return difference.mean(0), float(5 * difference.std(0).max() / 100) + 1e-9
    # The substitution u = (1 - cos(pi s)) / 2 puts nodes near both ends, where quantiles are unbounded.
    s = cd.tensor((NODES[:, None] + 1) / 2)
    u, weight = (1 - (math.pi * s).cos()) / 2, cd.tensor(WEIGHTS[:, None] / 2) * (math.pi * s).sin() * math.pi / 2
    x = p.icdf(u.expand(600, 2))
    return (weight * (p.log_prob(x) - q.log_prob(x))).sum(0), 2e-3


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_divergences(pair: tuple[str, str]) -> None:
    """The divergence is the mean difference, or infinite if p has events that q does not have."""
    p, q = P[pair[0]](), Q[pair[1]]()
    got = d.kl_divergence(p, q)
    assert got.shape == (2,)
    if kl._KL_REGISTRY[getattr(d, pair[0]), getattr(d, pair[1])] is kl._outside:
        assert got.tolist() == [math.inf, math.inf]
        assert not all(q.support.check(v).all() for v in (p.sample((200,)), p.mean + 100 * p.stddev))
        return
    want, tolerance = mean_difference(p, q)
    close(got, want, rtol=tolerance, atol=tolerance)
    assert (got >= 0).all()
    if pair[0] == pair[1]:
        close(d.kl_divergence(p, p), cd.zeros(2, dtype=cd.float64), atol=1e-12)


def test_the_table_is_that_of_pytorch() -> None:
    """The number of registered pairs is that of PyTorch 2.13, 87, without duplicates."""
    assert len(kl._KL_REGISTRY) == 87


def test_events_outside_of_the_support_of_q() -> None:
    """The divergence is infinite where q has the probability 0 for an event of p, and finite where p has it."""
    inf, nought = math.inf, pytest.approx(math.log(2))
    assert d.kl_divergence(d.Bernoulli(t(0.5, 0.0, 1.0)), d.Bernoulli(t(0.0, 0.5, 0.5))).tolist() == [
        inf,
        nought,
        nought,
    ]
    assert d.kl_divergence(d.Bernoulli(t(0.5)), d.Bernoulli(t(1.0))).tolist() == [inf]
    assert d.kl_divergence(d.Categorical(t(0.5, 0.5)), d.Categorical(t(1.0, 0.0))).item() == inf
    assert d.kl_divergence(d.Categorical(t(1.0, 0.0)), d.Categorical(t(0.5, 0.5))).item() == nought
    assert d.kl_divergence(d.Binomial(5, t(0.5)), d.Binomial(4, t(0.5))).tolist() == [inf]
    assert d.kl_divergence(d.Pareto(1.0, 2.0), d.Pareto(1.5, 2.0)).item() == inf
    assert d.kl_divergence(d.Pareto(1.0, 0.5), d.Exponential(1.0)).item() == inf
    assert d.kl_divergence(d.Pareto(1.0, 0.5), d.Gamma(1.0, 1.0)).item() == inf
    assert d.kl_divergence(d.Pareto(1.0, 1.5), d.Normal(0.0, 1.0)).item() == inf
    wide = d.Uniform(-1.0, 2.0)
    for q in (
        d.Uniform(0.0, 1.0), d.Beta(1.0, 1.0), d.ContinuousBernoulli(0.3), d.Exponential(1.0), d.Gamma(1.0, 1.0),
        d.Pareto(0.5, 1.0),
    ):  # fmt: skip
        assert d.kl_divergence(wide, q).item() == inf
    for p in (d.Beta(2.0, 2.0), d.ContinuousBernoulli(0.3)):
        assert d.kl_divergence(p, d.Uniform(0.2, 1.0)).item() == inf
        assert math.isfinite(d.kl_divergence(p, d.Uniform(0.0, 1.0)).item())


def test_exponential_families_by_bregman_divergence() -> None:
    """A family without a function of its own is served by its log normalizer; two different families raise."""
    wide, narrow = d.Wishart(t(4.0, 5.0), I2), d.Wishart(6.0, I2 * 2)
    x = wide.sample((10_000,))
    want = (wide.log_prob(x) - narrow.log_prob(x)).mean(0)
    close(d.kl_divergence(wide, narrow), want, rtol=0.05, atol=0.05)
    ours = kl._exponential_family(P["Dirichlet"](), Q["Dirichlet"]())
    close(ours, d.kl_divergence(P["Dirichlet"](), Q["Dirichlet"]()), rtol=1e-9)
    with pytest.raises(NotImplementedError, match="between different exponential families cannot be computed"):
        d.kl_divergence(d.Wishart(4.0, I2), d.Normal(0.0, 1.0))


def test_pairs_that_cannot_be_computed() -> None:
    """They raise an error that says why."""
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type StudentT and q"):
        d.kl_divergence(d.StudentT(3.0), d.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match=r"KL between Binomials where q\.total_count > p\.total_count is not"):
        d.kl_divergence(d.Binomial(3, t(0.5)), d.Binomial(5, t(0.5)))
    with pytest.raises(NotImplementedError, match="KL between TransformedDistributions needs equal transforms"):
        d.kl_divergence(d.LogNormal(0.0, 1.0), d.HalfCauchy(1.0))
    exp = d.ExpTransform()
    with pytest.raises(NotImplementedError, match="KL between TransformedDistributions needs equal event shapes"):
        d.kl_divergence(
            d.TransformedDistribution(d.Normal(0.0, 1.0), exp),
            d.TransformedDistribution(d.MultivariateNormal(t(0.0, 1.0), I2), exp),
        )
    with pytest.raises(NotImplementedError, match="KL between Independents needs equal reinterpreted_batch_ndims"):
        d.kl_divergence(P["Independent"](), d.Independent(d.Normal(cd.zeros(2), 1.0), 0))
    for p, q, title in (
        ("MultivariateNormal", "MultivariateNormal", "Multivariate"),
        ("LowRankMultivariateNormal", "MultivariateNormal", r"\(Low Rank\) Multivariate"),
    ):
        other = d.MultivariateNormal(t(0.0), I2[:1, :1])
        assert q == "MultivariateNormal"
        with pytest.raises(ValueError, match=f"KL-divergence between two {title} Normals with different event shapes"):
            d.kl_divergence(P[p](), other)


def test_registration_of_users() -> None:
    """The function of the most specific pair is used; an ambiguous one warns; other types are refused."""

    class Left(d.Normal):  # type: ignore[misc] # d is the package, found at run time
        pass

    class Right(d.Normal):  # type: ignore[misc]
        pass

    registered = dict(kl._KL_REGISTRY)
    try:
        assert d.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)).item() == 0

        @d.register_kl(Left, d.Normal)  # type: ignore[untyped-decorator]
        def first(p: Any, q: Any) -> str:
            return "first"

        assert d.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "first"

        @d.register_kl(d.Normal, Right)  # type: ignore[untyped-decorator]
        def second(p: Any, q: Any) -> str:
            return "second"

        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\)\. Please register_kl"):
            assert d.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "first"
    finally:
        kl._KL_REGISTRY.clear()
        kl._KL_REGISTRY.update(registered)
        kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass but got 3"):
        d.register_kl(3, d.Normal)
