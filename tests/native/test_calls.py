"""The notation of the lists of calls."""

from __future__ import annotations

from math import inf, isnan

import pytest
from candelabra.dtypes import bfloat16, bool_, complex64, float32, int64, uint8
from candelabra_clike import StridedArray
from candelabra_native.pack import libraries
from candelabra_native.pack.calls import CallError, RecordedArray, RecordedCall, arguments, combined, parse, recorded
from candelabra_native.pack.replaying import DryEngine, EngineReplay

ENGINE = DryEngine("x86_64_v3")


def strided(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, buffer: object = None) -> StridedArray:
    """Return an array of float32 that is not contiguous."""
    return StridedArray(ENGINE, buffer or object(), shape, strides, offset, float32, 12, False)


def test_a_call_is_written_as_python_and_read_back() -> None:
    """Arrays have dtype and shape, and strides if they are not contiguous; numbers and words are themselves."""
    values = (
        ENGINE.empty((3, 4), float32), strided((4, 3), (1, 4)), ENGINE.empty((), bfloat16), None, True, -1, 0.5, -inf,
        2j, "none", (1, 2), (), int64, slice(1, None, -1), [ENGINE.empty((5,), uint8) for _ in range(3)], (1.0,),
    )  # fmt: skip
    call = recorded("op", float32, values)
    text = (
        "op.f32(f32[3, 4], f32[4, 3][1, 4], bf16[()], None, True, -1, 0.5, -inf, 2j, 'none', (1, 2), (), i64, "
        "slice(1, None, -1), 3 * u8[5], (1.0,))"
    )
    assert str(call) == text
    assert parse(text) == [call]


def test_a_number_that_is_not_one_is_read_back() -> None:
    """NaN has a word, like the infinities."""
    (call,) = parse("full.f32((), nan, inf)")
    assert isnan(call.arguments[1])
    assert call.arguments[2] == inf


def test_arrays_that_share_memory_name_their_buffer() -> None:
    """A kernel may depend on it: an array that it writes may overlap one that it reads."""
    memory = object()
    whole, shifted = strided((3,), (1,), 0, memory), strided((3,), (2,), 4, memory)
    call = recorded("add_", float32, (whole, shifted))
    assert str(call) == "add_.f32(f32[3][1][0, 0], f32[3][2][4, 0])"
    first, second = arguments(parse(str(call))[0], ENGINE)
    assert first.buffer is second.buffer
    assert (second.shape, second.strides, second.offset) == ((3,), (2,), 4)


def test_arrays_of_a_call_have_their_layout() -> None:
    """Those without strides are contiguous; a sequence of arrays is a list."""
    (call,) = parse("op.f32(f32[2, 3], c64[2, 3][1, 2], 2 * b[4])")
    dense, transposed, rows = arguments(call, ENGINE)
    assert (dense.contiguous, dense.strides, dense.size) == (True, (3, 1), 6)
    assert (transposed.contiguous, transposed.strides, transposed.dtype) == (False, (1, 2), complex64)
    assert [(row.shape, row.dtype) for row in rows] == [((4,), bool_)] * 2


def test_calls_that_differ_in_the_dtype_are_one_line() -> None:
    """The dtype is the letter T in such a line."""
    text = "add.T(T[4], T[4], i64[2]) for f32, i32\nneg.f64(f64[4])\n"
    calls = parse(f"# a comment\n\n{text}")
    assert [str(call) for call in calls] == [
        "add.f32(f32[4], f32[4], i64[2])", "add.i32(i32[4], i32[4], i64[2])", "neg.f64(f64[4])",
    ]  # fmt: skip
    assert combined(calls) == text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("add(f32[4])", r"expected operator\.dtype\(arguments\)"),
        ("add.f32(x=f32[4])", r"expected operator\.dtype\(arguments\)"),
        ("add.f33(f32[4])", "'f33'"),
        ("add.f32(g32[4])", "'g32'"),
        ("add.f32(f32[4]", "was never closed"),
        ("add.f32(4[4])", r"expected dtype\[shape\]"),
        ("add.f32(open('file'))", "malformed node or string"),
    ],
)
def test_other_text_is_no_call(line: str, reason: str) -> None:
    """The error has the line. Nothing in a line is run."""
    with pytest.raises(CallError, match=reason):
        parse(line)


def test_a_line_for_an_unknown_dtype_is_refused() -> None:
    """The error names the dtype and the line."""
    with pytest.raises(CallError, match=r"unknown dtype 'f33' in 'add\.T"):
        parse("add.T(T[4]) for f33")


def test_an_argument_without_a_notation_is_refused() -> None:
    """The error names the operator and the type."""
    with pytest.raises(CallError, match="op: an argument of type object has no notation"):
        recorded("op", float32, (object(),))


@pytest.mark.parametrize("name", ["short", pytest.param("full", marks=pytest.mark.thorough)])
def test_each_call_of_a_list_adds_a_kernel(name: str) -> None:
    """A line that adds nothing is left from templates that have changed: run ``tools/native_kernels.py``."""
    text = (libraries.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    replays = [EngineReplay(level) for level in ("x86_64_v3", "x86_64_v4")]
    useless = [str(call) for call in parse(text) if not sum(len(replay.added(call)) for replay in replays)]
    assert len(useless) <= len(text.splitlines()) // 20, useless


def test_a_call_is_equal_to_another_with_the_same_arguments() -> None:
    """Calls are values."""
    assert RecordedCall("neg", float32, (RecordedArray(float32, (2,)),)) == parse("neg.f32(f32[2])")[0]
