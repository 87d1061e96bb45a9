"""Conversion of tensors to Python values."""

from __future__ import annotations

import math

import candelabra as cd
import pytest
from candelabra.dtypes import ALL


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_values_come_back_as_they_went_in(d: cd.dtype) -> None:
    """``tolist`` and ``item`` return Python numbers for every dtype and layout."""
    kind = (bool, int, float, complex)[d.category]
    x = cd.tensor([[0, 1, 2], [3, 4, 5]]).to(d)
    want = [[kind(v) for v in row] for row in [[0, 1, 2], [3, 4, 5]]]
    assert x.tolist() == want
    assert x.t().tolist() == [list(column) for column in zip(*want, strict=True)]
    assert x[:, ::2].tolist() == [row[::2] for row in want]
    assert type(x[1, 2].item()) is kind
    assert x[1, 2].tolist() == want[1][2]


def test_lists_of_nothing_keep_their_nesting() -> None:
    """Sizes of zero give empty lists with the nesting of the shape."""
    assert cd.zeros(0).tolist() == []
    assert cd.zeros(2, 0).tolist() == [[], []]
    assert cd.zeros(0, 2).tolist() == []
    assert cd.zeros(1, 2, 0).tolist() == [[[], []]]
    assert cd.zeros(2, 1, 1).tolist() == [[[0.0]], [[0.0]]]


def test_item_needs_one_element() -> None:
    """Any shape with one element is accepted; others are an error."""
    assert cd.ones(1, 1).item() == 1.0
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        cd.ones(2).item()
    with pytest.raises(RuntimeError, match="a Tensor with 0 elements cannot be converted to Scalar"):
        cd.ones(0).item()


def test_pythons_number_protocols() -> None:
    """float, int, complex, index, floor, ceil, trunc, round and divmod work on tensors."""
    x = cd.tensor([2.75])
    assert (float(x), int(x), complex(x)) == (2.75, 2, 2.75 + 0j)
    assert (math.floor(x), math.ceil(x), math.trunc(-x)) == (2, 3, -2)
    assert float(cd.tensor(2 + 0j)) == 2.0
    assert [1, 2, 3][cd.tensor([1])] == 2
    assert [1, 2, 3][cd.tensor(True)] == 2
    assert list(range(cd.tensor(2))) == [0, 1]
    assert round(cd.tensor([1.25, 0.5]), 1).tolist() == pytest.approx([1.2, 0.5])
    assert round(cd.tensor([1.5, 0.5])).tolist() == [2.0, 0.0]
    assert [t.tolist() for t in divmod(cd.tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    assert [t.tolist() for t in divmod(7, cd.tensor([2]))] == [[3], [1]]


def test_number_protocols_refuse_what_python_would() -> None:
    """Several elements, imaginary parts, and fractions as indices raise PyTorch's errors."""
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        float(cd.ones(2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(cd.tensor(1j))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        int(cd.tensor(1j))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(cd.tensor(math.nan))
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][cd.tensor(1.0)]
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][cd.tensor([1, 2])]
