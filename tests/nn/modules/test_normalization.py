"""Local response normalization as modules."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd import gradcheck

from tests.nn.network_samples import array, normal, tensor


@pytest.mark.parametrize("kind", [nn.LocalResponseNorm, nn.CrossMapLRN2d])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_channels_are_divided_by_the_mean_square_of_their_neighbors(kind: type, size: int) -> None:
    """Values follow the formula, with zeros beyond the first and last channel; gradients agree with differences."""
    x = normal(2, 5, 2, 3)
    padded = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0), (0, 0)])
    means = np.stack([padded[:, i : i + size].sum(1) / size for i in range(5)], 1)
    layer = kind(size, alpha=0.5, beta=0.6, k=2.0)
    np.testing.assert_allclose(array(layer(tensor(x))), x / (2 + 0.5 * means) ** 0.6, rtol=1e-12)
    assert gradcheck(layer, (tensor(x, True),))


def test_printed_forms() -> None:
    """The printed form has size and factors, as PyTorch's."""
    assert repr(nn.LocalResponseNorm(2)) == "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)"
    assert repr(nn.CrossMapLRN2d(2)) == "CrossMapLRN2d(2, alpha=0.0001, beta=0.75, k=1)"
    assert dict(nn.LocalResponseNorm(2).state_dict()) == {}


def test_inputs_without_channels_are_refused() -> None:
    """Too few dims raise ValueError."""
    with pytest.raises(ValueError, match=r"Expected 3D or higher dimensionality input \(got 2 dimensions\)"):
        nn.LocalResponseNorm(2)(cd.ones(2, 2))
    with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 3D instead"):
        nn.CrossMapLRN2d(2)(cd.ones(2, 2, 2))


NORMS: dict[str, Any] = {
    "batch": lambda: nn.BatchNorm1d(3),
    "instance": lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
    "group": lambda: nn.GroupNorm(1, 3),
    "layer": lambda: nn.LayerNorm(4),
}


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16])
def test_half_inputs_with_float32_parameters_give_half_results(kind: str, dtype: Any) -> None:
    """The result has the input's dtype and the value of float32, rounded, in training and evaluation."""
    layer = NORMS[kind]()
    for training in (True, False):
        layer.train(training)
        x = tensor(normal(2, 3, 4).astype(np.float32)).to(dtype)
        out = layer(x)
        assert out.dtype is dtype
        again = NORMS[kind]().train(training)
        if not training:
            again.load_state_dict(layer.state_dict())
        assert out.tolist() == again(x.float()).to(dtype).tolist()
        assert layer(x[:0]).dtype is dtype


@pytest.mark.parametrize("kind", NORMS)
def test_other_mixed_dtypes_are_refused(kind: str) -> None:
    """A float64 input with float32 parameters raises RuntimeError."""
    text = "mixed dtype: all inputs must share same datatype, but the input is candelabra.float64 and a parameter is"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        NORMS[kind]()(cd.ones(2, 3, 4, dtype=cd.float64))


def test_batch_norm_refuses_integers() -> None:
    """An integer input raises NotImplementedError, in evaluation too."""
    with pytest.raises(NotImplementedError, match="\"batch_norm\" not implemented for 'Long'"):
        nn.BatchNorm1d(3).eval()(cd.ones(2, 3, dtype=cd.int64))
