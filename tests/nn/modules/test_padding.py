"""Padding modules against NumPy's modes: every module, printing, errors."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn

from tests.nn.network_samples import array, normal, tensor

MODES = {
    "Constant": {"mode": "constant", "constant_values": 1.5},
    "Zero": {"mode": "constant"},
    "Reflection": {"mode": "reflect"},
    "Replication": {"mode": "edge"},
    "Circular": {"mode": "wrap"},
}
CASES = [(kind, rank) for kind in MODES for rank in (1, 2, 3)]


def padding_module(kind: str, rank: int, padding: Any) -> nn.Module:
    """Return a padding module."""
    module: nn.Module = getattr(nn, f"{kind}Pad{rank}d")(padding, *([1.5] if kind == "Constant" else []))
    return module


@pytest.mark.parametrize(("kind", "rank"), CASES)
def test_padding_is_that_of_numpy(kind: str, rank: int) -> None:
    """One size for all sides, and one per side with the last dim first, agree with numpy.pad."""
    x = normal(2, 2, *[4, 3, 4][:rank])
    each = (1, 2, 0, 1, 2, 1)[: 2 * rank]
    sides = [(each[2 * i], each[2 * i + 1]) for i in reversed(range(rank))]
    options: Any = MODES[kind]
    module = padding_module(kind, rank, each)
    assert array(module(tensor(x))).tolist() == np.pad(x, [(0, 0), (0, 0), *sides], **options).tolist()
    whole = [(0, 0), (0, 0), *[(2, 2)] * rank]
    assert array(padding_module(kind, rank, 2)(tensor(x))).tolist() == np.pad(x, whole, **options).tolist()


@pytest.mark.parametrize(("kind", "rank"), CASES)
def test_padding_takes_inputs_without_batch_strided_ones_and_empty_batches(kind: str, rank: int) -> None:
    """Without a batch dim the values are the same; other strides do not matter; a batch may be empty."""
    module = padding_module(kind, rank, 1)
    x = tensor(normal(2, 3, *[3] * rank))
    expected = module(x)
    assert module(x[0]).tolist() == expected[0].tolist()
    assert module(x.transpose(0, -1).contiguous().transpose(0, -1)).tolist() == expected.tolist()
    assert module(x[:0]).shape == (0, *expected.shape[1:])


def test_negative_sizes_remove_elements() -> None:
    """A constant padding of negative size crops, as in PyTorch."""
    x = cd.arange(12.0).reshape(1, 3, 4)
    assert nn.ConstantPad2d((-1, -1, 0, 1), 9.0)(x).tolist() == [[[1, 2], [5, 6], [9, 10], [9, 9]]]
    assert nn.ZeroPad1d((-2, 1))(x).tolist() == [[[2, 3, 0], [6, 7, 0], [10, 11, 0]]]


def test_padding_prints_its_sizes_and_has_no_state() -> None:
    """The printed forms are PyTorch's: sizes, and the value of a constant padding."""
    assert repr(nn.ReflectionPad1d(2)) == "ReflectionPad1d((2, 2))"
    assert repr(nn.ReplicationPad2d((1, 2, 3, 4))) == "ReplicationPad2d((1, 2, 3, 4))"
    assert repr(nn.CircularPad3d(1)) == "CircularPad3d((1, 1, 1, 1, 1, 1))"
    assert repr(nn.ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)"
    assert repr(nn.ZeroPad2d([1, 1, 2, 0])) == "ZeroPad2d((1, 1, 2, 0))"
    assert dict(nn.ZeroPad3d(1).state_dict()) == {}
    assert isinstance(nn.ZeroPad1d(1), nn.ConstantPad1d)


@pytest.mark.parametrize(("rank", "dims"), [(1, "2D or 3D"), (2, "3D or 4D"), (3, "4D or 5D")])
def test_circular_padding_refuses_other_numbers_of_dims(rank: int, dims: str) -> None:
    """CircularPad1d to 3d raise ValueError with PyTorch's text for an input of too many dims."""
    with pytest.raises(ValueError, match=re.escape(f"expected {dims} input (got {rank + 3}D input)")):
        padding_module("Circular", rank, 1)(cd.ones(*[2] * (rank + 3)))


def test_reflection_refuses_more_than_the_input_has() -> None:
    """A reflection as wide as the input raises RuntimeError."""
    with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
        nn.ReflectionPad1d(3)(cd.ones(1, 1, 3))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("rank", "pad"), [(1, (1, 1)), (5, (1, 1)), (2, (1, 1, 1, 1)), (3, (0,) * 6)])
def test_modes_that_read_the_input_take_spatial_dims_only(mode: str, rank: int, pad: tuple[int, ...]) -> None:
    """Two sizes need two or three dims, four sizes three or four, six sizes four or five, as in PyTorch."""
    text = f"Padding size {len(pad)} is not supported for {rank}D input tensor.\nSupported combinations for"
    with pytest.raises(NotImplementedError, match=re.escape(text)):
        nn.functional.pad(cd.ones(*[3] * rank), pad, mode)
