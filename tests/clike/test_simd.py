"""Vectors of a processor in typed kernels: their text, and what C has no vectors for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from candelabra.dtypes import float16
from candelabra_clike.language import INDEX, Value, call, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.language.simd import declare_combined, lane_of


def test_a_loop_over_vectors_has_the_statements_of_one_over_numbers() -> None:
    """What is indexed by the counter is a vector; other values are the same for all lanes."""
    k = KernelBuilder("softmax", wide=True)
    out, x, n, scale = k.writes("out", "f32"), k.reads("x", "f32"), k.number("n"), k.number("scale", "f32")
    row, held = k.pointer("row", x, k.item * n), k.array("held", "f32", 64)
    top = k.let("top", row[0] * scale)
    sums = k.variable("sums", constant("f32", 0), lanes=16)
    with k.vectors("i", 0, n, 16) as i:
        e = k.let("e", call("exp", row[i] * (scale + 1) - select(top > row[1], top, 0)))
        held[i] = select(e > 0, e, top)
        k.assign(sums, sums + e)
        out[k.item * n + i] = 0
    assert k.source().body.splitlines()[3:] == [
        "f32x16 sums = (f32x16)(0);", "for (INDEX i = 0; i < n; i += 16) {",
        "const f32x16 e = exp_x16(LOAD_X16(f32, row + i) * (scale + 1) - (top > row[1] ? top : 0));",
        "PRIVATE_X16(f32, held + (i)) = e > 0 ? e : top;", "sums = sums + e;",
        "STORE_X16(f32, out + (GLOBAL_ID * n + i), (f32x16)(0));", "}",
    ]  # fmt: skip


def test_several_vectors_of_an_iteration() -> None:
    """Their elements follow one another, and a lane is a number."""
    k = KernelBuilder("pairs", wide=False)
    out, x = k.writes("out", "f64"), k.reads("x", "f64")
    with k.vectors("i", 0, k.items, lanes=8, together=2) as i:
        v = k.let("v", x[i] * x[i + 8])
        out[k.item] = lane_of(v, 3)
    assert k.source().body.splitlines() == [
        "for (INDEX i = 0; i < GLOBAL_SIZE; i += 16) {",
        "const f64x8 v = LOAD_X8(f64, x + i) * LOAD_X8(f64, x + (i + 8));", "out[GLOBAL_ID] = v.s3;", "}",
    ]  # fmt: skip


def test_lanes_are_combined_by_halves() -> None:
    """The order of additions is that of a vector of eight, which is the sum of the halves of one of sixteen."""
    k = KernelBuilder("total", wide=False)
    declare_combined(k, "total", k.variable("v", constant("f32", 1), lanes=16), operator.add)
    assert k.source().body.splitlines() == [
        "f32x16 v = (f32x16)(1);", "const f32x8 total_8 = v.lo + v.hi;",
        *[f"const f32 total_4_{i} = total_8.s{i} + total_8.s{i + 4};" for i in range(4)],
        "const f32 total_2_0 = total_4_0 + total_4_2;", "const f32 total_2_1 = total_4_1 + total_4_3;",
        "const f32 total = total_2_0 + total_2_1;",
    ]  # fmt: skip


def test_elements_of_any_size_are_copied_by_vectors() -> None:
    """Vectors of integers are those of the memory's type."""
    k = KernelBuilder("copy", wide=False)
    out, x = k.writes("out", "u8"), k.reads("x", "u8")
    with k.vectors("j", k.item, k.items, 8) as j:
        out[j] = x[j]
    assert "STORE_X8(u8, out + (j), LOAD_X8(u8, x + j));" in k.source().body


@contextmanager
def eight(k: KernelBuilder, x: KernelArray) -> Iterator[tuple[Value, Value]]:
    """A loop over vectors of eight, with its counter and an element."""
    with k.vectors("i", 0, k.items, 8) as i:
        yield i, x[i]


def stored_in_a_number(k: KernelBuilder, x: KernelArray) -> None:
    """Give a variable of one lane the value of a vector."""
    total = k.variable("total", constant("f32", 0))
    with eight(k, x) as (_, element):
        k.assign(total, total + element)


def mixed(k: KernelBuilder, x: KernelArray) -> None:
    """Add vectors of two sizes."""
    v = k.variable("v", constant("f32", 0), lanes=16)
    with eight(k, x) as (_, element):
        k.assign(v, v + element)


def within(make: Callable[[KernelBuilder, KernelArray, Value, Value], object]) -> Callable[..., None]:
    """Return a mistake within a loop over vectors."""

    def mistaken(k: KernelBuilder, x: KernelArray) -> None:
        with eight(k, x) as (i, element):
            make(k, x, i, element)

    return mistaken


MISTAKES: dict[str, tuple[Callable[[KernelBuilder, KernelArray], object], str]] = {
    "a number": (stored_in_a_number, "expected 1 lanes, got a vector of 8"),
    "two sizes": (mixed, "vectors of 8 and of 16 lanes"),
    "distance": (within(lambda k, x, i, e: x[i * 2]), "the index of a vector: expected a sum with the counter"),
    "twice": (within(lambda k, x, i, e: x[i + i]), "the index of a vector: expected a sum with the counter"),
    "condition": (within(lambda k, x, i, e: k.when(e > 0).__enter__()), "expected 1 lanes, got a vector of 8"),
    "function": (within(lambda k, x, i, e: k.let("y", call("tanh", e))), "an expression that has no form for vectors"),
    "four lanes": (
        lambda k, x: k.let("y", call("exp", k.variable("v", constant("f32", 0), lanes=4))),
        "an expression that has no form for vectors",
    ),
    "choice": (
        within(lambda k, x, i, e: k.let("y", select(e > 0, constant("f32", 1), 0))),
        "a choice by a vector between two numbers, or the reverse",
    ),
    "half precision": (
        within(lambda k, x, i, e: k.reads("h", float16)[i]), "the array 'h' has no vectors: it is converted, or has",
    ),
    "dims": (within(lambda k, x, i, e: k.array("a", "f32", 2, 8)[i, 0]), "the array 'a' has no vectors"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_before_a_compiler_sees_it(mistake: str) -> None:
    """C has fewer operations of vectors than of numbers."""
    make, reason = MISTAKES[mistake]
    k = KernelBuilder("vectors", wide=False)
    with pytest.raises(TypeError, match=reason):
        make(k, k.reads("x", "f32"))


def test_the_counter_is_a_number() -> None:
    """It is the index of the first lane, and the same for all."""
    k = KernelBuilder("count", wide=False)
    with k.vectors("i", 0, k.items, 8) as i:
        assert k.let("first", i * 2).type == INDEX
    assert "const INDEX first = i * 2;" in k.source().body
