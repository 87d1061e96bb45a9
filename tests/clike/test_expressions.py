"""The table of expressions: every name in it is defined, in every dtype of an entry."""

import re
from collections.abc import Iterator

import candelabra.nn.functional  # noqa: F401 - its operators are in the table, too
import pytest
from candelabra.dtypes import ALL, bool_, complex64, dtype, float16, float32, float64, int32, uint8
from candelabra.library import OPERATORS
from candelabra_clike.expressions import EXPRESSIONS, Expression, expression_for, fill_types, kinds
from candelabra_clike.library import definitions

CALL = re.compile(r"\b(\w+_(?:f32|f64|c64|c128|[iu](?:32|64)|f16|bf16))\(")
WORDS = re.compile(r"\{(\w+)\}")


def texts() -> Iterator[tuple[str, dtype, Expression, str]]:
    """Yield every expression with its types filled in; functions have the types of their first values."""
    for name, entry in EXPRESSIONS.items():
        for d in ALL:
            expression = expression_for(entry, d)
            if expression is None:
                continue
            if isinstance(expression, str):
                yield name, d, expression, fill_types(expression, d)
                continue
            wanted = expression.__code__.co_varnames[: expression.__code__.co_argcount]
            for value in (None, 0, 3, "tanh"):
                try:
                    text = expression(**dict.fromkeys(wanted, value))
                except TypeError:  # This parameter never has that type.
                    continue
                yield name, d, expression, fill_types(text, d)


def test_every_entry_is_an_operator() -> None:
    """An entry without a record of that name would never be used."""
    assert [name for name in EXPRESSIONS if name not in OPERATORS] == []


def test_every_function_that_an_expression_calls_is_defined() -> None:
    """The library defines every function that an expression calls, in every dtype."""
    missing = {(name, call) for name, _, _, text in texts() for call in CALL.findall(text) if call not in definitions()}
    assert missing == set()


def test_no_word_in_braces_is_left_but_operands_and_numbers() -> None:
    """After the types are filled in, only operands and the record's own parameters remain."""
    for name, d, _, text in texts():
        parameters = {p.name for p in OPERATORS[name].schema.parameters}
        assert set(WORDS.findall(text)) <= parameters | set("abcdef"), (name, d.name)


@pytest.mark.parametrize(
    ("d", "first", "last"),
    [(bool_, "bool", "any"), (float16, "float16", "any"), (uint8, "uint8", "any"), (complex64, "complex64", "any")],
)
def test_the_most_special_kind_comes_first(d: dtype, first: str, last: str) -> None:
    """A dtype's own name takes precedence over its group, and the group over `any`."""
    assert (kinds(d)[0], kinds(d)[-1]) == (first, last)


def test_types_are_those_of_the_value() -> None:
    """Half types compute in float32; narrow integers are promoted to 32 bits; parts of complex numbers are real."""
    assert fill_types("{T} {U} {W}", float16) == "f32 u32 F32"
    assert fill_types("{T} {L}", uint8) == "u8 u32"
    assert fill_types("{T} {R} {P}", complex64) == "c64 f32 F32"
    assert fill_types("{T} {L}", int32) == "i32 i32"


def test_derivatives_of_digamma_beyond_the_range_of_a_dtype() -> None:
    """The factorial is a constant of the kernel, and infinity if the dtype cannot represent it."""
    entry = EXPRESSIONS["polygamma_of"]
    single, double = (expression_for(entry, d) for d in (float32, float64))
    assert callable(single)
    assert callable(double)
    assert single(0) == "digamma_{T}({a})"
    assert single(1) == "trigamma_{T}({a})"
    assert single(3) == "6.0f * zeta_{T}(4, {a})"
    assert single(40).startswith("-INFINITE_{W} * zeta")
    assert double(40).startswith("-8.159152832478977e+47 * zeta")
    assert double(171).startswith("INFINITE_{W} * zeta")
