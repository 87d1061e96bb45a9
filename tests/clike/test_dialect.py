"""The dialects of C: all define the same macros and types, with the documented meaning."""

import re
import struct

import candelabra_clike.dialect as page
import pytest
from candelabra_clike import CUDA, OPENCL, C, Dialect, Source
from candelabra_clike.source import number, reads, writes
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import OpenCLEngine

pytestmark = pytest.mark.rounding


def words(dialect: Dialect) -> set[str]:
    """Return every macro and type that a preamble defines."""
    text = dialect.preamble + dialect.float64
    macros = re.findall(r"^\s*#define\s+(\w+)", text, re.MULTILINE)
    types = re.findall(r"typedef [\w<> ]+? (\w+)(?: __attribute__\(\(.*\)\))?;", text)
    return {*macros, *types}


def documented() -> set[str]:
    """Return the documented macros and types of every dialect; those after the vectors are only for ``serial``
    devices."""
    everywhere, _ = (page.__doc__ or "").split("``f32x8``")
    first_column = "\n".join(line[:42] for line in everywhere.splitlines())
    found = set(re.findall(r"``([A-Z][A-Z0-9_]+)\b", first_column))
    return found | {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "c64", "c128"}


def documented_vectors() -> set[str]:
    """Return the documented macros of the forms for ``serial`` devices."""
    _, serial = (page.__doc__ or "").split("``f32x8``")
    return set(re.findall(r"``([A-Z][A-Z0-9_]+)\b", serial.split("``BYTES_16``")[0]))


def documented_for_lanes() -> set[str]:
    """Return the documented macros and types of the forms for other devices."""
    _, lanes = (page.__doc__ or "").split("``f32x8``")
    return set(re.findall(r"``([A-Z][A-Z0-9_]+)\b", lanes[lanes.index("``BYTES_16``") :]))


@pytest.mark.parametrize("dialect", [OPENCL, CUDA, C], ids=lambda d: d.name)
def test_every_promised_word_is_defined(dialect: Dialect) -> None:
    """A kernel that uses only documented macros compiles in each language."""
    assert documented() - words(dialect) == set()


def test_vectors_are_in_the_dialects_of_processors() -> None:
    """C and OpenCL C define every word for vectors."""
    assert documented_vectors() - words(C) == set()
    assert documented_vectors() - words(OPENCL) == set()


def test_words_for_lanes_are_in_the_dialects_of_lanes() -> None:
    """Only a dialect with warps exchanges values between lanes."""
    assert documented_for_lanes() - words(CUDA) == set()
    assert documented_for_lanes() - words(OPENCL) == {"SHUFFLE"}
    assert (CUDA.warp, OPENCL.warp, C.warp) == (32, 1, 1)


def test_what_both_define_has_the_same_arguments() -> None:
    """A macro has the same number of arguments in each language."""

    def arguments(dialect: Dialect) -> dict[str, int]:
        text = dialect.preamble + dialect.float64
        return {name: len(inside.split(",")) for name, inside in re.findall(r"#define (\w+)\(([^)]*)\)", text)}

    ours, theirs = arguments(OPENCL), arguments(CUDA)
    shared = ours.keys() & theirs.keys()
    assert shared
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


@pytest.fixture(scope="module")
def engine() -> OpenCLEngine:
    """Return the engine of the first OpenCL device."""
    return OpenCLBackend("dialect").engine(0)


SIZES = {"u32": "I", "i32": "i", "u64": "Q", "f32": "f", "f64": "d"}


def computed(engine: OpenCLEngine, type: str, expression: str, needs_float64: bool = False) -> float:
    """Return the value of an expression on the device; ``a`` is a buffer of two numbers of the type, 5 and 3."""
    source = Source(
        "computed", (writes("out", type), reads("a", type), number("one", "i32")), f"out[0] = {expression};",
        float64=needs_float64,
    )  # fmt: skip
    code = SIZES[type]
    out, a = engine.allocate(8), engine.allocate(16)
    engine.write(a, 0, memoryview(struct.pack(f"2{code}", 5, 3)))
    engine.compile(source)(1, out, a, 1)
    return float(struct.unpack(code, engine.read(out, 0, struct.calcsize(code)))[0])


@pytest.mark.parametrize(
    ("type", "expression", "value"),
    [
        ("u32", "BITS_U32(1.0f)", 0x3F800000),
        ("f32", "BITS_F32(0x40490FDBu)", struct.unpack("f", struct.pack("I", 0x40490FDB))[0]),
        ("u64", "BITS_U64((f64)a[0]) >> 32", 0x40140000),
        ("f64", "BITS_F64((u64)0x4008000000000000ul)", 3.0),
        ("u64", "MULTIPLY_HIGH(0x8000000000000000ul, a[0] + a[0])", 5),
        ("f32", "SQRT_F32(a[0] * a[0])", 5),
        ("f64", "SQRT_F64(2.0)", 2**0.5),
        ("f64", "DIVIDE_F64(a[0], a[1])", 5 / 3),
        ("f64", "FMA_F64(a[0], a[1], -15.0)", 0),
        ("f32", "FMA_F32(a[0], a[1], 1.0f)", 16),
        ("f32", "C64(a[0], a[1]).y", 3),
        ("f64", "C128(a[0], a[1]).x", 5),
        ("u32", "GLOBAL_ID + 10u * GLOBAL_SIZE", 10),
        ("u32", "LOCAL_ID + LOCAL_ID_1 + GROUP_ID + GROUP_ID_1 + GROUP_ID_2", 0),
        ("i32", "a[0] >> one", 2),
    ],
)
def test_words_mean_what_their_page_says(engine: OpenCLEngine, type: str, expression: str, value: float) -> None:
    """Bits, products, roots, parts of complex numbers and ids are correct on the device."""
    if "64" in type + expression and not engine.traits.float64:
        pytest.fail("this device has no float64: run the tests on another one")
    assert computed(engine, type, expression, "BITS_U64" in expression) == value


def test_claims_are_won_once(engine: OpenCLEngine) -> None:
    """Exactly one of many work-items that claim one index succeeds; all their additions are done."""
    body = "if (COMPARE_AND_SWAP(out, 0u, 7u) == 0u) ATOMIC_ADD_U32(out + 1, 1u);\nATOMIC_ADD_U32(out + 2, 2u);"
    launch = engine.compile(Source("claims", (writes("out", "u32"),), body))
    out = engine.allocate(12)
    engine.write(out, 0, memoryview(bytes(12)))
    launch(1000, out)
    assert struct.unpack("3I", engine.read(out, 0, 12)) == (7, 1, 2000)


def test_groups_share_local_memory(engine: OpenCLEngine) -> None:
    """After a barrier, work-items of a group read each other's writes to local memory."""
    body = (
        "LOCAL u32 shared[8];\nshared[LOCAL_ID] = LOCAL_ID + 10u * GROUP_ID;\nBARRIER;\n"
        "out[GLOBAL_ID] = shared[GROUP_SIZE - 1u - LOCAL_ID];"
    )
    launch = engine.compile(Source("mirrored", (writes("out", "u32"),), body, group=8))
    out = engine.allocate(64)
    launch(2, out)
    assert struct.unpack("16I", engine.read(out, 0, 64)) == (*range(7, -1, -1), *range(17, 9, -1))


def test_loops_that_are_marked_compute_the_same(engine: OpenCLEngine) -> None:
    """`UNROLL` and `INDEPENDENT` only declare how a loop may be executed."""
    inner = "UNROLL\nfor (int k = 0; k < 4; ++k) sum += k;\n"
    body = f"INDEPENDENT\nfor (int i = 0; i < 37; ++i) {{ u32 sum = a[i];\n{inner}out[i] = sum; }}"
    launch = engine.compile(Source("marked", (writes("out", "u32"), reads("a", "u32")), body))
    out, a = engine.allocate(37 * 4), engine.allocate(37 * 4)
    engine.write(a, 0, memoryview(struct.pack("37I", *range(37))))
    launch(1, out, a)
    assert struct.unpack("37I", engine.read(out, 0, 37 * 4)) == tuple(range(6, 43))
