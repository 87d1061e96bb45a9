"""The table of expressions: every entry has a value in every dtype, and every parameter that selects one its own."""

from collections.abc import Callable
from typing import Any

import candelabra.nn.functional  # noqa: F401 - its operators are in the table, too
import pytest
from candelabra.dtypes import ALL, bool_, complex64, dtype, float16, float32, float64, uint8
from candelabra.library import OPERATORS
from candelabra_clike.expressions import EXPRESSIONS, expression_for, kinds
from candelabra_clike.kernels.pointwise import POINTWISE, Pointwise
from candelabra_clike.language import ExpressionError, Variable, declared, text


def test_every_entry_is_an_operator() -> None:
    """An entry without a record of that name would never be used."""
    assert [name for name in EXPRESSIONS if name not in OPERATORS] == []


@pytest.mark.parametrize("name", sorted(POINTWISE))
def test_every_entry_has_a_value_in_each_of_its_dtypes(name: str) -> None:
    """The expression of every dtype of an entry has the type of the result."""
    kernel = POINTWISE[name]
    for d in ALL:
        assert (kernel.value(d) is None) == (expression_for(kernel.entry, d) is None)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (lambda a, b: a + b.real, "a part of f32: only complex numbers have one"),
        (lambda a: a != a, "expected a value of type f32, got bool"),
        (lambda a, c: a, "there is no parameter 'c'"),
    ],
)
def test_a_wrong_expression_is_refused_when_the_kernel_is_registered(
    expression: Callable[..., Any], reason: str
) -> None:
    """The error names the operator, the dtype, and the line of the expression."""
    kernel = Pointwise(OPERATORS["add"], {"float": expression}, inplace=False)
    with pytest.raises(ExpressionError, match=rf"'add' in float16 \(test_expressions.py, line \d+\): {reason}") as e:
        kernel.value(float16)
    assert e.value.operator == "'add' in float16"
    assert e.value.location.startswith("test_expressions.py, line")


@pytest.mark.parametrize(
    ("d", "first", "last"),
    [(bool_, "bool", "any"), (float16, "float16", "any"), (uint8, "uint8", "any"), (complex64, "complex64", "any")],
)
def test_the_most_special_kind_comes_first(d: dtype, first: str, last: str) -> None:
    """A dtype's own name takes precedence over its group, and the group over `any`."""
    assert (kinds(d)[0], kinds(d)[-1]) == (first, last)


@pytest.mark.parametrize(
    ("d", "n", "expected"),
    [
        (float32, 0, "digamma_f32(va)"),
        (float32, 1, "trigamma_f32(va)"),
        (float64, 2, "tetragamma_f64(va)"),
        (float32, 3, "6.0f * zeta_f32(4, va)"),
        (float32, 40, "-INFINITE_F32 * zeta_f32(41, va)"),
        (float64, 40, "-8.159152832478977e+47 * zeta_f64(41, va)"),
        (float64, 171, "INFINITE_F64 * zeta_f64(172, va)"),
    ],
)
def test_derivatives_of_digamma_beyond_the_range_of_a_dtype(d: dtype, n: int, expected: str) -> None:
    """The factorial is a constant of the kernel, and infinity if the dtype cannot represent it."""
    expression = expression_for(EXPRESSIONS["polygamma_of"], d)
    assert expression is not None
    value = "f32" if d is float32 else "f64"
    assert text(declared("polygamma", expression, {"a": Variable(value, "va"), "n": n}, value)) == expected
