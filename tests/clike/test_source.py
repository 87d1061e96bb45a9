"""Kernels before compilation: dependencies, arguments, and equality."""

import pytest
from candelabra_clike import CUDA, OPENCL, Source
from candelabra_clike.source import number, reads, units, writes

COPY = Source("copy", (writes("out", "f32"), reads("a", "f32"), number("n")), "out[GLOBAL_ID] = a[GLOBAL_ID];")


def test_parameters_are_declared_in_order() -> None:
    """Buffers are pointers to global memory, read-only ones to constants; numbers are constant."""
    assert "KERNEL void copy(GLOBAL f32* out, GLOBAL const f32* a, const INDEX n) {" in COPY.text


def test_numbers_have_types_and_buffers_none() -> None:
    """An index has 32 bits, or 64 in the wide variant; launches set arguments by these types."""
    parameters = (writes("out", "f32"), number("n"), number("s", "f64"))
    assert Source("narrow", parameters, "").types() == ["", "u32", "f64"]
    assert Source("broad", parameters, "", wide=True).types() == ["", "u64", "f64"]


def test_the_index_type_comes_before_the_preamble() -> None:
    """The dialect's ids have the index type, so it is defined first."""
    for source, index in ((COPY, "u32"), (Source("copy", COPY.parameters, COPY.body, wide=True), "u64")):
        program = source.program(OPENCL)
        assert program.index(f"#define INDEX {index}\n") < program.index("#define GLOBAL_ID")


def test_contraction_is_off_but_where_it_is_asked_for() -> None:
    """`a * b + c` is rounded twice, as on the reference; polynomials and matrix products may enable contraction."""
    assert OPENCL.exact
    assert COPY.program(OPENCL).startswith(OPENCL.exact)
    assert OPENCL.exact not in Source("copy", COPY.parameters, COPY.body, contract=True).program(OPENCL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("out[0] = 1.0f;", False), ("const f64 x = 1; out[0] = x;", True), ("out[0] = C128(1, 2).x;", False)],
)
def test_float64_is_found_in_the_text(text: str, expected: bool) -> None:
    """A source that contains the type requires a device with float64, and includes that part of the preamble."""
    source = Source("found", (writes("out", "f32"),), text)
    assert source.float64 is expected
    assert ("typedef double f64" in source.program(OPENCL)) is expected


def test_float64_is_found_in_what_the_text_needs() -> None:
    """A parameter or a library function with float64 has the same effect as the text."""
    assert Source("stored", (writes("out", "f64"),), "out[0] = 1;").float64
    assert Source("pair", (writes("out", "c128"),), "out[0].x = 1;").float64
    assert not COPY.float64


def test_equal_sources_are_equal_keys() -> None:
    """Compiled kernels are cached by source: every part that changes the program changes the key."""
    same = Source("copy", COPY.parameters, COPY.body)
    assert (same, hash(same)) == (COPY, hash(COPY))
    others = [
        Source("other", COPY.parameters, COPY.body),
        Source("copy", COPY.parameters[:2], COPY.body),
        Source("copy", COPY.parameters, "out[0] = a[0];"),
        Source("copy", COPY.parameters, COPY.body, group=64),
        Source("copy", COPY.parameters, COPY.body, wide=True),
        Source("copy", COPY.parameters, COPY.body, contract=True),
        Source("copy", COPY.parameters, COPY.body, float64=True),
    ]
    assert len({COPY, same, *others}) == 1 + len(others)


def test_whole_groups_get_the_true_number() -> None:
    """If launches are rounded up, the last argument is the number of work-items, and the excess returns at once."""
    assert CUDA.rounds_up
    program = COPY.program(CUDA)
    assert "const INDEX n, const INDEX work_items) {\nif (GLOBAL_ID >= work_items) return;\n" in program
    assert "work_items" not in COPY.program(OPENCL)
    grouped = Source("copy", COPY.parameters, COPY.body, group=32)
    assert "work_items" not in grouped.program(CUDA)
    assert "KERNEL REQUIRED_GROUP(32) void copy(" in grouped.program(CUDA)


def test_many_kernels_share_a_program() -> None:
    """Kernels with the same preamble share a text with numbered entries up to a size; the library is included once."""
    sources = [
        Source(f"k{n}", (writes("out", "u16"),), f"out[{n}] = store_f16(1.0f);", contract=n == 4) for n in range(5)
    ]
    made = list(units(sources, OPENCL, size=3))
    assert [first.name for first, _ in made] == ["k0", "k3", "k4"]
    assert "void k0_0(" in made[0][1]
    assert "void k2_2(" in made[0][1]
    assert made[0][1].count("u16 store_f16(f32 x)") == 1
    assert OPENCL.exact not in made[2][1]
