"""The pickle reader: the objects that it builds, and the pickles that it refuses."""

from __future__ import annotations

import io
import os
import pickle  # noqa: TID251 - only its writing half, to make files
import pickletools
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from candelabra._serialization.pickle_reader import Builder, PickleReader
from candelabra.errors import FileFormatError
from hypothesis import given
from hypothesis import strategies as st


class BuiltObject:
    """An object that the builders of these tests create."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments


NAMES = {
    "m.make": Builder("m.make", lambda arguments: BuiltObject(*arguments)),
    "m.list": Builder("m.list", lambda arguments: list(arguments[0])),
    "m.fail": Builder("m.fail", lambda arguments: int(arguments[0])),
    "m.word": "a word",
}


def _read(
    data: bytes, replace: Callable[[object], object] = lambda value: ("built", value), persistent: Any = None
) -> Any:
    reader = PickleReader("x", NAMES, persistent)
    return reader.finish(reader.read(io.BytesIO(data)), replace)


_keys = st.integers(-(2**63), 2**64 - 1)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | _keys | st.binary() | st.none() | st.floats(allow_nan=False), inner)
        | st.frozensets(_keys | st.text())
        | st.sets(_keys)
    ),
    max_leaves=30,
)


@pytest.mark.parametrize("protocol", [4, 5])
@given(value=_values)
def test_plain_values_come_back(protocol: int, value: object) -> None:
    """Numbers, strings, bytes and containers are restored."""
    assert _read(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [0, 1, 2, 3])
def test_old_protocols_come_back(protocol: int) -> None:
    """Protocol 0 is text; it calls functions for sets and bytes, so these are not tested."""
    value = [None, True, False, 0, -1, 2**31, 2**100, -(2**3000), 1.5, "é\n", (), (1,), (1, 2), (1, 2, 3, 4), {"a": []}]
    assert _read(pickle.dumps(value, protocol)) == value


def test_strings_of_python_2_come_back() -> None:
    """They are decoded as latin-1; PyTorch's files of that time contain only ASCII strings."""
    assert _read(b"(S'a'\nU\x01bT\x01\0\0\0cl.") == ["a", "b", "c"]


def test_a_bytearray_comes_back() -> None:
    """Protocol 5 has an opcode for it."""
    assert _read(pickle.dumps(bytearray(b"ab"), 5)) == bytearray(b"ab")


def test_sharing_and_cycles_come_back() -> None:
    """Containers keep their identity, also if they contain themselves."""
    inner: list[object] = []
    value = {"a": inner, "b": inner, "t": (inner,)}
    inner.append(value)
    back = _read(pickle.dumps(value))
    assert back["a"] is back["b"]
    assert back["t"][0] is back["a"]
    assert back["a"][0] is back


def test_what_builders_make_is_replaced_everywhere_and_once() -> None:
    """Replacement works in lists, dicts, nested tuples and at the root; equal objects have one replacement."""
    data = b"cm\nmake\n)R\x94(](h\0e}X\x01\0\0\0kh\0sh\0\x85\x85t."
    a_list, a_dict, a_tuple = _read(data.replace(b"\x94(", b"\x940("), lambda value: [value])
    assert type(a_list[0][0]) is BuiltObject
    assert a_list[0] is a_dict["k"] is a_tuple[0][0]
    assert _read(b"cm\nmake\n)R.", lambda value: type(value)) is BuiltObject


def test_arguments_are_not_replaced() -> None:
    """An argument of a builder may be another builder or a built object, as in PyTorch's pickles."""
    built = _read(b"cm\nmake\n(cm\nmake\ncm\nmake\n)RtR.", lambda value: value)
    assert built.arguments[0] is NAMES["m.make"]
    assert type(built.arguments[1]) is BuiltObject


def test_a_name_may_stand_for_a_value() -> None:
    """The name is replaced by the value."""
    assert _read(b"cm\nword\n.") == "a word"
    assert _read(b"\x8c\x01m\x8c\x04word\x93.") == "a word"


def test_references_are_resolved_by_the_caller() -> None:
    """Both forms of a persistent id are supported."""
    assert _read(b"Pname\n.", persistent=str.upper) == "NAME"
    assert _read(b"\x8c\x04nameQ.", persistent=str.upper) == "NAME"


def test_attributes_of_a_dict_are_dropped() -> None:
    """A dict in place of an OrderedDict may have attributes."""
    assert _read(b"}}X\x01\0\0\0aK\x01sb.") == {}


def test_marks_and_pops() -> None:
    """The instructions that remove one value, all values up to the mark, and the mark work."""
    assert _read(b"K\x01K\x020.") == 1
    assert _read(b"K\x01(K\x02K\x031.") == 1
    assert _read(b"K\x01(0.") == 1
    assert _read(b"K\x012\x86.") == (1, 1)
    assert _read(b"(K\x01K\x02d.") == {1: 2}


def test_the_file_is_left_behind_the_pickle() -> None:
    """PyTorch's old files consist of several consecutive pickles."""
    f = io.BytesIO(b"K\x01.K\x02.rest")
    assert [PickleReader("x", {}).read(f), PickleReader("x", {}).read(f), f.read()] == [1, 2, b"rest"]


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo evil > evil",)


def _bomb_of_copies() -> bytes:
    """Return a list of 1,000 items, copied 1,000 times: 12,000 bytes give 8 MB, growing with the square."""
    return b"cm\nlist\nq\x000](" + b"N" * 1000 + b"eq\x010](" + b"h\0h\1\x85R" * 1000 + b"e."


HOSTILE = [
    (pickle.dumps(_Evil()), f"expected numbers, strings, containers and tensors, got {os.system.__module__}.system; "),
    (
        b"cos\nsystem\n.",
        "expected numbers, strings, containers and tensors, got os.system; candelabra imports and calls",
    ),
    (b"\x8c\x08builtins\x8c\x04eval\x93.", "got builtins.eval; "),
    (b"\x8c\x01mK\x01\x93.", "expected a name, got a str and an int"),
    (b"c" + b"x" * 1000 + b"\ny\n.", f"got {'x' * 200}; "),
    (b"(ios\nsystem\n.", "expected opcodes that build values, got INST os system"),
    (b"(cm\nmake\no.", "expected opcodes that build values, got OBJ"),
    (b"cm\nmake\n)\x81.", "expected opcodes that build values, got NEWOBJ"),
    (b"cm\nmake\n)}\x92.", "expected opcodes that build values, got NEWOBJ_EX"),
    (b"\x82\x01.", "expected opcodes that build values, got EXT1 1"),
    (b"\x97.", "expected opcodes that build values, got NEXT_BUFFER"),
    (b"cm\nmake\n.", "expected values, got the class or function m.make as a value"),
    (b"]cm\nmake\na.", "expected values, got the class or function m.make as a value"),
    (b"K\x01)R.", "expected a known class or function and its arguments, got an int and a tuple"),
    (b"cm\nmake\n]R.", "expected a known class or function and its arguments, got a Builder and a list"),
    (b"cm\nfail\nX\x01\0\0\0x\x85R.", "expected arguments of m.fail, got ValueError: invalid literal for int()"),
    (b"cm\nfail\n)R.", "expected arguments of m.fail, got IndexError: tuple index out of range"),
    (
        _bomb_of_copies(),
        "expected copies of as many items as the pickle has bytes, got more; the file may be malicious",
    ),
    (b"})Ns.", "expected plain values as keys, got a tuple"),
    (b"}\x8a\x09\0\0\0\0\0\0\0\0\x01Ns.", "expected plain values as keys, got an int"),
    (b"}]Ns.", "expected plain values as keys, got a list"),
    (b"}(N\x85\x85\x85Nu.", "expected plain values as keys, got a tuple"),
    (b"}" + b")" + b"\x85" * 100_000 + b"Ns.", "expected plain values as keys, got a tuple"),
    (b"\x8f(]\x90.", "expected plain values as keys, got a list"),
    (b"(]\x91.", "expected plain values as keys, got a list"),
    (b")Na.", "expected a list to append to, got a tuple"),
    (b")(Ne.", "expected a list to append to, got a tuple"),
    (b"]NNs.", "expected a dict, and pairs for it, got a list and 2 values"),
    (b"}(Nu.", "expected a dict, and pairs for it, got a dict and 1 values"),
    (b"(Nd.", "expected a dict, and pairs for it, got a dict and 1 values"),
    (b"](N\x90.", "expected a set to add to, got a list"),
    (b"]}b.", "expected an OrderedDict to set attributes of, got a list"),
    (b"Q.", "expected a value on the stack of the pickle, got none"),
    (b"NQ.", "expected a pickle of its own, got a reference to an object outside it"),
    (b".", "expected a value on the stack of the pickle, got none"),
    (b"N(a.", "expected a value on the stack of the pickle, got none"),
    (b"t.", "expected a mark on the stack of the pickle, got none"),
    (b"1.", "expected a mark on the stack of the pickle, got none"),
    (b"h\5.", "expected an object that was stored, got number 5, which was not"),
    (b"Np4294967296\n.", "expected an index of 32 bits, got another"),
    (b"Np-1\n.", "expected an index of 32 bits, got another"),
    (b"", "expected a pickle, got ValueError: pickle exhausted before seeing STOP"),
    (b"\xff.", "expected a pickle, got ValueError: at position 0, opcode b'\\xff' unknown"),
    (b"X\xff\xff\xff\xffab.", "expected a pickle, got ValueError: expected 4294967295 bytes in a unicodestring4"),
    (b"\x8e" + b"\xff" * 8 + b"ab.", "expected a pickle, got ValueError"),
    (b"\x8b\xff\xff\xff\xffab.", "expected a pickle, got ValueError: long4 byte count < 0: -1"),
    (b"T\xff\xff\xff\xffab.", "expected a pickle, got ValueError: string4 byte count < 0: -1"),
    (b"X\x01\0\0\0\xff.", "expected a pickle, got UnicodeDecodeError"),
    (b"ca\\o\nb\n.", "expected a pickle, got DeprecationWarning: invalid escape sequence"),
    (b"I" + b"9" * 5000 + b"\n.", "expected a pickle, got ValueError: Exceeds the limit"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE)
def test_hostile_pickles_are_refused(data: bytes, message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported or called, and the error names the object."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"^cannot read x: .*" + re.escape(message)):
        _read(data)
    assert os.listdir(tmp_path) == []


def test_nothing_is_imported() -> None:
    """An import does not take place even to find that the module does not exist."""
    before = set(sys.modules)
    with pytest.raises(FileFormatError, match=r"got antigravity\.fly"):
        _read(b"cantigravity\nfly\n.")
    assert "antigravity" not in set(sys.modules) - before


@pytest.mark.parametrize(
    "data",
    [
        b"]" * 100_000 + b"a" * 99_999 + b".",
        b")" + b"\x85" * 100_000 + b".",
        b"}" + b"K\x01}" * 100_000 + b"s" * 100_000 + b".",
        b"]q\0" + b"h\0h\0\x86" * 10 + b".",
    ],
    ids=["lists", "tuples", "dicts", "references"],
)
def test_deep_nesting_is_no_danger(data: bytes) -> None:
    """Neither reading nor deleting the data recurses."""
    assert type(_read(data)) in (list, tuple, dict)


def test_references_to_references_do_not_multiply() -> None:
    """Sixty nested tuples of two form a tree of 2**60 leaves, of which each tuple is visited once."""
    value = _read(b"cm\nmake\n)R" + b"2\x86" * 60 + b".", lambda built: 7)
    for _ in range(60):
        assert value[0] is value[1]
        value = value[0]
    assert value == 7


@given(st.binary(max_size=60))
def test_random_bytes_give_the_documented_error_or_a_value(data: bytes) -> None:
    """Any bytes are accepted as input."""
    try:
        _read(data + b".")
    except FileFormatError:
        pass


@given(st.lists(st.sampled_from([code.code.encode("latin-1") for code in pickletools.opcodes if code.arg is None])))
def test_random_programs_give_the_documented_error_or_a_value(program: list[bytes]) -> None:
    """Random bytes rarely pass the first instruction; these programs do."""
    try:
        _read(b"".join([b"](", *program, b"."]), persistent=lambda saved: saved)
    except FileFormatError:
        pass
