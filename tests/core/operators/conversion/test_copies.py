"""Copies of tensors, and copies to tensors."""

from __future__ import annotations

import candelabra as cd
import pytest

DEVICES = ["lantern:0", "lantern:1", "ember:0"]


def test_copy_casts_broadcasts_and_returns_the_target() -> None:
    """``copy_`` accepts any dtype, any shape that broadcasts, and Python numbers."""
    x = cd.zeros(2, 3, dtype=cd.int32)
    assert x.copy_(cd.tensor([1.5, 2.5, 3.5])) is x
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    x[:, 0].copy_(cd.tensor(9))
    assert x.tolist() == [[9, 2, 3], [9, 2, 3]]
    assert x.copy_(4).tolist() == [[4, 4, 4], [4, 4, 4]]
    assert x.copy_(x) is x
    with pytest.raises(TypeError, match=r"copy_\(\): argument 'other' \(position 1\) must be Tensor, not str"):
        x.copy_("x")


def test_fill_casts_the_number() -> None:
    """``fill_`` and ``copy_`` convert a number to the tensor's dtype, or raise if the dtype cannot hold it."""
    assert cd.zeros(2, dtype=cd.bool).fill_(3).tolist() == [True, True]
    assert cd.zeros(2, dtype=cd.int8).fill_(2.75).tolist() == [2, 2]
    assert cd.zeros(2, dtype=cd.complex64).fill_(1).tolist() == [1, 1]
    assert cd.zeros(2, dtype=cd.int8).fill_(cd.tensor(2.75)).tolist() == [2, 2]
    assert cd.zeros(2, dtype=cd.bool).copy_(2.5).tolist() == [True, True]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8 without overflow"):
        cd.zeros(2, dtype=cd.int8).fill_(300)
    with pytest.raises(TypeError, match=r"must be real number, not complex"):
        cd.zeros(2).fill_(1j)


def test_copy_of_overlapping_memory_reads_before_it_writes() -> None:
    """Source and target may be overlapping views."""
    x = cd.arange(5)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("device", DEVICES)
def test_copy_crosses_devices_and_is_recorded(device: str) -> None:
    """``copy_`` from another device transfers; the source gets the gradient, the overwritten values get none."""
    source = cd.tensor([1.0, 2.0], requires_grad=True)
    before = cd.tensor([5.0, 5.0], device=device, requires_grad=True)
    target = before * 1
    target.copy_(source)
    assert target.tolist() == [1.0, 2.0]
    (target * 3).sum().backward()
    assert source.grad is not None
    assert source.grad.tolist() == [3.0, 3.0]
    assert before.grad is not None
    assert before.grad.tolist() == [0.0, 0.0]


def test_clone_is_recorded_and_contiguous() -> None:
    """A clone has its own memory in C order, and propagates its gradient."""
    x = cd.ones(2, 3, requires_grad=True)
    y = x.t().clone(memory_format=None)
    assert y.is_contiguous()
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 3)
