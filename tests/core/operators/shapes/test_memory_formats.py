"""Memory formats."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


def test_channels_may_lie_last() -> None:
    """``contiguous``, ``clone``, ``to`` and the factories apply a memory format; values do not change."""
    x, last = ramp(2, 3, 4, 5), cd.channels_last
    for y in (x.contiguous(memory_format=last), x.clone(memory_format=last), x.to(memory_format=last)):
        assert y.stride() == (60, 1, 15, 3)
        assert y.is_contiguous(memory_format=last)
        assert not y.is_contiguous()
        assert (y == x).all()
        assert y.contiguous(memory_format=last) is y
        assert y.contiguous().stride() == x.stride()
    assert cd.empty(2, 3, 4, 5, memory_format=last).stride() == (60, 1, 15, 3)
    assert cd.zeros_like(x, memory_format=cd.preserve_format).stride() == x.stride()
    assert cd.ones(2, 2, 3, 4, 5).contiguous(cd.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    assert cd.rand(1, 2, 3, 4, memory_format=last, requires_grad=True).is_leaf
    for d in (x, x.double()):  # Also if only the memory format changes.
        assert d.double(memory_format=last).stride() == (60, 1, 15, 3)
    assert repr(last) == "candelabra.channels_last"
    assert x.layout is cd.strided


def test_formats_that_do_not_apply_are_refused() -> None:
    """Channels last requires four dims, and invalid formats and layouts are errors."""
    with pytest.raises(RuntimeError, match=r"required rank 4 tensor to use candelabra\.channels_last format"):
        cd.ones(2).contiguous(memory_format=cd.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        cd.ones(2).contiguous(memory_format=cd.preserve_format)
    with pytest.raises(TypeError, match=r"memory_format must be a candelabra\.memory_format, not int"):
        cd.ones(2).clone(memory_format=3)
    with pytest.raises(TypeError, match=r"zeros\(\): argument 'layout' must be candelabra.layout, not str"):
        cd.zeros(2, layout="sparse")
    with pytest.raises(RuntimeError, match=r"layout candelabra.channels_last is not supported"):
        cd.zeros(2, layout=cd.channels_last)
