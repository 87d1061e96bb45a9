"""Fusion of batch norms into the layers before them."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import utils

from tests.nn.network_samples import array, normal, tensor


def used(norm: Any, like: Any) -> Any:
    """Return the norm in evaluation mode, with statistics and parameters that are not the first ones."""
    norm(like * 2 + 1)
    with cd.no_grad():
        for parameter in norm.parameters():
            parameter.uniform_(0.5, 2)
    return norm.eval()


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        (lambda: nn.Conv1d(2, 4, 3, groups=2), nn.BatchNorm1d, (3, 2, 6)),
        (lambda: nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d, (3, 2, 5, 5)),
        (lambda: nn.ConvTranspose2d(2, 4, 3), nn.BatchNorm2d, (3, 2, 3, 3)),
        (lambda: nn.Linear(2, 4), nn.BatchNorm1d, (5, 2)),
        (lambda: nn.Linear(2, 4, bias=False), nn.BatchNorm1d, (5, 2)),
    ],
)
def test_one_layer_computes_what_two_did(layer: Any, norm: Any, shape: tuple[int, ...], affine: bool) -> None:
    """The fused copy gives bn(layer(x)), and the layer itself is unchanged."""
    first = layer().double().eval()
    x = tensor(normal(*shape))
    second = used(norm(4, affine=affine).double(), first(x).detach())
    expected = array(second(first(x)))
    before = first.weight.tolist()
    if isinstance(first, nn.Linear):
        fused = utils.fuse_linear_bn_eval(first, second)
    else:
        fused = utils.fuse_conv_bn_eval(first, second, transpose=isinstance(first, nn.ConvTranspose2d))
    np.testing.assert_allclose(array(fused(x)), expected, rtol=1e-10, atol=1e-12)
    assert type(fused) is type(first)
    assert first.weight.tolist() == before
    assert isinstance(fused.weight, nn.Parameter)
    assert fused.bias.requires_grad == (first.bias is not None)


def test_weights_keep_their_dtype() -> None:
    """Weights of float16 stay float16 with float32 statistics."""
    args = (cd.zeros(2), cd.ones(2), 1e-5, None, None)
    weight, bias = utils.fuse_conv_bn_weights(cd.ones(2, 1, 1).half(), None, *args)
    assert (weight.dtype, bias.dtype) == (cd.float16, cd.float16)
    weight, bias = utils.fuse_linear_bn_weights(cd.ones(2, 3), cd.ones(2).half(), *args)
    assert (weight.dtype, bias.dtype) == (cd.float32, cd.float16)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: utils.fuse_conv_bn_eval(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1).eval()), "Fusion only for eval!"),
        (
            lambda: utils.fuse_conv_bn_eval(
                nn.Conv1d(1, 1, 1).eval(), nn.BatchNorm1d(1, track_running_stats=False).eval()
            ),
            "bn.running_mean and bn.running_var must not be None",
        ),
        (
            lambda: utils.fuse_linear_bn_eval(nn.Linear(1, 3).eval(), nn.BatchNorm1d(2).eval()),
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features=3 and",
        ),
    ],
)
def test_what_cannot_be_fused_is_refused(call: Any, text: str) -> None:
    """Training mode, missing statistics and other channels raise AssertionError, as in PyTorch."""
    with pytest.raises(AssertionError, match=text):
        call()
