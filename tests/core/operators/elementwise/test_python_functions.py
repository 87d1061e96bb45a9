"""A Python function applied to every element."""

from __future__ import annotations

import candelabra as cd
import pytest


def test_python_functions_at_every_element() -> None:
    """``apply_``, ``map_`` and ``map2_`` work in place, on tensors that do not require grad."""
    x = cd.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v + 1) is x
    assert x.map_(cd.tensor([10.0, 20.0]), lambda a, b: a * b).tolist() == [[20.0, 60.0], [40.0, 100.0]]
    assert x.map2_(x, x, lambda a, b, c: a + b - c).tolist() == [[20.0, 60.0], [40.0, 100.0]]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        x.requires_grad_().apply_(abs)
