"""Instance norms: values, running statistics, states, warnings, errors."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd import gradcheck
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

NORMS = [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_each_channel_of_each_sample_gets_mean_0_and_variance_1(rank: int) -> None:
    """Values are (x - mean) / sqrt(var + eps), with and without a batch dim, in training and evaluation."""
    layer = NORMS[rank - 1](3, eps=0.25, dtype=cd.float64)
    x = normal(2, 3, *[4, 3, 2][:rank])
    axes = tuple(range(2, 2 + rank))
    expected = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.25)
    for training in (True, False):
        layer.train(training)
        np.testing.assert_allclose(array(layer(tensor(x))), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(array(layer(tensor(x[1]))), expected[1], rtol=1e-10, atol=1e-12)
    strided = tensor(np.ascontiguousarray(np.moveaxis(x, 1, -1))).movedim(-1, 1)
    np.testing.assert_allclose(array(layer(strided)), expected, rtol=1e-10, atol=1e-12)
    assert layer(tensor(x[:0])).shape == (0, *x.shape[1:])
    assert gradcheck(layer, (tensor(x, True),))


def test_running_statistics_are_means_over_the_batch() -> None:
    """Training moves them towards the mean over the samples of means and unbiased variances; evaluation uses them."""
    layer = nn.InstanceNorm1d(2, momentum=0.25, affine=True, track_running_stats=True, dtype=cd.float64)
    x = normal(3, 2, 5)
    layer(tensor(x))
    mean, variance = 0.25 * x.mean(2).mean(0), 0.75 + 0.25 * x.var(2, ddof=1).mean(0)
    np.testing.assert_allclose(array(layer.running_mean), mean, rtol=1e-12)
    np.testing.assert_allclose(array(layer.running_var), variance, rtol=1e-12)
    expected = (x - mean[:, None]) / np.sqrt(variance[:, None] + layer.eps)
    np.testing.assert_allclose(array(layer.eval()(tensor(x))), expected, rtol=1e-10)
    assert layer.num_batches_tracked.item() == 0  # as in PyTorch: only batch norms count


def test_states_and_printed_forms() -> None:
    """By default there are no parameters and no buffers; the printed form is PyTorch's."""
    assert dict(nn.InstanceNorm2d(3).state_dict()) == {}
    full = nn.InstanceNorm3d(3, affine=True, track_running_stats=True)
    assert list(full.state_dict()) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert repr(nn.InstanceNorm2d(3)) == (
        "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)"
    )
    without = nn.InstanceNorm1d(3, affine=True, bias=False)
    assert list(without.state_dict()) == ["weight"]


def test_older_states_with_running_statistics_are_reported() -> None:
    """A state without version whose running statistics the layer does not track raises RuntimeError."""
    state = dict(nn.InstanceNorm1d(2, track_running_stats=True).state_dict())
    with pytest.raises(
        RuntimeError, match=r'stats buffer\(s\) "running_mean" and "running_var" for InstanceNorm1d with'
    ):
        nn.InstanceNorm1d(2).load_state_dict(state)


@pytest.mark.parametrize(
    ("layer", "shape", "text"),
    [
        (nn.InstanceNorm1d(2), (2, 2, 2, 2), "expected 2D or 3D input (got 4D input)"),
        (nn.InstanceNorm2d(2), (2, 2), "expected 3D or 4D input (got 2D input)"),
        (nn.InstanceNorm3d(2), (2, 2, 2), "expected 4D or 5D input (got 3D input)"),
        (
            nn.InstanceNorm1d(2, affine=True), (4, 3, 5),
            "expected input's size at dim=1 to match num_features (2), but got: 3.",
        ),
        (
            nn.InstanceNorm1d(2, affine=True), (3, 5),
            "expected input's size at dim=0 to match num_features (2), but got: 3.",
        ),
        (nn.InstanceNorm1d(2), (3, 2, 1), "Expected more than 1 spatial element when training, got input size"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused(layer: Any, shape: tuple[int, ...], text: str) -> None:
    """Wrong numbers of dims, of channels and of elements raise ValueError with PyTorch's text."""
    with pytest.raises(ValueError, match=re.escape(text)):
        layer(cd.ones(*shape))


def test_another_number_of_channels_warns_without_weights() -> None:
    """Without weight and bias num_features is not used, and a different number of channels warns."""
    with pytest.warns(UserWarning, match="input's size at dim=1 does not match num_features. You can silence"):
        assert nn.InstanceNorm1d(2)(cd.ones(2, 3, 4)).shape == (2, 3, 4)


def test_the_function_refuses_statistics_that_do_not_fit() -> None:
    """F.instance_norm needs both running statistics or none, and both without the input's statistics."""
    x = cd.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match="Expected running_mean and running_var to be defined when use_input_stats"):
        F.instance_norm(x, use_input_stats=False)
    with pytest.raises(ValueError, match="running_mean and running_var must either both be None or neither be None"):
        F.instance_norm(x, cd.ones(3), None)
    with pytest.raises(RuntimeError, match="running_var should contain 3 elements not 2"):
        F.instance_norm(x, cd.ones(3), cd.ones(2))
    with pytest.raises(ValueError, match="Expected more than 1 spatial element when training, got input size"):
        F.instance_norm(cd.ones(3))
