"""Distributions of numbers against SciPy: densities, distribution functions, quantiles, moments, and drawn numbers."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest

from tests.nn.distributions.families import CONTINUOUS, DISCRETE, close, d, stats, t

UNBOUNDED = {"VonMises"}
"""Of angles: their support is the line, and their moments are those of the circle."""


def missing(name: str, method: str) -> bool:
    """Return whether PyTorch's class has no such method."""
    without = {
        "cdf": {"Beta", "FisherSnedecor", "StudentT", "VonMises"},
        "icdf": {"Beta", "Chi2", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "VonMises"},
        "entropy": {"FisherSnedecor", "VonMises", "NegativeBinomial", "Poisson"},
    }
    return name in without[method]


def quantiles(frozen: Any) -> np.ndarray[Any, Any]:
    """Return values in both tails and in the middle."""
    return np.asarray(frozen.ppf(np.array([[0.01], [0.3], [0.5], [0.98]])))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_and_distribution_functions(name: str) -> None:
    """log_prob, cdf and icdf are SciPy's; methods that PyTorch does not have raise."""
    make, frozen = CONTINUOUS[name]
    ours, x, q = make(), quantiles(frozen), np.array([[0.05], [0.5], [0.9]])
    np.testing.assert_allclose(ours.log_prob(cd.tensor(x)).numpy(), frozen.logpdf(x), rtol=1e-9, atol=1e-12)
    for method, want, value in (("cdf", frozen.cdf, x), ("icdf", frozen.ppf, q)):
        if missing(name, method):
            with pytest.raises(NotImplementedError, match=f"does not implement {method}"):
                getattr(ours, method)(cd.tensor(value))
        else:
            got = getattr(ours, method)(cd.tensor(value)).numpy()
            np.testing.assert_allclose(got, want(value), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in UNBOUNDED])
def test_moments(name: str) -> None:
    """Mean, variance and entropy are SciPy's; the mode has the largest density."""
    make, frozen = CONTINUOUS[name]
    ours = make()
    mean, variance = frozen.stats("mv")
    if "Cauchy" in name:
        mean = np.full(4, math.inf if "Half" in name else math.nan)
        variance = np.full(4, math.inf)
    np.testing.assert_allclose(ours.mean.numpy(), mean, rtol=1e-9)
    np.testing.assert_allclose(ours.variance.numpy(), variance, rtol=1e-9)
    np.testing.assert_allclose(ours.stddev.numpy(), np.sqrt(variance), rtol=1e-9)
    if not missing(name, "entropy"):
        entropy = np.broadcast_to(frozen.entropy(), (4,))
        np.testing.assert_allclose(ours.entropy().numpy(), entropy, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ours.perplexity().numpy(), np.exp(entropy), rtol=1e-7)
    mode = ours.mode.numpy()
    inside = np.isfinite(mode) & np.isfinite(frozen.logpdf(mode))
    for x in quantiles(frozen):
        assert (frozen.logpdf(np.where(inside, mode, x)) >= frozen.logpdf(x) - 1e-9)[inside].all()


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities(name: str) -> None:
    """log_prob, mean, variance and entropy of discrete distributions are SciPy's."""
    make, frozen = DISCRETE[name]
    ours, k = make(), quantiles(frozen)
    np.testing.assert_allclose(ours.log_prob(cd.tensor(k)).numpy(), frozen.logpmf(k), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.mean.numpy(), frozen.mean(), rtol=1e-9)
    np.testing.assert_allclose(ours.variance.numpy(), frozen.var(), rtol=1e-9)
    mode = ours.mode.numpy()
    for x in k:
        assert (frozen.pmf(np.where(np.isnan(mode), x, mode)) >= frozen.pmf(x) - 1e-12).all()
    if not missing(name.split()[0], "entropy"):
        np.testing.assert_allclose(ours.entropy().numpy(), frozen.entropy(), rtol=1e-9)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_drawn_numbers_have_the_distribution(name: str) -> None:
    """Kolmogorov and Smirnov's test does not reject 2,000 numbers of each parameter at the level 1e-4."""
    make, frozen = CONTINUOUS[name]
    drawn = make().sample((2000,)).numpy()
    uniform = frozen.cdf(drawn)
    if name in UNBOUNDED:
        assert (np.abs(drawn) <= math.pi).all()
        uniform = uniform - frozen.cdf(-math.pi)
    for column in uniform.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", DISCRETE)
def test_drawn_counts_have_the_distribution(name: str) -> None:
    """The frequencies of 4,000 numbers are within 5 standard deviations of the probabilities."""
    make, frozen = DISCRETE[name]
    drawn = make().sample((4000,)).numpy()
    for k in range(8):
        chance = frozen.pmf(k)
        deviation = np.sqrt(chance * (1 - chance) / 4000) + 1e-9
        assert (np.abs((drawn == k).mean(0) - chance) < 5 * deviation).all()


def test_continuous_bernoulli() -> None:
    """Its density has the integral 1, and its mean, variance and entropy, also in the unstable range."""
    for parameters in ({"probs": t(0.1, 0.4995, 0.5, 0.8)}, {"logits": t(-2.0, 0.001, 0.0, 1.5)}):
        ours = d.ContinuousBernoulli(**parameters)
        nodes, weights = np.polynomial.legendre.leggauss(40)
        x, w = cd.tensor((nodes[:, None] + 1) / 2).expand(40, 4), cd.tensor(weights[:, None] / 2)
        density = ours.log_prob(x).exp()
        mean = (w * x * density).sum(0)
        close((w * density).sum(0), cd.ones(4, dtype=cd.float64), rtol=1e-8, atol=1e-8)
        close(ours.mean, mean, rtol=1e-6, atol=1e-8)
        close(ours.variance, (w * x**2 * density).sum(0) - mean**2, rtol=1e-6, atol=1e-8)
        close(ours.entropy(), -(w * density * density.log()).sum(0), rtol=1e-6, atol=1e-7)
        assert d.ExponentialFamily.entropy(ours).detach().numpy() == pytest.approx(ours.entropy().numpy(), abs=2e-4)
        u = t(0.05, 0.5, 0.9).unsqueeze(-1)
        close(ours.cdf(ours.icdf(u)), u.expand(3, 4), rtol=1e-3, atol=1e-3)
        drawn = ours.sample((2000,))
        assert ((drawn.mean(0) - ours.mean).abs() < 5 * ours.stddev / 2000**0.5).all()
        assert ours.cdf(t(-0.0, 1.0, 1.0, 0.0)).tolist() == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="The parameter probs has invalid values"):
        d.ContinuousBernoulli(probs=1.5, validate_args=True)


def test_kumaraswamy() -> None:
    """Its density is the derivative of ``1 - (1 - x**a)**b``; mean, variance and mode are those of the density."""
    ours = d.Kumaraswamy(t(1.5, 2.0, 3.0), t(2.5, 1.0, 4.0))
    x = t(0.05, 0.5, 0.9).requires_grad_()
    ours.cdf(x).sum().backward()
    close(ours.log_prob(x.detach()).exp(), x.grad, rtol=1e-9, atol=1e-9)
    grid = cd.linspace(0.0005, 0.9995, 1000, dtype=cd.float64).unsqueeze(-1)
    density = ours.log_prob(grid).exp() / 1000
    close(ours.mean, (grid * density).sum(0), rtol=1e-4, atol=0)
    close(ours.variance, ((grid - ours.mean) ** 2 * density).sum(0), rtol=1e-3, atol=0)
    close(ours.mode, grid[density.argmax(0), 0], rtol=0, atol=1e-3)
    entropy = -(density * (density * 1000).log()).sum(0)
    close(ours.entropy(), entropy, rtol=1e-2, atol=1e-3)
    assert d.Kumaraswamy(0.5, 2.0).mode.isnan().item()


@pytest.mark.parametrize("df", [0.5, 1.5])
def test_moments_that_do_not_exist(df: float) -> None:
    """Student's mean and variance are NaN or infinite, as are those of F, inverse gamma and Pareto distributions."""
    student = d.StudentT(df)
    assert student.mean.isnan().item() == (df <= 1)
    assert str(student.variance.item()) == ("nan" if df <= 1 else "inf")
    assert d.FisherSnedecor(df, df).mean.isnan().item()
    assert d.FisherSnedecor(df, df).mode.isnan().item()
    assert d.FisherSnedecor(df, df).variance.isnan().item()
    assert d.InverseGamma(df, 1.0).variance.item() == math.inf
    assert d.Pareto(1.0, df).variance.item() == math.inf
    assert d.GeneralizedPareto(0.0, 1.0, df).mean.isnan().item() == (df >= 1)
    assert d.GeneralizedPareto(0.0, 1.0, df).variance.isnan().item()


def test_survival_of_the_generalized_pareto_distribution() -> None:
    """log_survival_function and log_cdf are SciPy's; the support ends where the concentration is negative."""
    make, frozen = CONTINUOUS["GeneralizedPareto"]
    x = quantiles(frozen)
    np.testing.assert_allclose(make().log_survival_function(cd.tensor(x)).numpy(), frozen.logsf(x), rtol=1e-9)
    np.testing.assert_allclose(make().log_cdf(cd.tensor(x)).numpy(), frozen.logcdf(x), rtol=1e-9)
    assert make().support.upper_bound.tolist()[:2] == [-1.0 + 0.7 / 0.5, math.inf]


def test_entropies_by_bregman_divergence() -> None:
    """The entropy of an exponential family from its log normalizer is that of its own method."""
    for ours in (
        d.Normal(t(0.5, 1.0), t(1.0, 2.0)), d.Gamma(t(0.5, 3.0), t(1.0, 2.0)), d.Exponential(t(0.5, 3.0)),
        d.Bernoulli(t(0.2, 0.7)),
    ):  # fmt: skip
        close(d.ExponentialFamily.entropy(ours), ours.entropy())
    with pytest.raises(NotImplementedError, match="does not implement _mean_carrier_measure"):
        d.Poisson(3.0).entropy()
    with pytest.raises(NotImplementedError, match="does not implement _log_normalizer"):
        d.ExponentialFamily._log_normalizer(d.Poisson(3.0))
    with pytest.raises(NotImplementedError, match="does not implement _natural_params"):
        _ = d.ExponentialFamily((), validate_args=False)._natural_params
