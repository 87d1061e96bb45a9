"""Local response normalization as modules."""

from __future__ import annotations

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
