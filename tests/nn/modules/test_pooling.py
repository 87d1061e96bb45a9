"""Pooling layers: functions, repr, state, and unpooling."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

REPRS = [
    (nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
    (nn.AvgPool2d(3), "AvgPool2d(kernel_size=3, stride=3, padding=0)"),
    (nn.AdaptiveMaxPool2d((3, None)), "AdaptiveMaxPool2d(output_size=(3, None))"),
    (nn.LPPool1d(2, 3), "LPPool1d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"),
    (
        nn.LPPool2d(1.5, (3, 4), stride=2, ceil_mode=True),
        "LPPool2d(norm_type=1.5, kernel_size=(3, 4), stride=2, ceil_mode=True)",
    ),
    (nn.FractionalMaxPool2d(2, 3), "FractionalMaxPool2d()"),
    (nn.MaxUnpool1d(2), "MaxUnpool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
    (nn.MaxUnpool2d((2, 3), (2, 1), 1), "MaxUnpool2d(kernel_size=(2, 3), stride=(2, 1), padding=(1, 1))"),
    (nn.MaxUnpool3d(2), "MaxUnpool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0))"),
]


@pytest.mark.parametrize(("layer", "shown"), REPRS)
def test_repr_is_that_of_torch(layer: Any, shown: str) -> None:
    """The arguments are shown as PyTorch 2.13 shows them."""
    assert repr(layer) == shown


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_layers_call_their_functions(rank: int) -> None:
    """Each layer gives the numbers of its function with its arguments."""
    x = tensor(np.abs(normal(2, 3, *[7] * rank)))
    for kind, args in (
        ("AdaptiveMaxPool", (3,)),
        ("AdaptiveAvgPool", (3,)),
        ("LPPool", (2, 2)),
        ("AvgPool", (3, 2, 1)),
    ):
        layer = getattr(nn, f"{kind}{rank}d")(*args)
        names = {"AdaptiveMaxPool": "adaptive_max", "AdaptiveAvgPool": "adaptive_avg", "LPPool": "lp", "AvgPool": "avg"}
        function = getattr(F, f"{names[kind]}_pool{rank}d")
        np.testing.assert_array_equal(array(layer(x)), array(function(x, *args)))
        assert layer.state_dict() == {}
    values, indices = getattr(nn, f"AdaptiveMaxPool{rank}d")(2, return_indices=True)(x)
    assert indices.dtype is cd.int64
    assert values.shape == indices.shape


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_inverts_pooling(rank: int) -> None:
    """The maxima return to their positions; output_size selects among the sizes that pool to the same one."""
    unpool = getattr(nn, f"MaxUnpool{rank}d")(2)
    for size in (6, 7):
        x = tensor(normal(2, 3, *[size] * rank))
        values, indices = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)(x)
        out = unpool(values, indices) if size == 6 else unpool(values, indices, output_size=x.shape)
        assert out.shape == x.shape
        at = array(out) != 0
        np.testing.assert_array_equal(array(out)[at], array(x)[at])
        assert at.sum() == values.numel()


def test_fractional_layers_keep_given_positions_as_a_buffer() -> None:
    """Positions are part of the state, as in PyTorch; without them the state is empty and positions are drawn."""
    x, samples = tensor(normal(2, 3, 9, 9)), tensor(np.random.default_rng(1).uniform(size=(2, 3, 2)))
    layer = nn.FractionalMaxPool2d(2, output_size=4, _random_samples=samples)
    assert list(layer.state_dict()) == ["_random_samples"]
    np.testing.assert_array_equal(array(layer(x)), array(F.fractional_max_pool2d(x, 2, 4, _random_samples=samples)))
    free = nn.FractionalMaxPool3d(2, output_ratio=0.5, return_indices=True)
    assert free.state_dict() == {}
    values, indices = free(tensor(normal(1, 2, 6, 7, 8)))
    assert values.shape == indices.shape == (1, 2, 3, 3, 4)


@pytest.mark.parametrize("layer", [nn.FractionalMaxPool2d, nn.FractionalMaxPool3d])
def test_fractional_layers_refuse_contradictions(layer: Any) -> None:
    """One of size and ratio is required, and ratios are between 0 and 1."""
    with pytest.raises(ValueError, match=f"{layer.__name__} requires specifying either an output size, or a pooling"):
        layer(2)
    with pytest.raises(ValueError, match="only one of output_size and output_ratio may be specified"):
        layer(2, 3, 0.5)
    with pytest.raises(ValueError, match=r"output_ratio must be between 0 and 1 \(got 1.5\)"):
        layer(2, output_ratio=1.5)
