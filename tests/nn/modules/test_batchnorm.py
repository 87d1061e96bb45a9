"""Batch norms: eps, older states, SyncBatchNorm and the conversion to it."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F
from candelabra.nn.modules.batchnorm import _BatchNorm, _NormBase

from tests.nn.network_samples import array, normal, tensor


@pytest.mark.parametrize("eps", [0.0, -1e-5])
def test_training_refuses_an_eps_that_is_not_positive(eps: float) -> None:
    """In training an eps of 0 or less raises ValueError."""
    layer = nn.BatchNorm1d(2, eps=eps)
    with pytest.raises(ValueError, match=f"batch_norm eps must be positive during training, but got {eps}"):
        layer(cd.ones(3, 2))


def test_evaluation_refuses_a_negative_eps() -> None:
    """In evaluation an eps of 0 is accepted, and a negative one raises ValueError, as in PyTorch."""
    assert nn.BatchNorm1d(2, eps=0.0).eval()(cd.ones(3, 2)).shape == (3, 2)
    with pytest.raises(ValueError, match=r"batch_norm eps must be non-negative, but got -1e-05"):
        nn.BatchNorm1d(2, eps=-1e-5).eval()(cd.ones(3, 2))


def test_the_number_of_values_is_checked_before_eps() -> None:
    """One value per channel is reported first, as in PyTorch."""
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training, got input size"):
        F.batch_norm(cd.ones(1, 2), None, None, training=True, eps=0.0)


@pytest.mark.parametrize(
    ("layer", "shape", "text"),
    [
        (nn.BatchNorm1d(2), (2, 2, 2, 2), "expected 2D or 3D input (got 4D input)"),
        (nn.BatchNorm2d(2), (2, 2, 2), "expected 4D input (got 3D input)"),
        (nn.BatchNorm3d(2), (2, 2, 2, 2), "expected 5D input (got 4D input)"),
        (nn.SyncBatchNorm(2), (2,), "expected at least 2D input (got 1D input)"),
        (nn.SyncBatchNorm(0), (2, 0), "SyncBatchNorm number of input channels should be non-zero"),
    ],
)
def test_batch_norms_refuse_other_numbers_of_dims(layer: Any, shape: tuple[int, ...], text: str) -> None:
    """An input with too few or too many dims raises ValueError with PyTorch's text."""
    with pytest.raises(ValueError, match=re.escape(text)):
        layer(cd.ones(*shape))


def test_the_common_base_has_no_number_of_dims() -> None:
    """A subclass of users says which inputs it takes."""
    with pytest.raises(NotImplementedError, match="_BatchNorm must define _check_input_dim"):
        _BatchNorm(2)(cd.ones(2, 2))


def test_states_without_the_number_of_batches_load() -> None:
    """A state of version 1, or a plain dict, may lack num_batches_tracked: the layer keeps its own."""
    layer = nn.BatchNorm2d(3)
    layer(cd.randn(2, 3, 2, 2))
    state = {key: value for key, value in layer.state_dict().items() if key != "num_batches_tracked"}
    assert list(state) == ["weight", "bias", "running_mean", "running_var"]
    other = nn.BatchNorm2d(3)
    other.load_state_dict(state)
    assert other.num_batches_tracked.item() == 0
    assert other.running_mean.tolist() == layer.running_mean.tolist()
    assert _NormBase._version == 2


def test_sync_batch_norm_is_batch_norm_in_one_process() -> None:
    """SyncBatchNorm gives the values, gradients and running statistics of the batch norm of as many dims."""
    for kind, shape in ((nn.BatchNorm1d, (4, 3)), (nn.BatchNorm2d, (2, 3, 4, 5)), (nn.BatchNorm3d, (2, 3, 2, 2, 2))):
        plain, sync = kind(3, dtype=cd.float64), nn.SyncBatchNorm(3, dtype=cd.float64)
        for training in (True, False):
            x, same = (tensor(normal(*shape), True) for _ in range(2))
            out, expected = sync.train(training)(x), plain.train(training)(same)
            assert out.tolist() == expected.tolist()
            (out * out.detach()).sum().backward()
            (expected * expected.detach()).sum().backward()
            assert x.grad.tolist() == same.grad.tolist()
        assert sync.running_var.tolist() == plain.running_var.tolist()


def test_sync_batch_norm_prints_and_saves_like_the_others() -> None:
    """Printed form and state_dict keys are PyTorch's; the process group is kept."""
    layer = nn.SyncBatchNorm(3, momentum=None, affine=False, process_group="group")
    assert repr(layer) == (
        "SyncBatchNorm(3, eps=1e-05, momentum=None, affine=False, bias=False, track_running_stats=True)"
    )
    assert list(layer.state_dict()) == ["running_mean", "running_var", "num_batches_tracked"]
    assert layer.process_group == "group"


def test_conversion_replaces_every_batch_norm() -> None:
    """convert_sync_batchnorm keeps parameters, buffers, mode and everything that is no batch norm."""
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()), nn.InstanceNorm1d(3)).eval()
    norm = net[1][0]
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net, "group")
    assert converted is net
    made = net[1][0]
    assert isinstance(made, nn.SyncBatchNorm)
    assert (made.weight is norm.weight, made.running_mean is norm.running_mean, made.training) == (True, True, False)
    assert made.process_group == "group"
    assert [type(m) for m in (net[0], net[1][1], net[2])] == [nn.Linear, nn.ReLU, nn.InstanceNorm1d]
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm3d(2, affine=False, track_running_stats=False))
    assert isinstance(alone, nn.SyncBatchNorm)
    assert not alone.state_dict()


def test_non_contiguous_and_empty_batches() -> None:
    """Strides do not matter; an empty batch in training gives an empty result and leaves the statistics."""
    layer = nn.BatchNorm2d(3, dtype=cd.float64)
    x = tensor(normal(4, 5, 2, 3)).permute(0, 3, 1, 2)
    np.testing.assert_allclose(array(layer(x)), array(layer(x.contiguous())), rtol=1e-12)
    before = layer.running_mean.tolist()
    assert layer(x[:0]).shape == (0, 3, 5, 2)
    assert layer.running_mean.tolist() == before
