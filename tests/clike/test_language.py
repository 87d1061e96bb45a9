"""The language of kernels: what expressions print, which types they have, and what is refused."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from candelabra.dtypes import bfloat16, float16, float32
from candelabra_clike.language import (
    Number,
    Value,
    Variable,
    bits,
    call,
    cast,
    constant,
    pair,
    part_type,
    rare,
    reasons_in,
    refuse,
    round_to,
    select,
    sqrt,
    text,
    unsigned,
    wrapping,
)
from candelabra_clike.language.types import holds
from candelabra_clike.library import signature

X, Y, Z = (Variable("f32", n) for n in "xyz")
N, M = (Variable("i32", n) for n in "nm")
B, U, C = Variable("u8", "b"), Variable("u64", "u"), Variable("c64", "c")
P, Q = Variable("bool", "p"), Variable("bool", "q")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X + Y * Z, "x + y * z"),
        ((X + Y) * Z, "(x + y) * z"),
        (X - (Y - Z), "x - (y - z)"),
        (X - Y - Z, "x - y - z"),
        (X * (Y * Z), "x * (y * z)"),
        (1 - X * X, "1 - x * x"),
        (-(0 - X), "-(0 - x)"),
        (-(X * Y), "-(x * y)"),
        (X / Y, "DIVIDE_F32(x, y)"),
        (2 / X, "DIVIDE_F32(2, x)"),
        ((X > 0) | (Y != Y), "(x > 0) | (y != y)"),
        (P & Q | P, "(p & q) | p"),
        (~P, "p ^ 1"),
        (~N, "~n"),
        (N << 3 >> M, "n << 3 >> m"),
        (select(X < 0, 0, select(Y > 0, X, Y)), "x < 0 ? 0 : y > 0 ? x : y"),
        (select(select(P, Q, P), X, Y) + 1, "((p ? q : p) ? x : y) + 1"),
        (cast("u32", N) + cast("u32", N * M), "(u32)n + (u32)(n * m)"),
        (cast("f32", X), "x"),
        (cast("bool", N), "(u8)n"),
        (C.real * C.imag, "c.x * c.y"),
        ((C + C).real, "(c + c).x"),
        (pair(X, 0), "C64(x, 0)"),
        (call("divide", 1, C), "divide_c64(C64(1, 0), c)"),
        (call("exp", X), "exp_f32(x)"),
        (call("abs_i64", N), "abs_i64(n)"),
        (call("fmod", B, B), "fmod_u32(b, b)"),
        (sqrt(X), "SQRT_F32(x)"),
        (sqrt(C), "sqrt_c64(c)"),
        (bits(X) >> 31, "BITS_U32(x) >> 31"),
        (X + 0.5, "x + 0.5f"),
        (X * inf, "x * INFINITE_F32"),
        (constant("f64", nan), "NAN_F64"),
        (X - -2.5, "x - -2.5f"),
        (constant("f64", 0.1), "0.1"),
        (U ^ 0xFFFFFFFFFF, "u ^ ((u64)0xFFFFFFFFFF)"),
        (X + Number("f32", ("s0",)), "x + ((f32)s0)"),
        (C + Number("c64", ("s0", "s1")), "c + C64(s0, s1)"),
        (round_to(float16, X), "load_f16(store_f16(x))"),
        (round_to(bfloat16, X), "load_bf16(store_bf16(x))"),
        (round_to(float32, X), "x"),
        (refuse(M == 0, "DIVISION_BY_ZERO", N), "(REFUSE(m == 0, DIVISION_BY_ZERO), n)"),
        (rare(X < -5, call("gelu", X), X), "gelu_f32(x)"),
    ],
    ids=str,
)
def test_an_expression_prints_as_c(value: Value, expected: str) -> None:
    """Brackets stand where C's precedence needs them, and around comparisons in bitwise operations."""
    assert text(value) == expected


def test_the_usual_branch_of_a_rare_choice_prints_alone() -> None:
    """A loop over values that are not rare does not contain the costly expression."""
    assert text(1 + rare(X < -5, call("gelu", X), X), "usual") == "1 + x"


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (B + B, "i32"),
        (B & B, "u8"),
        (cast("u32", B) * U, "u64"),
        (X < Y, "bool"),
        (-B, "i32"),
        (cast("i32", X > 0) - N, "i32"),
        ((X > 0) - (X < 0), "i32"),
        (call("hypot", C.real, C.imag), "f32"),
        (bits(X), "u32"),
    ],
    ids=str,
)
def test_the_type_of_an_operation_is_that_of_c(value: Value, type: str) -> None:
    """Integers of less than 32 bits are promoted, and comparisons give bools."""
    assert value.type == type


def test_types_related_to_a_type() -> None:
    """Wrapping arithmetic has 32 bits or more; parts of complex numbers are floats; a wider type holds a narrower."""
    assert (wrapping("i8"), wrapping("u64"), unsigned("i16"), unsigned("f64")) == ("u32", "u64", "u16", "u64")
    assert (part_type("c128"), part_type("f32")) == ("f64", "f32")
    assert holds("i64", "u32")
    assert not holds("u64", "i32")
    assert not holds("bool", "u8")
    assert not holds("f64", "f32")


def test_the_types_of_library_functions_are_those_of_their_definitions() -> None:
    """Templates have the types of their instances; a macro has none."""
    assert signature("clamp_f64") == ("f64", ("f64", "f64", "f64"))
    assert signature("abs_i64") == ("u64", ("i64",))
    assert signature("REFUSE") is None


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: X + N, "'\\+' of f32 and i32: cast one of them"),
        (lambda: cast("u32", M) > N, "'>' of u32 and i32: cast one of them"),
        (lambda: C * C, "'\\*' of c64: complex numbers have functions of the library"),
        (lambda: C < C, "'<' of c64: complex numbers have functions"),
        (lambda: X & Y, "'&' of f32 and f32: it needs two integers of one type, or two bools"),
        (lambda: N & B, "'&' of i32 and u8: it needs two integers"),
        (lambda: X << 1, "'<<' of f32 and f32: it needs integers"),
        (lambda: N / M, "'/' of i32 and i32: it needs two floats of one type"),
        (lambda: ~X, "'~' of f32: it needs an integer or a bool"),
        (lambda: X.real, "a part of f32: only complex numbers have one"),
        (lambda: X + "1", "'\\+': expected a value or a number, got '1'"),  # type: ignore[operator]
        (lambda: N + 0.5, "'\\+': 0.5 is no number of type i32"),
        (lambda: B + 256, "'\\+': 256 is no number of type u8"),
        (lambda: P ^ 2, "'\\^': 2 is no number of type bool"),
        (lambda: C + nan, "'\\+': nan has no constant of type c64"),
        (lambda: call("exq", X), "the library has no function 'exq_f32'"),
        (lambda: call("exp", 1), "the library has no function 'exp'"),
        (lambda: call("exp", X, X), r"exp_f32\(f32\) was called with 2 arguments"),
        (lambda: call("hypot", X, N), r"hypot_f32\(f32, f32\) was called with \(f32, i32\)"),
        (lambda: cast("f32", C), r"cast from c64 to f32: complex numbers are made by pair\(\)"),
        (lambda: select(X, X, Y), "a condition of type f32: compare it with a number"),
        (lambda: select(P, 0, 1), r"a choice of 0 and 1: at least one needs a type, see constant\(\)"),
        (lambda: select(P, X, N), "a choice of f32 and i32: cast one of them"),
        (lambda: refuse(P, "NO_SUCH", N), "the reason 'NO_SUCH' of a refusal is none of DIVISION_BY_ZERO"),
        (lambda: pair(N, M), "the parts of a complex number are floats of one type"),
        (lambda: pair(X, Variable("f64", "d")), "a complex number of f32 and f64: cast one of them"),
        (lambda: bits(N), "the bits of i32: only floats have them"),
        (lambda: X if X > 0 else Y, r"neither true nor false while the kernel is built: use select\(\)"),
    ],
)
def test_what_c_would_not_compute_as_it_reads_is_refused(make: Callable[[], Any], reason: str) -> None:
    """The error is raised while the expression is built."""
    with pytest.raises(TypeError, match=reason):
        make()


def test_reasons_are_those_of_all_nodes() -> None:
    """A refusal counts wherever it stands in an expression, once for each reason."""
    refused = refuse(M == 0, "DIVISION_BY_ZERO", N)
    assert reasons_in(refused + refused, X) == ("DIVISION_BY_ZERO",)


def test_a_cast_to_the_own_type_is_the_value() -> None:
    """Also that of a complex number, which no cast converts."""
    assert cast("c64", C) is C
    assert cast("f32", X) is X
