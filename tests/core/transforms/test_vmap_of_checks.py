"""Under ``vmap``: sizes and checks that depend on values, and ``detach_`` in forward mode."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import vmap
from candelabra.distributions import Categorical, MultivariateNormal, Normal
from candelabra.func import grad, jvp

from tests.core.transforms.comparing import check, close, tensor


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_histograms_of_examples_are_counted_one_by_one(rng: np.random.Generator) -> None:
    """Each example has limits of its own, and as many counts as the others; other numbers of counts are refused."""
    counts = cd.tensor([[0, 1, 1], [3, 3, 3]])
    check(lambda x: cd.histc(x, 4), tensor(rng, 3, 20))
    assert vmap(lambda x: x.bincount(minlength=4))(counts).tolist() == [[1, 2, 0, 0], [0, 0, 0, 3]]
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        vmap(cd.bincount)(counts)


def test_distributions_check_the_arguments_of_all_examples(rng: np.random.Generator) -> None:
    """Parameters and values are validated together: the branch is the same for all examples."""
    x, m, s = tensor(rng, 3, 2), tensor(rng, 3, 2), tensor(rng, 3, 2).exp()
    check(lambda x, m, s: Normal(m, s).log_prob(x), x, m, s)
    assert close(vmap(grad(lambda m, x: Normal(m, 1.0).log_prob(x).sum()))(m, x), x - m)
    check(lambda logits: Categorical(logits=logits).entropy(), x)
    scale = tensor(rng, 3, 2, 2).tril(-1) + cd.eye(2, dtype=cd.float64)
    check(lambda x, m, scale: MultivariateNormal(m, scale_tril=scale).log_prob(x), x, m, scale)
    check(lambda x, m, scale: MultivariateNormal(m, scale @ scale.mT).log_prob(x), x, m, scale)
    s[1, 0] = -1
    with pytest.raises(ValueError, match="Expected parameter scale"):
        vmap(lambda m, s, x: Normal(m, s).log_prob(x))(m, s, x)


def test_detach_in_place_removes_the_tangent(rng: np.random.Generator) -> None:
    """As in PyTorch, and as ``detach`` does."""
    x, t = tensor(rng, 3), tensor(rng, 3)
    value, along = jvp(lambda x: (x * 2).detach_() * x, (x,), (t,))
    assert close(value, 2 * x * x)
    assert close(along, 2 * x * t)
    assert close(vmap(lambda x: (x * 2).detach_())(x), 2 * x)
