"""Folds: reductions as expressions, their text for vectors, and what is refused."""

import pytest
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra_clike.kernels.reductions import KERNELS, arg_reduction, extreme, reduction_for
from candelabra_clike.language import (
    ExpressionError,
    Value,
    Variable,
    cast,
    constant,
    highest,
    is_vectorizable,
    lowest,
    select,
    text,
)
from candelabra_clike.templates.reductions.arg_reduction import ArgReductionSourceBuilder
from candelabra_clike.templates.reductions.fold import TypedFold, is_vector_fold
from candelabra_clike.types import CTYPES

X, Y = (Variable("f32", n) for n in "xy")
N, B = Variable("i32", "n"), Variable("i8", "b")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X + Y * 2, "x + y * 2"),
        (select(X == X, X, 0), "x == x ? x : 0"),
        (select((X >= Y) | (X != X), X, Y), "(x >= y) | (x != x) ? x : y"),
        (cast("u64", N) + 1, "AS_U64X8(n) + 1"),
        (cast("f64", X), "AS_F64X8(x)"),
    ],
)
def test_texts_of_vectors(value: Value, expected: str) -> None:
    """Conversions of vectors are words of the dialect; operators are those of numbers."""
    assert is_vectorizable(value)
    assert text(value, "vector") == expected


@pytest.mark.parametrize("value", [cast("u32", X != 0), B + B, X > Y, select(N > 0, Variable("f64", "z"), 0)])
def test_what_vectors_compute_otherwise(value: Value) -> None:
    """A comparison of vectors is -1, narrow integers are not promoted, and a condition has lanes of the same size."""
    assert not is_vectorizable(value)


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [
        ("i32", "((i32)0x80000000)", "2147483647"),
        ("i64", "((i64)0x8000000000000000)", "((i64)0x7FFFFFFFFFFFFFFF)"),
        ("u8", "0", "255"),
        ("f32", "-INFINITE_F32", "INFINITE_F32"),
    ],
)
def test_the_identity_elements_of_extremes(type: str, low: str, high: str) -> None:
    """They are the ends of the type."""
    assert (text(constant(type, lowest(type))), text(constant(type, highest(type)))) == (low, high)


@pytest.mark.parametrize("d", ALL, ids=str)
def test_the_expressions_of_all_reductions_have_the_right_types(d: dtype) -> None:
    """A fold of a wrong type raises ``ExpressionError``."""
    for kernel in KERNELS.values():
        kernel.for_dtype(d)
    for name in ("sum", "mean", "amax", "all"):
        reduction = reduction_for(name, d, None)
        if reduction is not None:
            folds = reduction.fold(False), reduction.fold(True)
            assert all(fold.of_totals().element == fold.total for fold in folds)
    if not d.is_complex:
        arg_reduction(True, d)


def test_sums_and_extremes_are_vectors_where_the_elements_have_them() -> None:
    """Bytes of bools are compared one by one."""
    for d in ALL:
        reduction = extreme("amax", True, d)
        if reduction is not None:
            assert is_vector_fold(reduction.fold(True), CTYPES[d]) == (d.name != "bool")


def test_a_fold_of_a_wrong_type_names_the_reduction_and_the_line() -> None:
    """The error comes where the fold is declared, and not from a compiler."""
    with pytest.raises(ExpressionError, match=r"of 'total' \(test_folds\.py, line \d+\): .* got f32"):
        TypedFold("total", "f32", "f64", lambda a, b: a + b, each=lambda x: x)
    with pytest.raises(ExpressionError, match=r"'\+' of f64 and f32: cast one of them"):
        TypedFold("total", "f32", "f64", lambda a, b: a + cast("f32", b), each=lambda x: cast("f64", x))


def test_a_comparison_of_a_wrong_type_names_the_arg_reduction_and_the_line() -> None:
    """A comparison of two elements is a bool, and both have the type of the fold's lanes."""
    fold, element = TypedFold("largest", "f32", "f32", lambda a, b: select(a > b, a, b)), CTYPES[BY_NAME["float32"]]
    source = ArgReductionSourceBuilder("argmax", lambda a, b: a > b, lambda a, b: a == b, fold, element)
    assert source.better("x", "best") == "(x > best)"
    with pytest.raises(ExpressionError, match=r"of 'argmax' \(test_folds\.py, line \d+\): .* got f32"):
        ArgReductionSourceBuilder("argmax", lambda a, b: a - b, lambda a, b: a == b, fold, element)
