"""Functions that accept a Python number instead of a tensor."""

from __future__ import annotations

import candelabra as cd
import pytest

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "fmod", "copysign")
TENSORS_ONLY = ("maximum", "minimum", "atan2", "logical_and", "logical_or", "logical_xor")


@pytest.mark.parametrize("name", [*COMPARISONS, *TENSORS_ONLY])
def test_the_first_operand_is_a_tensor(name: str) -> None:
    """Only the right operand may be a number, as in PyTorch."""
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor, not float"):
        getattr(cd, name)(2.0, cd.tensor([1.0, 3.0]))
    assert cd.tensor([1.0, 3.0]).__gt__(2.0).tolist() == [False, True]


@pytest.mark.parametrize("name", TENSORS_ONLY)
def test_some_take_tensors_only(name: str) -> None:
    """Both operands must be tensors: ``clamp`` is the function for numbers."""
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'other' \(position 2\) must be Tensor, not float"):
        getattr(cd, name)(cd.tensor([1.0, 3.0]), 2.0)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_take_a_number_on_the_right(name: str) -> None:
    """The number is treated as a 0-d tensor."""
    x = cd.tensor([1.0, 3.0])
    assert getattr(cd, name)(x, 2).tolist() == getattr(cd, name)(x, cd.tensor(2)).tolist()
    assert getattr(x, name)(2).tolist() == getattr(cd, name)(x, 2).tolist()
