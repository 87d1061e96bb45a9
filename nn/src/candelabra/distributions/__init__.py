"""Probability distributions, constraints, transforms, and divergences."""

from __future__ import annotations

from candelabra.distributions import constraints as constraints
from candelabra.distributions import transforms as transforms
from candelabra.distributions.bernoulli import Bernoulli as Bernoulli
from candelabra.distributions.beta import Beta as Beta
from candelabra.distributions.binomial import Binomial as Binomial
from candelabra.distributions.categorical import Categorical as Categorical
from candelabra.distributions.cauchy import Cauchy as Cauchy
from candelabra.distributions.chi2 import Chi2 as Chi2
from candelabra.distributions.constraint_registry import biject_to as biject_to
from candelabra.distributions.constraint_registry import transform_to as transform_to
from candelabra.distributions.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from candelabra.distributions.dirichlet import Dirichlet as Dirichlet
from candelabra.distributions.distribution import Distribution as Distribution
from candelabra.distributions.exp_family import ExponentialFamily as ExponentialFamily
from candelabra.distributions.exponential import Exponential as Exponential
from candelabra.distributions.fishersnedecor import FisherSnedecor as FisherSnedecor
from candelabra.distributions.gamma import Gamma as Gamma
from candelabra.distributions.generalized_pareto import GeneralizedPareto as GeneralizedPareto
from candelabra.distributions.geometric import Geometric as Geometric
from candelabra.distributions.gumbel import Gumbel as Gumbel
from candelabra.distributions.half_cauchy import HalfCauchy as HalfCauchy
from candelabra.distributions.half_normal import HalfNormal as HalfNormal
from candelabra.distributions.independent import Independent as Independent
from candelabra.distributions.inverse_gamma import InverseGamma as InverseGamma
from candelabra.distributions.kl import kl_divergence as kl_divergence
from candelabra.distributions.kl import register_kl as register_kl
from candelabra.distributions.kumaraswamy import Kumaraswamy as Kumaraswamy
from candelabra.distributions.laplace import Laplace as Laplace
from candelabra.distributions.lkj_cholesky import LKJCholesky as LKJCholesky
from candelabra.distributions.log_normal import LogNormal as LogNormal
from candelabra.distributions.logistic_normal import LogisticNormal as LogisticNormal
from candelabra.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal
from candelabra.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from candelabra.distributions.multinomial import Multinomial as Multinomial
from candelabra.distributions.multivariate_normal import MultivariateNormal as MultivariateNormal
from candelabra.distributions.negative_binomial import NegativeBinomial as NegativeBinomial
from candelabra.distributions.normal import Normal as Normal
from candelabra.distributions.one_hot_categorical import OneHotCategorical as OneHotCategorical
from candelabra.distributions.one_hot_categorical import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from candelabra.distributions.pareto import Pareto as Pareto
from candelabra.distributions.poisson import Poisson as Poisson
from candelabra.distributions.relaxed_bernoulli import RelaxedBernoulli as RelaxedBernoulli
from candelabra.distributions.relaxed_categorical import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from candelabra.distributions.studentT import StudentT as StudentT
from candelabra.distributions.transformed_distribution import TransformedDistribution as TransformedDistribution
from candelabra.distributions.transforms import AbsTransform as AbsTransform
from candelabra.distributions.transforms import AffineTransform as AffineTransform
from candelabra.distributions.transforms import CatTransform as CatTransform
from candelabra.distributions.transforms import ComposeTransform as ComposeTransform
from candelabra.distributions.transforms import CorrCholeskyTransform as CorrCholeskyTransform
from candelabra.distributions.transforms import CumulativeDistributionTransform as CumulativeDistributionTransform
from candelabra.distributions.transforms import ExpTransform as ExpTransform
from candelabra.distributions.transforms import IndependentTransform as IndependentTransform
from candelabra.distributions.transforms import LowerCholeskyTransform as LowerCholeskyTransform
from candelabra.distributions.transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from candelabra.distributions.transforms import PowerTransform as PowerTransform
from candelabra.distributions.transforms import ReshapeTransform as ReshapeTransform
from candelabra.distributions.transforms import SigmoidTransform as SigmoidTransform
from candelabra.distributions.transforms import SoftmaxTransform as SoftmaxTransform
from candelabra.distributions.transforms import SoftplusTransform as SoftplusTransform
from candelabra.distributions.transforms import StackTransform as StackTransform
from candelabra.distributions.transforms import StickBreakingTransform as StickBreakingTransform
from candelabra.distributions.transforms import TanhTransform as TanhTransform
from candelabra.distributions.transforms import Transform as Transform
from candelabra.distributions.transforms import identity_transform as identity_transform
from candelabra.distributions.uniform import Uniform as Uniform
from candelabra.distributions.von_mises import VonMises as VonMises
from candelabra.distributions.weibull import Weibull as Weibull
from candelabra.distributions.wishart import Wishart as Wishart

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "identity_transform", "kl_divergence",
    "register_kl", "transform_to", "transforms",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
