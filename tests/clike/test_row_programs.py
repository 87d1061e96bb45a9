"""Row programs: which of them vectors compute, and what is refused where they are declared."""

import pytest
from candelabra_clike.kernels.attention import MASKED
from candelabra_clike.kernels.distances import NORM_GRADIENTS, NORMS, P_NORM
from candelabra_clike.kernels.normalization import BACKWARD, NORMALIZE
from candelabra_clike.kernels.softmax import LOGSUMEXP, SOFTMAX
from candelabra_clike.language import ExpressionError, Variable, call, constant, select, selected_by_lanes, text
from candelabra_clike.templates.rows.program import MAX, SUM, RowExpression, RowProgram, RowReduction, RowTypes

SUM_OF_A = RowReduction(SUM, lambda a: a)


def test_expressions_have_the_words_of_the_type_of_values() -> None:
    """A program is declared once; its text differs between dtypes, and between devices with and without float64."""
    assert text(SOFTMAX.element(1, "f32")) == "exp_f32(va - r0)"
    assert text(SOFTMAX.element(1, "f64")) == "exp_f64(va - r0)"
    assert text(LOGSUMEXP.result(1, RowTypes("f32", "f64"))) == "log_f32((f32)total) + r0"
    assert text(SOFTMAX.result(1, RowTypes("f32", "f64"), "total1")) == "(f32)DIVIDE_F64(1, total1)"
    assert text(SOFTMAX.result(1, RowTypes("f32", "f32"))) == "DIVIDE_F32(1, total)"


@pytest.mark.parametrize(("form", "expected"), [("vector", "exp_x8(va - r0)"), ("vector16", "exp_x16(va - r0)")])
def test_library_functions_have_forms_for_vectors(form: str, expected: str) -> None:
    """The exponential is the same arithmetic for a number, for eight and for sixteen."""
    assert text(SOFTMAX.element(1, "f32"), form) == expected


def test_vectors_compute_what_has_a_text_for_them() -> None:
    """A power has no form for vectors, and a count of unequal coordinates chooses between two numbers."""
    vectors = [SOFTMAX, LOGSUMEXP, MASKED, *NORMALIZE.values(), *BACKWARD.values(), NORMS[1], NORM_GRADIENTS[1]]
    assert all(program.vectorizes for program in vectors)
    assert not any(program.vectorizes for program in (P_NORM, NORMS[0], NORM_GRADIENTS[2]))


def test_a_choice_needs_vectors_on_both_sides_of_the_question_mark() -> None:
    """C chooses neither between two numbers by a vector, nor between two vectors by a number."""
    lane, number = Variable("f32", "va"), Variable("f32", "r0")
    assert selected_by_lanes(select(lane > 0, lane, 0), {"va"})
    assert not selected_by_lanes(select(lane > 0, constant("f32", 1), 0), {"va"})
    assert not selected_by_lanes(select(number > 0, lane, 0), {"va"})


def test_the_maximum_begins_with_minus_infinity_and_the_sum_with_zero() -> None:
    """Identity elements are of the type of values; only sums have totals of the wider type."""
    assert (MAX.identity("f64"), SUM.identity("f64")) == ("-INFINITE_F64", "0")
    types = RowTypes("f32", "f64")
    assert (MAX.total(types), SUM.total(types)) == ("f32", "f64")


@pytest.mark.parametrize(
    ("reduction", "last", "reason"),
    [
        (RowReduction(SUM, lambda a: a > 0), None, "expected a value of type f32, got bool"),
        (RowReduction(SUM, lambda a: call("expo", a)), None, "the library has no function 'expo_f32'"),
        (RowReduction(SUM, lambda a: a, lambda total, s0: total), None, "there is no parameter 's0'"),
        (RowReduction(SUM, lambda a, r0: a - r0), None, "there is no parameter 'r0'"),
        (RowReduction(SUM, lambda a: a, lambda count: count), None, "expected a value of type f32, got u64"),
        (SUM_OF_A, lambda a, o: a * o, "there is no parameter 'o'"),
        (SUM_OF_A, lambda a, b: a * b, "there is no parameter 'b'"),
        (SUM_OF_A, lambda a, r0: (a, r0), "expected 1 values, got 2"),
    ],
)
def test_a_wrong_expression_names_the_program_and_the_line(
    reduction: RowReduction, last: RowExpression | None, reason: str
) -> None:
    """The error comes where the program is declared, for a type in which it is wrong, and not from a compiler."""
    with pytest.raises(ExpressionError, match=rf"of 'rows' in f32 \(test_row_programs\.py, line \d+\): .*{reason}"):
        RowProgram("rows", 1, (reduction,), last)


def test_totals_without_a_cast_are_wrong_on_devices_with_float64_alone() -> None:
    """A program is checked for each type of totals, whatever the devices of this machine are."""
    mixed = RowReduction(SUM, lambda a: a, lambda total, s0: total + s0)
    with pytest.raises(ExpressionError, match=r"'\+' of f64 and f32: cast one of them"):
        RowProgram("rows", 1, (mixed,), numbers=1)
