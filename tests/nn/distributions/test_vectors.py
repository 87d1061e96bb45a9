"""Distributions over vectors and matrices, and mixtures, against SciPy and against their definitions."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest

from tests.nn.distributions.families import close, d, stats, t

COVARIANCE = cd.tensor([[2.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.5]], dtype=cd.float64)
LOC = t(1.0, -2.0, 0.5)
FACTOR = cd.tensor([[1.0, 0.0], [0.5, -1.0], [0.2, 0.7]], dtype=cd.float64)


def normals() -> dict[str, Any]:
    """Return one normal distribution in four descriptions, and its covariance of low rank plus a diagonal."""
    return {
        "covariance_matrix": d.MultivariateNormal(LOC, COVARIANCE),
        "precision_matrix": d.MultivariateNormal(LOC, precision_matrix=COVARIANCE.inverse()),
        "scale_tril": d.MultivariateNormal(LOC, scale_tril=cd.linalg.cholesky(COVARIANCE)),
        "low rank": d.LowRankMultivariateNormal(LOC, FACTOR, t(1.0, 2.0, 0.5)),
    }


@pytest.mark.parametrize("name", normals())
def test_normal_vectors(name: str) -> None:
    """Density, entropy, moments and all descriptions of the covariance agree with SciPy."""
    ours = normals()[name]
    covariance = COVARIANCE if name != "low rank" else FACTOR @ FACTOR.mT + t(1.0, 2.0, 0.5).diag()
    want = stats.multivariate_normal(LOC.numpy(), covariance.numpy())
    x = ours.sample((4, 5))
    np.testing.assert_allclose(ours.log_prob(x).numpy(), want.logpdf(x.numpy()), rtol=1e-10)
    np.testing.assert_allclose(ours.entropy().numpy(), want.entropy(), rtol=1e-10)
    close(ours.covariance_matrix, covariance, atol=1e-10)
    close(ours.precision_matrix, covariance.inverse(), atol=1e-10)
    close(ours.scale_tril, cd.linalg.cholesky(covariance), atol=1e-10)
    close(ours.variance, covariance.diagonal(), atol=1e-10)
    assert ours.mode is ours.mean is ours.loc
    drawn = ours.sample((20_000,))
    close(drawn.mT.cov(), covariance, rtol=0, atol=0.1)
    close(drawn.mean(0), LOC, rtol=0, atol=0.05)


def test_batches_of_normal_vectors() -> None:
    """A batch of factors with a larger batch of means has the density of each pair."""
    factors = cd.stack([cd.linalg.cholesky(COVARIANCE), cd.eye(3, dtype=cd.float64)])
    locs = cd.stack([LOC, LOC * 2, LOC * 3]).unsqueeze(1)
    ours = d.MultivariateNormal(locs, scale_tril=factors)
    assert ours.batch_shape == (3, 2)
    x = ours.sample((4,))
    for i in range(3):
        for j in range(2):
            alone = d.MultivariateNormal(locs[i, 0], scale_tril=factors[j])
            close(ours.log_prob(x)[:, i, j], alone.log_prob(x[:, i, j]))
    low = d.LowRankMultivariateNormal(locs, cd.stack([FACTOR, 2 * FACTOR]), t(1.0, 2.0, 0.5))
    alone = d.LowRankMultivariateNormal(locs[2, 0], 2 * FACTOR, t(1.0, 2.0, 0.5))
    close(low.log_prob(x)[:, 2, 1], alone.log_prob(x[:, 2, 1]))
    assert low.expand((5, 3, 2)).covariance_matrix.shape == (5, 3, 2, 3, 3)
    assert ours.expand((5, 3, 2)).precision_matrix.shape == (5, 3, 2, 3, 3)


def test_wrong_arguments_of_normal_vectors() -> None:
    """They raise an error that names them."""
    with pytest.raises(ValueError, match="loc must be at least one-dimensional"):
        d.MultivariateNormal(cd.tensor(1.0), COVARIANCE)
    with pytest.raises(ValueError, match="Exactly one of covariance_matrix or precision_matrix or scale_tril may"):
        d.MultivariateNormal(LOC)
    for name, title in (("covariance_matrix",) * 2, ("precision_matrix",) * 2, ("scale_tril", "scale_tril matrix")):
        with pytest.raises(ValueError, match=f"{title} must be at least two-dimensional, with optional leading batch"):
            d.MultivariateNormal(LOC, **{name: LOC})
    with pytest.raises(ValueError, match="Expected parameter covariance_matrix"):
        d.MultivariateNormal(LOC, -COVARIANCE)
    for arguments, text in {
        (cd.tensor(1.0), FACTOR, LOC): "loc must be at least one-dimensional",
        (LOC, LOC, LOC): "cov_factor must be at least two-dimensional, with optional leading batch dimensions",
        (LOC, FACTOR[:2], LOC): "cov_factor must be a batch of matrices with shape 3 x m",
        (LOC, FACTOR, LOC[:2]): "cov_diag must be a batch of vectors with shape",
        (LOC.expand(3, 3), FACTOR.expand(2, 3, 2), LOC.exp()): "Incompatible batch shapes: loc ",
    }.items():
        with pytest.raises(ValueError, match=text):
            d.LowRankMultivariateNormal(*arguments)


def test_dirichlet() -> None:
    """Density, entropy and moments are SciPy's; the marginals of drawn points have beta distributions."""
    concentration = t(0.6, 1.5, 3.0)
    ours, want = d.Dirichlet(concentration), stats.dirichlet(concentration.numpy())
    x = ours.sample((2000,))
    np.testing.assert_allclose(ours.log_prob(x[:5]).numpy(), [want.logpdf(v) for v in x[:5].numpy()], rtol=1e-9)
    np.testing.assert_allclose(ours.mean.numpy(), want.mean(), rtol=1e-12)
    np.testing.assert_allclose(ours.variance.numpy(), want.var(), rtol=1e-12)
    np.testing.assert_allclose(ours.entropy().numpy(), want.entropy(), rtol=1e-10)
    for i, (a, rest) in enumerate(zip(concentration.tolist(), (5.1 - concentration).tolist())):
        assert stats.kstest(x[:, i].numpy(), stats.beta(a, rest).cdf).pvalue > 1e-4
    assert d.Dirichlet(t(2.0, 1.0, 3.0)).mode.tolist() == [1 / 3, 0.0, 2 / 3]
    assert d.Dirichlet(t(0.5, 0.7, 0.2)).mode.tolist() == [1.0, 0.0, 0.0]


def test_small_concentrations_do_not_underflow() -> None:
    """Points of tiny concentrations are on the simplex, with a finite gradient, also in float32."""
    concentration = cd.full((100, 3), 1e-3, requires_grad=True)
    x = d.Dirichlet(concentration).rsample()
    assert (x.sum(-1) - 1).abs().max() < 1e-6
    x[:, 0].sum().backward()
    assert concentration.grad.isfinite().all()
    gamma = d.Gamma(cd.full((100,), 1e-3), 1.0).sample()
    assert (gamma > 0).all()


def test_categories() -> None:
    """Probabilities, entropy, mode and frequencies of categories and of one-hot vectors."""
    weights = t(1.0, 5.0, 0.0, 4.0)
    ours, vectors = d.Categorical(weights), d.OneHotCategorical(weights)
    assert ours.log_prob(cd.tensor([0, 1, 3])).exp().tolist() == pytest.approx([0.1, 0.5, 0.4])
    np.testing.assert_allclose(ours.entropy().numpy(), stats.entropy([0.1, 0.5, 0.4]), rtol=1e-6)
    assert (ours.mode.item(), vectors.mode.tolist()) == (1, [0.0, 1.0, 0.0, 0.0])
    assert ours.mean.isnan().all()
    assert ours.variance.isnan().all()
    assert d.Categorical(logits=weights.log()).entropy().item() == pytest.approx(stats.entropy([0.1, 0.5, 0.4]))
    drawn = vectors.sample((4000,))
    close(drawn.mean(0), vectors.mean, rtol=0, atol=0.04)
    close(vectors.variance, vectors.mean * (1 - vectors.mean))
    assert (vectors.log_prob(drawn) == ours.log_prob(drawn.argmax(-1))).all()
    assert vectors.entropy().item() == ours.entropy().item()
    probs = t(0.2, 0.8).requires_grad_()
    straight = d.OneHotCategoricalStraightThrough(probs).rsample((5,))
    assert set(straight.detach().round(decimals=9).unique().tolist()) == {0.0, 1.0}
    straight[..., 0].sum().backward()
    assert probs.grad.abs().sum() > 0


def test_multinomial() -> None:
    """Probabilities, moments and entropy are SciPy's; a category of probability 0 may have the count 0."""
    ours, want = d.Multinomial(4, t(0.2, 0.3, 0.5)), stats.multinomial(4, [0.2, 0.3, 0.5])
    x = ours.sample((3000,))
    assert (x.sum(-1) == 4).all()
    np.testing.assert_allclose(ours.log_prob(x[:9]).numpy(), want.logpmf(x[:9].numpy()), rtol=1e-10)
    np.testing.assert_allclose(ours.entropy().numpy(), want.entropy(), rtol=1e-10)
    close(ours.mean, x.mean(0), rtol=0, atol=0.1)
    np.testing.assert_allclose(ours.variance.numpy(), np.diag(want.cov()), rtol=1e-12)
    certain = d.Multinomial(2, logits=t(0.0, -math.inf), validate_args=False)
    assert certain.log_prob(t(2.0, 0.0)).item() == 0
    assert ours.logits.exp().tolist() == pytest.approx([0.2, 0.3, 0.5])


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart(name: str) -> None:
    """Density, entropy and moments are SciPy's, and those of drawn matrices."""
    given = {
        "covariance_matrix": COVARIANCE, "precision_matrix": COVARIANCE.inverse(),
        "scale_tril": cd.linalg.cholesky(COVARIANCE),
    }[name]  # fmt: skip
    ours, want = d.Wishart(5.5, **{name: given}), stats.wishart(5.5, COVARIANCE.numpy())
    x = ours.sample((3000,))
    np.testing.assert_allclose(ours.log_prob(x[:5]).numpy(), [want.logpdf(m) for m in x[:5].numpy()], rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().numpy(), want.entropy(), rtol=1e-10)
    np.testing.assert_allclose(ours.mean.numpy(), want.mean(), rtol=1e-10)
    np.testing.assert_allclose(ours.variance.numpy(), want.var(), rtol=1e-10)
    np.testing.assert_allclose(ours.mode.numpy(), want.mode(), rtol=1e-10)
    close(x.mean(0), ours.mean, rtol=0, atol=0.5)
    close(ours.precision_matrix, COVARIANCE.inverse(), atol=1e-10)
    close(d.ExponentialFamily.entropy(ours), ours.entropy())
    assert d.Wishart(t(3.5)[0], COVARIANCE).mode.isnan().all()


def test_wishart_with_few_degrees_of_freedom() -> None:
    """Few degrees of freedom warn, and singular matrices are drawn again; too few raise."""
    with pytest.warns(UserWarning, match="Low df values detected. Singular samples are highly likely"):
        ours = d.Wishart(1.0001, cd.eye(2, dtype=cd.float64), validate_args=False)
    assert ours.df.item() == 1.0001

    class Half:
        """A support that rejects the first of two matrices, once."""

        calls = 0

        def check(self, value: Any) -> Any:
            """Return False for the first matrix at the first call."""
            self.calls += 1
            return cd.tensor([self.calls > 1, True])

    family = type("Rejected", (d.Wishart,), {"support": Half()})
    rejected = family(4.0, cd.eye(2, dtype=cd.float64), validate_args=False)
    with pytest.warns(UserWarning, match="Singular sample detected"):
        assert rejected.rsample((2,)).shape == (2, 2, 2)
    assert family.support.calls == 2  # type: ignore[attr-defined] # of the class above
    with pytest.raises(ValueError, match=r"Value of df=1.0 expected to be greater than ndim - 1 = 1"):
        d.Wishart(1.0, cd.eye(2))
    with pytest.raises(AssertionError, match="Exactly one of covariance_matrix or precision_matrix or scale_tril"):
        d.Wishart(3.0)
    with pytest.raises(ValueError, match="scale_tril must be at least two-dimensional"):
        d.Wishart(3.0, LOC)


def test_correlation_matrices() -> None:
    """Of two variables the density has a closed form; the correlations of three have a scaled beta distribution."""
    for eta in (0.5, 1.0, 3.0):
        r = np.linspace(-0.9, 0.9, 7)
        factors = cd.tensor(np.stack([[[1, 0], [v, math.sqrt(1 - v * v)]] for v in r]))
        # The density of r is that of 2 * beta(eta, eta) - 1; with respect to the factor's element it is the same.
        want = stats.beta(eta, eta, loc=-1, scale=2).logpdf(r)
        np.testing.assert_allclose(d.LKJCholesky(2, eta).log_prob(factors.float()).numpy(), want, rtol=1e-4, atol=1e-5)
        drawn = d.LKJCholesky(3, t(eta)[0]).sample((2000,))
        matrices = drawn @ drawn.mT
        for i, j in ((1, 0), (2, 0), (2, 1)):
            marginal = stats.beta(eta + 0.5, eta + 0.5, loc=-1, scale=2)
            assert stats.kstest(matrices[:, i, j].numpy(), marginal.cdf).pvalue > 1e-4
    with pytest.raises(ValueError, match="Expected dim to be an integer greater than or equal to 2"):
        d.LKJCholesky(1)


def test_relaxed_categories() -> None:
    """The densities are those of Maddison et al.; at a low temperature, points are near the corners."""
    temperature, logits = t(0.7)[0], t(0.1, -0.5, 0.3)
    ours = d.RelaxedOneHotCategorical(temperature, logits=logits)
    x = ours.sample((5,))
    terms = logits - (temperature + 1) * x.log()
    below = 3 * (logits - temperature * x.log()).logsumexp(-1)
    close(ours.log_prob(x), math.lgamma(3) + 2 * temperature.log() + terms.sum(-1) - below, rtol=1e-8)
    assert ours.temperature is temperature
    close(ours.probs, logits.softmax(-1))
    binary = d.RelaxedBernoulli(temperature, logits=logits)
    y = binary.sample((5,))
    odds = logits - temperature * y.logit()
    close(binary.log_prob(y), temperature.log() + odds - 2 * odds.exp().log1p() - y.log() - (1 - y).log(), rtol=1e-8)
    cold = d.RelaxedBernoulli(t(0.01)[0], probs=t(0.3)).sample((1000,))
    assert abs((cold > 0.5).double().mean().item() - 0.3) < 0.08
    close(binary.probs, logits.sigmoid())
    assert binary.logits.tolist() == logits.tolist()
    assert (binary.temperature, ours.logits.shape) == (temperature, (3,))


def test_logistic_normal() -> None:
    """The log ratios of its points, corrected by the offsets of the transform, are normal."""
    ours = d.LogisticNormal(t(0.3, -0.2), t(1.0, 0.5))
    back = d.StickBreakingTransform().inv(ours.sample((2000,)))
    for i, (loc, scale) in enumerate(((0.3, 1.0), (-0.2, 0.5))):
        assert stats.kstest(back[:, i].numpy(), stats.norm(loc, scale).cdf).pvalue > 1e-4
    assert (ours.loc.tolist(), ours.scale.tolist()) == ([0.3, -0.2], [1.0, 0.5])
    assert d.LogisticNormal(0.0, 1.0).event_shape == (2,)


# -- mixtures ---------------------------------------------------------------------------------------------------------
def test_mixtures() -> None:
    """Density, distribution function, moments and drawn numbers are the weighted ones of the components."""
    weights, components = d.Categorical(t(0.3, 0.7)), d.Normal(t(-2.0, 3.0), t(0.5, 1.0))
    ours = d.MixtureSameFamily(weights, components)
    x = t(-1.0, 0.5, 4.0)
    parts = [stats.norm(-2, 0.5), stats.norm(3, 1)]
    np.testing.assert_allclose(
        ours.log_prob(x).exp().numpy(), 0.3 * parts[0].pdf(x.numpy()) + 0.7 * parts[1].pdf(x.numpy()), rtol=1e-9
    )

    def cdf(v: Any) -> Any:
        return 0.3 * parts[0].cdf(v) + 0.7 * parts[1].cdf(v)

    np.testing.assert_allclose(ours.cdf(x).numpy(), cdf(x.numpy()), rtol=1e-9)
    assert ours.mean.item() == pytest.approx(1.5)
    assert ours.variance.item() == pytest.approx(0.3 * (0.25 + 3.5**2) + 0.7 * (1 + 1.5**2))
    assert stats.kstest(ours.sample((2000,)).numpy(), cdf).pvalue > 1e-4
    assert (ours.mixture_distribution, ours.component_distribution) == (weights, components)
    assert ours.support.check(x).all()
    vectors = d.MixtureSameFamily(weights, d.Independent(d.Normal(t(1.0, 2.0, 3.0).expand(4, 2, 3), 1.0), 1))
    close(vectors.mean, t(1.0, 2.0, 3.0).expand(4, 3))
    close(vectors.variance, cd.ones(4, 3, dtype=cd.float64))


def test_wrong_arguments_of_mixtures() -> None:
    """They raise an error that names them."""
    weights, normal = d.Categorical(t(0.3, 0.7)), d.Normal(t(0.0, 1.0), 1.0)
    with pytest.raises(ValueError, match="The Mixture distribution needs to be an  instance of "):
        d.MixtureSameFamily(normal, normal)
    with pytest.raises(ValueError, match="The Component distribution needs to be an instance of "):
        d.MixtureSameFamily(weights, 3)
    with pytest.raises(ValueError, match=r"`mixture_distribution component` \(2\) does not equal "):
        d.MixtureSameFamily(weights, d.Normal(cd.zeros(3), 1.0))
    with pytest.raises(ValueError, match=r"`mixture_distribution.batch_shape` .* is not compatible with "):
        d.MixtureSameFamily(weights.expand((3,)), d.Normal(cd.zeros(4, 2), 1.0))
