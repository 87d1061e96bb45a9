"""Attention on the CPU: blocks of queries give what the operators' bodies give."""

from __future__ import annotations

from typing import Any

import candelabra_cpu.attention as kernels
import numpy as np
import pytest
from candelabra.nn._operators.attention import attention, attention_backward
from candelabra_cpu.attention import KERNELS

from tests.nn.network_samples import array, tensor

SHAPES = [
    ((2, 3, 7, 4), (2, 3, 9, 4), (2, 3, 9, 5), (3, 1, 9)),
    ((5, 4), (6, 4), (6, 3), (5, 6)),
    ((2, 1, 8, 2), (3, 8, 2), (3, 8, 2), (2, 1, 1, 8)),
    ((2, 6, 3), (2, 4, 3), (1, 4, 2), None),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=["heads", "matrices", "broadcast", "more queries than keys"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("weights", [1, 20, 150, kernels.WEIGHTS])
def test_blocks_give_the_whole(
    shapes: Any, is_causal: bool, weights: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Blocks of one query, of some queries and of all queries agree with the bodies, also with masked rows."""
    monkeypatch.setattr(kernels, "WEIGHTS", weights)
    q, k, v = (rng.standard_normal(shape) for shape in shapes[:3])
    mask = None if shapes[3] is None else np.where(rng.random(shapes[3]) < 0.4, -np.inf, rng.standard_normal(shapes[3]))
    if mask is not None:
        mask[..., 0, :] = -np.inf
    tensors = [None if x is None else tensor(x) for x in (q, k, v, mask)]
    want = attention.declared(*tensors, is_causal, 0.7)
    found = KERNELS["attention"](q, k, v, mask, is_causal, 0.7)
    np.testing.assert_allclose(found, array(want), rtol=1e-12, atol=1e-14)
    grad = rng.standard_normal(found.shape)
    expected = attention_backward.declared(tensor(grad), *tensors, is_causal, 0.7)
    for one, other in zip(KERNELS["attention_backward"](grad, q, k, v, mask, is_causal, 0.7), expected, strict=True):
        np.testing.assert_allclose(one, array(other), rtol=1e-10, atol=1e-13)


def test_the_record_names_shapes_that_do_not_match() -> None:
    """The kernels raise, and the record then names the shapes."""
    x = tensor(np.zeros((2, 3, 4)))
    with pytest.raises(
        RuntimeError, match=r"attention takes queries .* got shapes \[2, 3, 4\], \[2, 3, 4\] and \[2, 3\]"
    ):
        attention(x, x, tensor(np.zeros((2, 3))), None, False, 1.0)
    with pytest.raises(RuntimeError, match=r"expected a gradient of shape \[2, 3, 4\], got \[1, 3, 4\]"):
        attention_backward(x[:1], x, x, x, None, False, 1.0)
    with pytest.raises(RuntimeError, match=r"attention takes queries .* got shapes \[2, 3, 4\], \[2, 3, 1\] and"):
        attention(x, x[..., :1], x, None, False, 1.0)
