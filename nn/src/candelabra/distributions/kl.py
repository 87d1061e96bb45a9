"""The Kullback-Leibler divergence, by pairs of families.

Divergences between different families are ``-entropy(p) - E[log q(x)]``, where the mean over p of the logarithm of q's
density needs few moments of p: one function serves all families p.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributions.bernoulli import Bernoulli
from candelabra.distributions.beta import Beta
from candelabra.distributions.binomial import Binomial
from candelabra.distributions.categorical import Categorical
from candelabra.distributions.cauchy import Cauchy
from candelabra.distributions.continuous_bernoulli import ContinuousBernoulli
from candelabra.distributions.dirichlet import Dirichlet
from candelabra.distributions.distribution import Distribution
from candelabra.distributions.exp_family import ExponentialFamily
from candelabra.distributions.exponential import Exponential
from candelabra.distributions.gamma import Gamma
from candelabra.distributions.geometric import Geometric
from candelabra.distributions.gumbel import Gumbel
from candelabra.distributions.half_normal import HalfNormal
from candelabra.distributions.independent import Independent
from candelabra.distributions.laplace import Laplace
from candelabra.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from candelabra.distributions.multivariate_normal import MultivariateNormal, batch_mahalanobis, log_diagonal
from candelabra.distributions.normal import Normal
from candelabra.distributions.one_hot_categorical import OneHotCategorical
from candelabra.distributions.pareto import Pareto
from candelabra.distributions.poisson import Poisson
from candelabra.distributions.transformed_distribution import TransformedDistribution
from candelabra.distributions.uniform import Uniform
from candelabra.distributions.utils import euler_constant, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Function = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Function] = {}
_KL_MEMOIZE: dict[tuple[type, type], Function | None] = {}


# -- the table --------------------------------------------------------------------------------------------------------
def register_kl(type_p: type, type_q: type) -> Callable[[Function], Function]:
    """Return a decorator that registers a function of two distributions of these types and their subclasses.

    As in PyTorch, the types may be any classes: libraries have distributions with bases of their own.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorate(function: Function) -> Function:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return ``E[log p(x) - log q(x)]`` over x of p, in the shape of the batch.

    Raises ``NotImplementedError`` for a pair of families without a registered function.
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _find(*pair)
    function = _KL_MEMOIZE[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _precedes(first: tuple[type, type], second: tuple[type, type]) -> bool:
    """Return whether a pair is at least as specific as another; the first types decide if they differ."""
    if first[0] is not second[0]:
        return issubclass(first[0], second[0])
    return issubclass(first[1], second[1])


def _find(type_p: type, type_q: type) -> Function | None:
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None
    by_p = by_q = matches[0]
    for pair in matches[1:]:
        by_p = pair if _precedes(pair, by_p) else by_p
        by_q = pair if _precedes((pair[1], pair[0]), (by_q[1], by_q[0])) else by_q
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def _from_each(*types: type, to: type) -> Callable[[Function], Function]:
    """Register one function for several families p."""

    def decorate(function: Function) -> Function:
        for kind in types:
            register_kl(kind, to)(function)
        return function

    return decorate


def _outside(p: Any, q: Any) -> Tensor:
    """Return infinity: p has events that q does not have."""
    pair = cd.broadcast_tensors(cd.zeros_like(p.mean), cd.zeros_like(q.mean))
    return cd.full_like(pair[0], math.inf)


for _p, _qs in {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _qs:
        register_kl(_p, _q)(_outside)


# -- one family -------------------------------------------------------------------------------------------------------
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    softplus = cd.nn.functional.softplus
    on = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    on = cd.where(p.probs == 0, 0.0, cd.where(q.probs == 0, math.inf, on))
    off = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return on + cd.where(p.probs == 1, 0.0, cd.where(q.probs == 1, math.inf, off))


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return cd.where(p.total_count > q.total_count, math.inf, p.total_count * trial)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = cd.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return cd.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    normalizers = [d._cont_bern_log_norm() + (-d.probs).log1p() for d in (p, q)]
    return p.mean * (p.logits - q.logits) + normalizers[0] - normalizers[1]


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    mean_log = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * mean_log).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    ratio = q.rate / p.rate
    return (a - b) * a.digamma() - a.lgamma() + b.lgamma() - b * ratio.log() + a * (ratio - 1)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return cd.where(p.scale < q.scale, math.inf, divergence)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    divergence = ((q.high - q.low) / (p.high - p.low)).log()
    return cd.where((q.low > p.low) | (q.high < p.high), math.inf, divergence)


# -- normal vectors ---------------------------------------------------------------------------------------------------
def _check_events(p: Any, q: Any, families: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {families} Normals with different event shapes cannot be computed")


def _squares(matrices: Tensor) -> Tensor:
    """Return the trace of ``X @ X.T``."""
    return matrices.pow(2).flatten(-2).sum(-1)


def _trace_through_factor(p: Any, q: Any) -> Tensor:
    """Return ``trace(inverse(Q) @ P)``, and the distance of the means, for a q with a Cholesky factor."""
    factor = q._unbroadcasted_scale_tril
    if isinstance(p, LowRankMultivariateNormal):
        parts = [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]
    else:
        parts = [p._unbroadcasted_scale_tril]
    traces = [_squares(cd.linalg.solve_triangular(factor, part, upper=False)) for part in parts]
    return sum(traces[1:], traces[0]) + batch_mahalanobis(factor, q.loc - p.loc)


def _trace_through_rank(p: Any, q: Any) -> Tensor:
    """Return ``trace(inverse(Q) @ P)``, and the distance of the means, for a q of low rank."""
    whitened, root = q._whitened_factor(), q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    if isinstance(p, LowRankMultivariateNormal):
        diagonal = p._unbroadcasted_cov_diag
        trace = (diagonal / q._unbroadcasted_cov_diag).sum(-1) - _squares(whitened * diagonal.sqrt().unsqueeze(-2))
        factor = p._unbroadcasted_cov_factor
    else:
        trace, factor = 0.0, p._unbroadcasted_scale_tril
    return trace + _squares(factor * root) - _squares(whitened @ factor) + q._mahalanobis(q.loc - p.loc)


def _log_determinant(d: Any) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return d._log_determinant()
    return 2 * log_diagonal(d._unbroadcasted_scale_tril)


def _normal_vectors(p: Any, q: Any, families: str, trace: Function) -> Tensor:
    _check_events(p, q, families)
    return 0.5 * (_log_determinant(q) - _log_determinant(p) + trace(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    return _normal_vectors(p, q, "Multivariate", _trace_through_factor)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    return _normal_vectors(p, q, "Low Rank Multivariate", _trace_through_rank)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_low_rank(p: Any, q: Any) -> Tensor:
    return _normal_vectors(p, q, "(Low Rank) Multivariate", _trace_through_rank)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate(p: Any, q: Any) -> Tensor:
    return _normal_vectors(p, q, "(Low Rank) Multivariate", _trace_through_factor)


# -- distributions over others ----------------------------------------------------------------------------------------
@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log normalizer (Nielsen & Nock, ICIP 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    ours, others = [v.detach().requires_grad_() for v in p._natural_params], q._natural_params
    log_normalizer = p._log_normalizer(*ours)
    gradients = cd.autograd.grad(log_normalizer.sum(), ours, create_graph=True)
    result = q._log_normalizer(*others) - log_normalizer
    for mine, other, g in zip(ours, others, gradients, strict=True):
        term = (other - mine) * g
        result = result - sum_rightmost(term, term.dim() - result.dim() if term.dim() > result.dim() else 0)
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError("KL between TransformedDistributions needs equal transforms")
    if p.event_shape != q.event_shape:
        raise NotImplementedError("KL between TransformedDistributions needs equal event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents needs equal reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# -- different families -----------------------------------------------------------------------------------------------
def _mean_log(p: Any) -> Tensor:
    """The mean of ``log(x)``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    return (cd.xlogy(high, high) - cd.xlogy(low, low)) / (high - low) - 1


def _mean_exp(p: Any, t: Tensor) -> Tensor:
    """The mean of ``exp(-x t)`` for a positive t."""
    if isinstance(p, Normal):
        return (0.5 * (p.scale * t).pow(2) - p.loc * t).exp()
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Gamma):
        return (1 + t / p.rate).pow(-p.concentration)
    return ((-p.low * t).exp() - (-p.high * t).exp()) / ((p.high - p.low) * t)


def _finite(p: Any, divergence: Tensor, order: int) -> Tensor:
    """Return infinity where p, a `Pareto` distribution, has no moment of this order."""
    return cd.where(p.alpha <= order, math.inf, divergence) if isinstance(p, Pareto) else divergence


@_from_each(Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform, to=Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    squares = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return _finite(p, squares + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy(), 2)


@_from_each(Beta, ContinuousBernoulli, Gamma, Pareto, Uniform, to=Exponential)
def _to_exponential(p: Any, q: Any) -> Tensor:
    divergence = _finite(p, q.rate * p.mean - q.rate.log() - p.entropy(), 1)
    return cd.where(p.low < 0, math.inf, divergence) if isinstance(p, Uniform) else divergence


@_from_each(Beta, Exponential, Pareto, Uniform, to=Gamma)
def _to_gamma(p: Any, q: Any) -> Tensor:
    a, rate = q.concentration, q.rate
    log_density = a * rate.log() - a.lgamma() + (a - 1) * _mean_log(p) - rate * p.mean
    divergence = _finite(p, -log_density - p.entropy(), 1)
    return cd.where(p.low < 0, math.inf, divergence) if isinstance(p, Uniform) else divergence


@_from_each(Exponential, Gamma, Normal, Uniform, to=Gumbel)
def _to_gumbel(p: Any, q: Any) -> Tensor:
    mean_exp = (q.loc / q.scale).exp() * _mean_exp(p, q.scale.reciprocal())
    return q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp - p.entropy()


@_from_each(Beta, ContinuousBernoulli, to=Uniform)
def _to_uniform(p: Any, q: Any) -> Tensor:
    return cd.where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@_from_each(Beta, Uniform, to=ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    divergence = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    return cd.where((p.high > 1) | (p.low < 0), math.inf, divergence) if isinstance(p, Uniform) else divergence


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mean_log, mean_log_other = _mean_log_between(p.low, p.high), _mean_log_between(1 - p.high, 1 - p.low)
    divergence = q._log_normalizer(a, b) - (a - 1) * mean_log - (b - 1) * mean_log_other - p.entropy()
    return cd.where((p.high > 1) | (p.low < 0), math.inf, divergence)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    log_density = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return cd.where(p.low < q.scale, math.inf, -log_density - p.entropy())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    distance = p.loc - q.loc
    z = distance / (math.sqrt(2) * p.scale)
    mean_distance = math.sqrt(2 / math.pi) * p.scale * (-z.pow(2)).exp() + distance * z.erf()
    return (2 * q.scale).log() + mean_distance / q.scale - p.entropy()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (q.loc - p.loc) / q.scale
    mean_exp = (distance + (1 + ratio).lgamma()).exp()
    return ratio * euler_constant - ratio.log() - distance + mean_exp - (1 + euler_constant)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


def __dir__() -> list[str]:
    return sorted(__all__)
