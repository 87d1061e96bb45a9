"""PixelShuffle, PixelUnshuffle and ChannelShuffle as modules."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra import nn

from tests.nn.network_samples import array, normal, tensor


def test_pixels_come_from_channels_and_go_back() -> None:
    """PixelShuffle interleaves r² channels into r × r blocks, and PixelUnshuffle is its inverse."""
    x = normal(2, 8, 3, 2)
    up, down = nn.PixelShuffle(2), nn.PixelUnshuffle(2)
    expected = x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 4)
    assert array(up(tensor(x))).tolist() == expected.tolist()
    assert array(down(up(tensor(x)))).tolist() == x.tolist()
    assert up(tensor(x.transpose(0, 1, 3, 2).copy()).transpose(2, 3)).tolist() == expected.tolist()
    assert up(cd.empty(0, 8, 3, 2)).shape == (0, 2, 6, 4)


def test_channels_are_taken_from_groups_in_turn() -> None:
    """ChannelShuffle reads the channels as (groups, channels per group) and transposes them."""
    x = normal(2, 6, 3)
    assert array(nn.ChannelShuffle(2)(tensor(x))).tolist() == x[:, [0, 3, 1, 4, 2, 5]].tolist()
    assert nn.ChannelShuffle(3)(cd.empty(0, 6, 2)).shape == (0, 6, 2)


def test_printed_forms() -> None:
    """The printed form has the factor, as PyTorch's."""
    assert repr(nn.PixelShuffle(2)) == "PixelShuffle(upscale_factor=2)"
    assert repr(nn.PixelUnshuffle(3)) == "PixelUnshuffle(downscale_factor=3)"
    assert repr(nn.ChannelShuffle(4)) == "ChannelShuffle(groups=4)"
    assert dict(nn.PixelShuffle(2).state_dict()) == {}


def test_channels_that_do_not_divide_are_refused() -> None:
    """A number of channels that the factor does not divide raises RuntimeError."""
    with pytest.raises(RuntimeError, match="to be divisible by the square of upscale_factor"):
        nn.PixelShuffle(2)(cd.ones(1, 6, 2, 2))
    with pytest.raises(RuntimeError, match="Number of channels must be divisible by groups"):
        nn.ChannelShuffle(4)(cd.ones(1, 6, 2))
