"""Upsample and its variants: functions, attributes, repr and state."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor


def test_layers_call_interpolate() -> None:
    """Each layer gives the numbers of interpolate with its arguments."""
    x = tensor(normal(2, 3, 4, 5))
    for layer, options in (
        (nn.Upsample(7), {"size": 7}),
        (nn.Upsample(scale_factor=1.3, mode="bicubic", recompute_scale_factor=True),
         {"scale_factor": 1.3, "mode": "bicubic", "recompute_scale_factor": True}),
        (nn.Upsample(scale_factor=(2, 1.5), mode="bilinear", align_corners=True),
         {"scale_factor": (2, 1.5), "mode": "bilinear", "align_corners": True}),
        (nn.UpsamplingNearest2d(scale_factor=2), {"scale_factor": 2}),
        (nn.UpsamplingBilinear2d((3, 9)), {"size": (3, 9), "mode": "bilinear", "align_corners": True}),
    ):  # fmt: skip
        np.testing.assert_array_equal(array(layer(x)), array(F.interpolate(x, **options)))
        assert layer.state_dict() == {}


def test_repr_and_attributes_are_those_of_torch() -> None:
    """Factors become floats; repr shows the size or the factor, and the mode."""
    assert repr(nn.Upsample(3)) == "Upsample(size=3, mode='nearest')"
    assert (
        repr(nn.Upsample(scale_factor=(2, 3), mode="bilinear")) == "Upsample(scale_factor=(2.0, 3.0), mode='bilinear')"
    )
    assert repr(nn.UpsamplingNearest2d(3)) == "UpsamplingNearest2d(size=3, mode='nearest')"
    layer = nn.UpsamplingBilinear2d(scale_factor=2)
    assert repr(layer) == "UpsamplingBilinear2d(scale_factor=2.0, mode='bilinear')"
    assert (layer.name, layer.size, layer.scale_factor, layer.align_corners) == (
        "UpsamplingBilinear2d",
        None,
        2.0,
        True,
    )
    assert nn.Upsample(3).recompute_scale_factor is None


def test_a_layer_without_size_and_factor_raises_when_called() -> None:
    """As in PyTorch, the arguments are checked by the call."""
    layer = nn.Upsample()
    with pytest.raises(ValueError, match="either size or scale_factor should be defined"):
        layer(cd.ones(1, 1, 2))
