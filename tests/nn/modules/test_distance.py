"""Distances and angles of corresponding vectors."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor


def test_pairwise_distance() -> None:
    """It is the p-norm of the differences plus eps, along the last dim, which may be kept."""
    a, b = normal(3, 4), normal(3, 4, seed=1)
    expected = (np.abs(a - b + 1e-6) ** 3).sum(1, keepdims=True) ** (1 / 3)
    module = nn.PairwiseDistance(3.0, keepdim=True)
    np.testing.assert_allclose(array(module(tensor(a), tensor(b))), expected, rtol=1e-12)
    check_gradients(module, a, b)
    assert nn.PairwiseDistance()(tensor(a[:0]), tensor(b[:0])).shape == (0,)
    assert (module.norm, module.eps, module.keepdim) == (3.0, 1e-6, True)


def test_cosine_similarity() -> None:
    """It is the cosine along ``dim``; vectors shorter than eps have a cosine near 0."""
    a, b = normal(3, 4), normal(3, 4, seed=1)
    expected = (a * b).sum(0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    module = nn.CosineSimilarity(dim=0)
    np.testing.assert_allclose(array(module(tensor(a), tensor(b))), expected, rtol=1e-12)
    check_gradients(module, a, b)
    assert nn.CosineSimilarity()(cd.zeros(2, 3), cd.ones(2, 3)).tolist() == [0, 0]


def test_printed_forms_are_names() -> None:
    """As in PyTorch, the printed form shows no arguments, and the state is empty."""
    assert repr(nn.PairwiseDistance(1.0)) == "PairwiseDistance()"
    assert repr(nn.CosineSimilarity(0)) == "CosineSimilarity()"
    assert not nn.CosineSimilarity().state_dict()


def test_functions_of_networks_are_those_of_the_top_namespace() -> None:
    """F.pdist, F.pairwise_distance and F.cosine_similarity are public in both namespaces."""
    for name in ("pdist", "pairwise_distance", "cosine_similarity"):
        assert getattr(F, name) is getattr(cd, name)
        assert name in F.__all__


def test_sizes_that_do_not_broadcast() -> None:
    """Vectors of different lengths have no distance."""
    with pytest.raises(RuntimeError, match="size of tensor a"):
        nn.PairwiseDistance()(cd.ones(2, 3), cd.ones(2, 2))
