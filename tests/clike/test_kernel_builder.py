"""Kernels as typed statements: their text, and the mistakes that are errors before a compiler sees them."""

from collections.abc import Callable

import pytest
from candelabra.dtypes import bool_, float16, float32
from candelabra_clike import C, Source
from candelabra_clike.language import (
    INDEX,
    ExpressionError,
    Variable,
    and_then,
    cast,
    constant,
    multiply_high,
    or_else,
    select,
    text,
)
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least

M, J = Variable(INDEX, "i"), Variable("u32", "j")
P, Q, R = (Variable("bool", n) for n in "pqr")


def test_a_kernel_has_the_parameters_and_statements_of_its_calls() -> None:
    """Elements are converted from and to their types in memory, and blocks end where their Python blocks end."""
    k = KernelBuilder("scaled", wide=True)
    out, x, n = k.writes("out", float16), k.reads("x", float16), k.number("n")
    with k.share("i", n, k.number("each")) as i:
        value = k.let("value", x[i] * 2)
        with k.when(value > 0):
            out[i] = value
        with k.otherwise():
            out[i] = 0
    source = k.source(group=1, contract=True)
    assert source.body.splitlines() == [
        "const INDEX begin = GLOBAL_ID * each;",
        "const INDEX end = begin + (n - begin < each ? n - begin : each);",
        "for (INDEX i = begin; i < end; ++i) {",
        "const f32 value = load_f16(x[i]) * 2;",
        "if (value > 0) {", "out[i] = store_f16(value);", "}",
        "else {", "out[i] = store_f16(0);", "}",
        "}",
    ]  # fmt: skip
    assert [p.declaration() for p in source.parameters] == [
        "GLOBAL u16* out", "GLOBAL const u16* x", "const INDEX n", "const INDEX each",
    ]  # fmt: skip
    assert (source.name, source.group, source.wide, source.contract) == ("scaled", 1, True, True)


def test_a_work_item_has_arrays_and_variables() -> None:
    """Private and shared arrays, pointers into buffers and their exchange, loops that are repeated or left early."""
    k = KernelBuilder("arrays", wide=False)
    x, mask = k.writes("x", "u64"), k.reads("mask", bool_)
    grid, shared = k.array("grid", "i32", 2, 3), k.array("shared", "f32", 4, shared=True)
    first, second = k.pointer("first", x, k.item * 2), k.pointer("second", x, k.item * 2 + 1)
    k.swap(first, second)
    k.point(first, x, k.item)
    k.barrier()
    left = k.variable("left", constant("u32", 3))
    with k.repeat(and_then(left > 0, mask[left])):
        k.assign(left, left - 1)
    with k.loop("j", 0, 2, unrolled=True) as j, k.loop("l", left, k.lane, 2, independent=True) as m:
        with k.when(m == 1):
            k.next()
        grid[j, m] = cast("i32", m)
        shared[0] = 0.5
    with k.block():
        k.let("good", grid[0, 0] > 1)
    k.run("report_error", x, k.group)
    assert k.source().body.splitlines() == [
        "i32 grid[2][3];", "LOCAL f32 shared[4];",
        "GLOBAL u64* first = x + (GLOBAL_ID * 2);", "GLOBAL u64* second = x + (GLOBAL_ID * 2 + 1);",
        "{ GLOBAL u64* held = first; first = second; second = held; }", "first = x + (GLOBAL_ID);", "BARRIER;",
        "u32 left = 3;",
        "while ((left > 0) && load_bool(mask[left])) {", "left = left - 1;", "}",
        "UNROLL", "for (i32 j = 0; j < 2; ++j) {",
        "INDEPENDENT", "for (u32 l = left; l < LOCAL_ID; l += 2) {",
        "if (l == 1) {", "continue;", "}",
        "grid[j][l] = (i32)l;", "shared[0] = 0.5f;", "}", "}",
        "{", "const u32 good = grid[0][0] > 1;", "}",
        "report_error(x, GROUP_ID);",
    ]  # fmt: skip


def test_a_lane_loads_and_stores_vectors() -> None:
    """A vector is loaded by words of 16 bytes at most, and its elements are converted like those of its array."""
    k = KernelBuilder("vectors", wide=False)
    out, x, wide = k.writes("out", float16), k.reads("x", float16), k.reads("wide", "f64")
    v, w = k.vector("v", x, 4), k.vector("w", wide, 4)
    with k.when((x.address(k.item) | out.address(0)) & v.lanes.bytes - 1 == 0):
        v.load(x, k.item)
    w.load(wide, k.item * 4)
    v[1] = v[0] + cast("f32", w[3])
    k.copy(out, 0, v, 1)
    v.store(out, k.item + 4)
    assert k.source().body.splitlines() == [
        "union { BYTES_8 all[1]; u16 each[4]; } v;", "union { BYTES_16 all[2]; f64 each[4]; } w;",
        "if ((((u64)(x + GLOBAL_ID) | (u64)(out + 0)) & 7) == 0) {",
        "v.all[0] = ((GLOBAL const BYTES_8*)(x + (GLOBAL_ID)))[0];", "}",
        "w.all[0] = ((GLOBAL const BYTES_16*)(wide + (GLOBAL_ID * 4)))[0];",
        "w.all[1] = ((GLOBAL const BYTES_16*)(wide + (GLOBAL_ID * 4)))[1];",
        "v.each[1] = store_f16(load_f16(v.each[0]) + (f32)w.each[3]);", "out[0] = v.each[1];",
        "((GLOBAL BYTES_8*)(out + (GLOBAL_ID + 4)))[0] = v.all[0];",
    ]  # fmt: skip
    assert v.lanes.is_aligned("x") == "((u64)(x) & 7u) == 0"
    assert w.lanes.is_aligned("wide") == "((u64)(wide) & 15u) == 0"


def test_a_macro_declares_variables() -> None:
    """They have names like those of other variables."""
    k = KernelBuilder("words", wide=False)
    word = Variable("u64", "w0")
    with k.block():
        k.expand("PHILOX", "MULTIPLY_HIGH", k.item + 1, declares=(word,))
        k.let("half", cast("u32", word))
    with pytest.raises(TypeError, match="'w0' is declared in a block that has ended, or not at all"):
        k.let("half", word)
    assert "PHILOX(MULTIPLY_HIGH, GLOBAL_ID + 1)" in k.source().body


def test_indices_are_unsigned_integers_between_those_of_32_and_64_bits() -> None:
    """So an expression is right in the narrow and in the wide variant of a kernel."""
    assert ((M + J).type, (M * Variable("u64", "u")).type, (M // 2 % J).type) == (INDEX, "u64", INDEX)
    assert text((M // J + 1) % 2 * M) == "(i / j + 1) % 2 * i"
    assert text(least(M, 4)) == "i < 4 ? i : 4"
    with pytest.raises(TypeError, match=r"'\+' of INDEX and i64: cast one of them"):
        M + Variable("i64", "k")
    with pytest.raises(TypeError, match=r"'/' of i32 and i32: it needs unsigned integers of 32 bits or more"):
        Variable("i32", "n") // 2
    with pytest.raises(TypeError, match="'%' of INDEX and i32: it needs unsigned"):
        M % Variable("i32", "n")


def test_loops_with_steps_that_are_numbers_of_the_kernel() -> None:
    """They may be left, hold for few iterations, or fill an array."""
    k = KernelBuilder("loops", wide=False)
    out, (n, step) = k.writes("out", float32), k.per_dim("n", 2)
    with k.loop("i", k.item, n, step * 2), k.when(out[0] > 0):
        k.leave()
    with k.loop("j", 0, cast("i32", n), independent=True, few=True) as j:
        out[j] = 1
    k.fill(k.fill(k.array("own", "i64", 4), 4, -1), cast("i32", n), independent=True)
    assert k.source().body.splitlines() == [
        "for (INDEX i = GLOBAL_ID; i < n0; i += n1 * 2) {", "if (out[0] > 0) {", "break;", "}", "}",
        "INDEPENDENT_FEW", "for (i32 j = 0; j < (i32)n0; ++j) {", "out[j] = 1;", "}",
        "i64 own[4];", "for (i32 filled = 0; filled < 4; ++filled) {", "own[filled] = -1;", "}",
        "INDEPENDENT", "for (i32 filled = 0; filled < (i32)n0; ++filled) {", "own[filled] = 0;", "}",
    ]  # fmt: skip


def test_variables_are_assigned_together() -> None:
    """What their values have in common is a constant, whose name is none that they read."""
    k = KernelBuilder("together", wide=False)
    x = k.reads("x", float32)
    best, place, c0 = k.variable("best", x[0]), k.variable("place", k.item), k.let("c0", k.item + 1)
    better = x[c0] > best
    k.assign_all([best, place], [select(better, x[c0], best), select(better, c0, place)])
    assert k.source().body.splitlines()[3:] == [
        "{", "const u32 c1 = x[c0] > best;", "const f32 new0 = c1 ? x[c0] : best;",
        "const INDEX new1 = c1 ? c0 : place;", "best = new0;", "place = new1;", "}",
    ]  # fmt: skip


def test_conditions_that_are_computed_in_order() -> None:
    """The second one may read an element that exists only if the first one holds."""
    condition = or_else(and_then(P, Q, R), ~P)
    assert text(select(condition, 1.0, constant("f32", 2))) == "(p && q && r) || (p ^ 1) ? 1.0f : 2"
    with pytest.raises(TypeError, match="'&&' of bool and f32: it needs two bools"):
        and_then(P, Variable("f32", "x"))


def test_the_upper_half_of_a_product() -> None:
    """It is a word of the dialects, of two numbers of 64 bits."""
    u = Variable("u64", "u")
    assert text(multiply_high(u, u + 1)) == "MULTIPLY_HIGH(u, u + 1)"
    with pytest.raises(TypeError, match="the upper half of a product of u64 and u32: it needs two u64"):
        multiply_high(u, J)


def test_a_constant_that_is_shifted_has_its_type() -> None:
    """C takes the type of a shift from the first operand alone."""
    assert text(constant("u32", 1) << J) == "(u32)1 << j"


MISTAKES: dict[str, tuple[Callable[[KernelBuilder, KernelArray, KernelArray], object], str]] = {
    "element": (lambda k, out, x: out.__setitem__(0, x[0] > 1), "an element of 'out': expected .* f32, got bool"),
    "stored number": (lambda k, out, x: out.__setitem__(0, None), "an element of 'out': expected a value or a number"),
    "read only": (lambda k, out, x: x.__setitem__(0, 1), "the array 'x' is only read"),
    "index": (lambda k, out, x: x[x[0]], "an index of 'x' of type f32: it needs an integer"),
    "dims": (lambda k, out, x: x[0, 1], "the array 'x' of 1 dims was indexed with 2 numbers"),
    "operands": (lambda k, out, x: x[0] + k.item, r"'\+' of f32 and INDEX: cast one of them"),
    "condition": (lambda k, out, x: k.when(x[0]).__enter__(), "a condition of type f32: compare it with a number"),
    "variable": (lambda k, out, x: k.assign(k.variable("v", x[0]), k.item), "the variable 'v': expected type f32"),
    "name": (lambda k, out, x: k.let("x", k.item), "the name 'x' is taken"),
    "loop": (lambda k, out, x: k.loop("i", 0, x[0]).__enter__(), "a loop from f32 to f32: it needs integers of one"),
    "bounds": (lambda k, out, x: k.loop("i", k.item, 2 * k.lane).__enter__(), "a loop from INDEX to u32"),
    "otherwise": (lambda k, out, x: k.otherwise().__enter__(), r"otherwise\(\) stands after a block of when\(\)"),
    "pointer": (lambda k, out, x: k.pointer("p", k.array("a", "f32", 2), k.item), "the array 'a' is not in the memory"),
    "swap": (lambda k, out, x: k.swap(out, x), "the arrays 'out' of f32 and 'x' of f32 cannot be exchanged"),
    "address": (
        lambda k, out, x: k.array("a", "f32", 2).address(0),
        "the array 'a' is not in the memory of the device",
    ),
    "copied": (
        lambda k, out, x: k.copy(k.array("a", "u16", 2), 0, x, 0),
        "an element of 'x' of f32 is none of 'a' of u16",
    ),
    "point": (
        lambda k, out, x: k.point(k.pointer("p", x), out),
        "the arrays 'p' of f32 and 'out' of f32 differ",
    ),
    "step": (lambda k, out, x: k.loop("i", 0, k.item, x[0]).__enter__(), "a loop from INDEX to INDEX by f32: it needs"),
    "assigned together": (
        lambda k, out, x: k.assign_all([k.variable("v", x[0]), k.variable("w", x[1])], [0, k.item]),
        "the variable 'w': expected type f32, got INDEX",
    ),
    "vector": (
        lambda k, out, x: k.vector("v", out, 4).load(k.reads("w", "u8"), k.item),
        "a vector of f32 was given the array 'w' of u8",
    ),
    "undeclared": (lambda k, out, x: out.__setitem__(0, Variable("f32", "y")), "'y' is declared in a block that has"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_with_the_operator_and_the_line(mistake: str) -> None:
    """It is raised when the kernel is built, before any compiler sees its text."""
    make, reason = MISTAKES[mistake]

    @built("double")
    def source() -> Source:
        k = KernelBuilder("double", wide=False)
        out, x = k.writes("out", float32), k.reads("x", float32)
        make(k, out, x)
        return k.source()

    line = MISTAKES[mistake][0].__code__.co_firstlineno
    with pytest.raises(ExpressionError, match=rf"of 'double' \(test_kernel_builder\.py, line {line}\): {reason}"):
        source()


def test_the_bound_of_a_loop_is_an_expression() -> None:
    """It has brackets where the comparison with the counter needs them."""
    k = KernelBuilder("bounds", wide=False)
    n = k.number("n")
    with k.loop("i", n // 2, least(n, 64)):
        pass
    assert k.source().body == "for (INDEX i = n / 2; i < (n < 64 ? n : 64); ++i) {\n}"


def test_a_variable_ends_with_its_block() -> None:
    """It is an error to use it after that, and its name is free again."""
    k = KernelBuilder("blocks", wide=False)
    with k.loop("i", 0, k.number("n")) as i:
        pass
    with pytest.raises(TypeError, match="'i' is declared in a block that has ended, or not at all"):
        k.let("j", i)
    with k.loop("i", 0, 2):
        pass


def test_a_call_with_other_arguments_is_the_error_of_python() -> None:
    """No line of the function is wrong."""

    @built("double")
    def source(wide: bool) -> Source:
        return KernelBuilder("double", wide).source()

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'wide'") as raised:
        source()  # type: ignore[call-arg]
    assert not isinstance(raised.value, ExpressionError)


def test_a_kernel_of_a_kernel_keeps_the_inner_place() -> None:
    """An error with a place is not given another one."""

    @built("inner")
    def inner() -> Source:
        return KernelBuilder("inner", wide=False).line(1 + constant("f32", 1) + M)  # type: ignore[return-value, arg-type]

    with pytest.raises(ExpressionError, match="of 'inner' "):
        built("outer")(inner)()


def test_a_kernel_is_a_program_of_each_dialect() -> None:
    """What the builder returns is a source like others, with the library functions that it needs."""
    k = KernelBuilder("halves", wide=False)
    out = k.writes("out", float16)
    out[k.item] = constant("f32", 1)
    program = k.source().program(C)
    assert "store_f16(1);" in program
    assert "u16 store_f16(f32" in program
