"""candelabra.nn.grad: the gradients of convolutions for sizes that are given."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F
from candelabra.nn import grad

from tests.nn.network_samples import array, normal, tensor


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_are_those_of_autograd(rank: int) -> None:
    """conv*_input and conv*_weight equal autograd's gradients, for each size that gives the same output."""
    for size in (6, 7):
        x, w = tensor(normal(2, 4, *[size] * rank), True), tensor(normal(6, 2, *[3] * rank), True)
        geometry: Any = (2, 1, 1, 2)
        out = getattr(F, f"conv{rank}d")(x, w, None, *geometry)
        g = tensor(normal(*out.shape, seed=1))
        to_input, to_weight = cd.autograd.grad(out, (x, w), g)
        got_input = getattr(grad, f"conv{rank}d_input")(x.shape, w, g, *geometry)
        got_weight = getattr(grad, f"conv{rank}d_weight")(x, w.shape, g, *geometry)
        np.testing.assert_allclose(array(got_input), array(to_input), rtol=1e-12)
        np.testing.assert_allclose(array(got_weight), array(to_weight), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: grad.conv2d_input((2, 4, 4), cd.ones(1, 2, 3, 3), cd.ones(1, 1, 2, 2)),
            "Expected 4-dimensional sizes of input and weight, but got [2, 4, 4] and [1, 2, 3, 3]",
        ),
        (
            lambda: grad.conv1d_input((1, 2, 5), cd.ones(1, 2, 2), cd.ones(1, 1, 3)),
            "Expected grad_output of size [1, 1, 4], but got [1, 1, 3]",
        ),
        (
            lambda: grad.conv1d_weight(cd.ones(1, 2, 5), (1, 3, 2), cd.ones(1, 1, 4)),
            "expected input[1, 2, 5] to have 3 channels, but got 2 channels instead",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call: Any, text: str) -> None:
    """Sizes that no convolution has raise RuntimeError."""
    with pytest.raises(RuntimeError, match=re.escape(text)):
        call()
