"""Scans: their operations as expressions and as statements, and what is refused where they are declared."""

from typing import Any

import pytest
from candelabra.dtypes import ALL, dtype
from candelabra_clike.kernels.reductions import castable
from candelabra_clike.kernels.scans import KERNELS, accumulation
from candelabra_clike.language import ExpressionError, Value, Variable, assignments, call, cast, rare, select
from candelabra_clike.templates.reductions.scan_source import ScanOp

A, B, C = (Variable("f32", n) for n in "abc")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([A + B, B], "a = a + b;\n"),
        ([B, A], "{\nconst f32 new0 = b;\nconst f32 new1 = a;\na = new0;\nb = new1;\n}\n"),
        ([C, B * C], "a = c;\nb = b * c;\n"),
    ],
)
def test_values_are_assigned_at_the_same_time(values: list[Value], expected: str) -> None:
    """A value that reads a variable reads what it was before; one that does not change is not assigned."""
    assert assignments(["a", "b"], values) == expected


def test_what_several_nodes_use_is_computed_once() -> None:
    """Constants are in the order in which they depend on each other; a comparison is an integer of C."""
    less = A < B
    low = select(less, A, B)
    made = assignments(["a"], [call("exp", low) + select(less, low, 0)])
    assert made == "{\nconst u32 c0 = a < b;\nconst f32 c1 = c0 ? a : b;\na = exp_f32(c1) + (c0 ? c1 : 0);\n}\n"


def test_what_seldom_changes_is_a_branch() -> None:
    """A cumulative maximum seldom has a new value. Choices by different conditions are no branch."""
    wins = C > A
    assert assignments(["a", "b"], [rare(wins, C, A), rare(wins, A, B)]) == (
        "if (UNLIKELY(c > a)) {\n{\nconst f32 new0 = c;\nconst f32 new1 = a;\na = new0;\nb = new1;\n}\n}\n"
    )
    assert "UNLIKELY" not in assignments(["a", "b"], [rare(C > A, C, A), rare(C > A, A, B)])
    assert "UNLIKELY" not in assignments(["a"], [rare(wins, C, B)])
    assert assignments(["a"], [A]) == ""


@pytest.mark.parametrize("d", ALL, ids=str)
def test_the_expressions_of_all_scans_have_the_right_types(d: dtype) -> None:
    """An operation of a wrong type raises ``ExpressionError``, for devices with and without float64."""
    for kernel in KERNELS.values():
        if hasattr(kernel, "for_dtype"):
            kernel.for_dtype(d)
    for name in ("cumsum", "cumprod"):
        for target in ALL:
            if (castable(d, target) or d is target) and not (name == "cumsum" and target.is_complex):
                accumulation(name, d, target)


def scan(**changed: Any) -> ScanOp:
    """Return a sum with some of its parts changed."""
    given: dict[str, Any] = {
        "name": "total", "elements": ("f32",), "index": "u32", "states": (("f64", 0),), "outputs": ("f32",),
        "each": lambda x: cast("f64", x), "operation": lambda a0, b0: a0 + b0, "results": lambda a0: cast("f32", a0),
    }  # fmt: skip
    return ScanOp(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"each": lambda x: x}, "expected a value of type f64, got f32"),
        ({"each": lambda x, j: x}, "there is no parameter 'j'"),
        ({"operation": lambda a0, b0: cast("f32", a0 + b0)}, "expected a value of type f64, got f32"),
        ({"operation": lambda a0, b0: (a0, b0)}, "expected 1 values, got 2"),
        ({"operation": lambda a0, b1: a0 + b1}, "there is no parameter 'b1'"),
        ({"results": lambda a0: a0}, "expected a value of type f32, got f64"),
        ({"states": (("f64", 0), ("f64", 1))}, "expected 2 values, got 1"),
    ],
)
def test_a_wrong_operation_names_the_scan_and_the_line(changed: dict[str, Any], reason: str) -> None:
    """The error comes where the scan is declared, and not from a compiler."""
    with pytest.raises(ExpressionError, match=rf"of 'total' \(test_scan_operations\.py, line \d+\): {reason}"):
        scan(**changed)


def test_initial_values_have_the_type_of_their_variable() -> None:
    """A sum begins with -0, so that a sum of -0 elements is -0; an integer has no such number."""
    assert scan(states=(("f64", -0.0),)).first(0) == "-0.0"
    with pytest.raises(TypeError, match=r"constant: -0\.0 is no number of type i64"):
        scan(states=(("i64", -0.0),))
