"""Activations: random slopes, softmax over channels, in-place forms, samples of categories."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

X = normal(3, 4)


def test_random_slopes() -> None:
    """RReLU draws slopes in training and takes their mean in evaluation; its printed form is PyTorch's."""
    module = nn.RReLU(0.1, 0.4)
    assert repr(module) == "RReLU(lower=0.1, upper=0.4)"
    assert repr(nn.RReLU(inplace=True)) == "RReLU(lower=0.125, upper=0.3333333333333333, inplace=True)"
    np.testing.assert_allclose(array(module.eval()(tensor(X))), np.where(X > 0, X, 0.25 * X), rtol=1e-12)
    slopes = array(module.train()(tensor(X)))[X < 0] / X[X < 0]
    assert ((slopes >= 0.1) & (slopes <= 0.4)).all()
    assert len(set(slopes)) == len(slopes)
    x = tensor(X)
    assert nn.RReLU(inplace=True)(x) is x


def test_softmax_over_channels() -> None:
    """The sum over the third dim from the end is 1, with a batch and without."""
    module = nn.Softmax2d()
    assert repr(module) == "Softmax2d()"
    for shape in ((2, 3, 4, 5), (3, 4, 5)):
        found = module(tensor(normal(*shape)))
        np.testing.assert_allclose(array(found.sum(-3)), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="Softmax2d: expected input to be 3D or 4D, got 2D instead"):
        module(tensor(X))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("relu", ()), ("elu", (0.5,)), ("leaky_relu", (0.2,)), ("hardtanh", (-0.3, 0.6)), ("selu", ()), ("celu", (0.7,)),
     ("threshold", (0.1, 2.0)), ("rrelu", (0.2, 0.4))],
)  # fmt: skip
def test_in_place_functions(name: str, arguments: tuple[Any, ...]) -> None:
    """The input gets the values of the function and is returned; its gradient is that of the function."""
    want = getattr(F, name)(tensor(X), *arguments)
    x = tensor(X)
    assert getattr(F, name + "_")(x, *arguments) is x
    assert x.tolist() == want.tolist()
    gradients = []
    for function in (getattr(F, name), getattr(F, name + "_")):
        leaf = tensor(X, True)
        function(leaf.clone(), *arguments).sum().backward()
        gradients.append(leaf.grad.tolist())
    assert gradients[0] == gradients[1]


MODULES = [
    nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish, nn.Hardsigmoid, nn.Hardswish, nn.LeakyReLU, nn.ELU, nn.CELU,
    nn.Hardtanh, nn.RReLU,
]  # fmt: skip


@pytest.mark.parametrize("kind", MODULES, ids=[kind.__name__ for kind in MODULES])
def test_modules_write_over_their_input(kind: Any) -> None:
    """With ``inplace=True`` the input is returned and has the values of the module, also if it is not contiguous."""
    module = kind(inplace=True).eval()
    assert repr(module).endswith("inplace=True)")
    want = kind().eval()(tensor(X))
    for x in (tensor(X), tensor(X.T.copy()).t()):
        assert module(x) is x
        assert x.tolist() == want.tolist()


def test_samples_of_categories() -> None:
    """Hard samples are one-hot, have the gradient of relaxed ones, and the frequencies of softmax."""
    logits = cd.tensor([0.0, 1.0, 2.0])
    cd.manual_seed(0)
    hard = F.gumbel_softmax(logits.expand(20_000, 3), hard=True)
    assert set(hard.unique().tolist()) == {0.0, 1.0}
    # Three standard deviations of a frequency of 20,000 samples are at most 0.011.
    np.testing.assert_allclose(array(hard.mean(0)), array(logits.softmax(0)), atol=0.011)
    found = []
    for choice in (True, False):
        cd.manual_seed(1)
        x = tensor(X, True)
        out = F.gumbel_softmax(x, 0.7, choice, dim=0)
        np.testing.assert_allclose(array(out.detach()).sum(0), 1.0, rtol=1e-12)
        (out * tensor(normal(3, 4, seed=5))).sum().backward()
        found.append(array(x.grad))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-15)
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect"):
        F.gumbel_softmax(logits, eps=1e-3)
