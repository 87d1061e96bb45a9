"""Functions over lists of tensors; the figures are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest


def lists() -> tuple[list[Any], list[Any]]:
    """Return two lists of tensors of equal shapes."""
    return [cd.ones(2), cd.ones(3)], [cd.full((2,), 2.0), cd.full((3,), 3.0)]


def values(tensors: Any) -> list[float]:
    """Return the first element of each tensor, all of whose elements are equal."""
    assert all((t == t.reshape(-1)[0]).all() for t in tensors)
    return [t.reshape(-1)[0].item() for t in tensors]


def test_arguments_are_lists_numbers_or_tensors() -> None:
    """A list has one value for each tensor, any other value is for all; keywords are passed on."""
    a, b = lists()
    assert values(cd._foreach_add(a, b, alpha=2)) == [5, 7]
    assert values(cd._foreach_add(a, [1.0, 2.0])) == [2, 3]
    assert values(cd._foreach_add(a, cd.tensor(5.0))) == [6, 6]
    assert values(cd._foreach_mul(b, 3)) == [6, 9]
    assert values(cd._foreach_sqrt(b)) == pytest.approx([2**0.5, 3**0.5])
    assert values(cd._foreach_lerp(a, b, 0.5)) == [1.5, 2]
    assert values(cd._foreach_pow(b, 2.0)) == [4, 9]
    assert values(cd._foreach_pow(2.0, b)) == [4, 8]
    assert values(cd._foreach_maximum(b, 2.5)) == [2.5, 3]
    assert values(cd._foreach_minimum(b, a)) == [1, 1]
    assert values(cd._foreach_norm(b)) == pytest.approx([8**0.5, 27**0.5])
    assert values(cd._foreach_norm(b, 1)) == [4, 9]


def test_in_place_functions_return_their_list() -> None:
    """The tensors are the same; factors are numbers, a list or one tensor."""
    a, b = lists()
    assert cd._foreach_addcdiv_(a, b, b, 0.5) is a
    assert values(a) == [1.5, 1.5]
    cd._foreach_addcdiv_(a, b, b, [0.5, 1.0])
    assert values(a) == [2, 2.5]
    cd._foreach_addcmul_(a, b, b, cd.tensor([1.0, 2.0]))
    assert values(a) == [6, 20.5]
    cd._foreach_maximum_(a, 10.0)
    assert values(a) == [10, 20.5]
    cd._foreach_copy_(a, b)
    assert values(a) == [2, 3]
    cd._foreach_zero_(a)
    assert values(a) == [0, 0]


def test_wrong_lists_are_refused() -> None:
    """Empty lists, lists of two lengths, values that are no lists, and names without a method are errors."""
    a, b = lists()
    with pytest.raises(RuntimeError, match=r"Tensor list must have at least one tensor\."):
        cd._foreach_abs([])
    with pytest.raises(RuntimeError, match="must have the same number of tensors, got 2 and 1"):
        cd._foreach_add(a, b[:1])
    with pytest.raises(TypeError, match="must be tuple of Tensors, not float"):
        cd._foreach_add(1.0, 2.0)
    with pytest.raises(AttributeError, match="has no attribute '_foreach_pigeon'"):
        cd._foreach_pigeon(a)
