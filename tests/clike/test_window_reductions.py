"""Reductions of windows: their expressions in every dtype, and what is refused where they are declared."""

from typing import Any

import pytest
from candelabra.dtypes import ALL, BOOL, COMPLEX, dtype, float32
from candelabra_clike.language import ExpressionError, Variable, text
from candelabra_clike.templates.convolutions.pooling import WindowReduction, max_reduction, sum_reduction


@pytest.mark.parametrize("d", [d for d in ALL if d.category != BOOL], ids=str)
def test_the_expressions_of_all_reductions_have_the_right_types(d: dtype) -> None:
    """A reduction of a wrong type raises ``ExpressionError``."""
    assert sum_reduction(d, adjoint=True).adjoint
    if d.category != COMPLEX:
        assert max_reduction(d, True).with_index
        assert not max_reduction(d, False).with_index


def test_the_position_of_a_maximum_begins_before_all_elements() -> None:
    """So the first element that is no padding is better than none, also if it is the lowest number or NaN."""
    found, v, at = max_reduction(float32, True), Variable("f32", "v"), Variable("i32", "at")
    state = [Variable("f32", "best"), Variable("i32", "place")]
    assert [text(value) for value in found.initial("i32")] == ["-INFINITE_F32", "-1"]
    assert text(found.after(state, v, at)[1]) == "(place < 0) | ((v > best) | (v != v)) ? at : place"
    assert [text(value) for value in found.initial("i64", v)] == ["v", "0"]
    assert text(found.after(state, v, at, interior=True)[1]) == "(v > best) | (v != v) ? at : place"


def reduction(**changed: Any) -> WindowReduction:
    """Return a sum with some of its parts changed."""
    given: dict[str, Any] = {
        "name": "total", "element": "f32", "state": "f32", "first": 0, "more": lambda a0, v: a0 + v,
        "interior": lambda v: v,
    }  # fmt: skip
    return WindowReduction(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"more": lambda a0, v: a0 > v}, "expected a value of type f32, got bool"),
        ({"more": lambda a0, w: a0 + w}, "there is no parameter 'w'"),
        ({"interior": lambda v: v.real}, "a part of f32: only complex numbers have one"),
        ({"more_interior": lambda a0, v: (a0, v)}, "expected 1 values, got 2"),
        ({"with_index": True}, "expected 2 values, got 1"),
    ],
)
def test_a_wrong_expression_names_the_reduction_and_the_line(changed: dict[str, Any], reason: str) -> None:
    """The error comes where the reduction is declared, and not from a compiler."""
    with pytest.raises(ExpressionError, match=rf"of 'total' \(test_window_reductions\.py, line \d+\): {reason}"):
        reduction(**changed)
