"""Memory formats of weights, and modules without initialization."""

from __future__ import annotations

import re

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn import utils


def test_the_weights_of_convolutions_change_their_memory_format() -> None:
    """Convolutions of the rank get the format in place, with the same values; other modules stay."""
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Sequential(nn.ConvTranspose2d(2, 3, 2)), nn.Conv3d(2, 3, 2))
    weights = [parameter for name, parameter in net.named_parameters() if name.endswith("weight")]
    values = [w.tolist() for w in weights]
    assert utils.convert_conv2d_weight_memory_format(net, cd.channels_last) is net
    assert [w.is_contiguous() for w in weights] == [False, False, True]
    assert all(w.is_contiguous(memory_format=cd.channels_last) for w in weights[:2])
    utils.convert_conv3d_weight_memory_format(net, cd.channels_last_3d)
    assert weights[2].is_contiguous(memory_format=cd.channels_last_3d)
    assert [w.tolist() for w in weights] == values


def test_a_module_without_initialization_has_its_shapes() -> None:
    """skip_init makes a module on a device, whose parameters are leaves of the right shape and dtype."""
    made = utils.skip_init(nn.Conv1d, 2, 3, kernel_size=4, dtype=cd.float64)
    assert (type(made), made.weight.shape, made.weight.dtype) == (nn.Conv1d, (3, 2, 4), cd.float64)
    assert made.weight.device == cd.get_default_device()
    assert made.weight.requires_grad
    assert utils.skip_init(nn.Linear, 2, 3, device="meta").weight.device.type == "meta"


def test_what_cannot_skip_its_initialization() -> None:
    """Anything but a Module class that takes a device raises RuntimeError."""
    with pytest.raises(RuntimeError, match=re.escape("Expected a Module; got <class 'int'>")):
        utils.skip_init(int)
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg to skip initialization"):
        utils.skip_init(nn.ReLU)
