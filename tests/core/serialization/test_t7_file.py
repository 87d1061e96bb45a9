"""LuaTorch's files, which `t7_writer` writes."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from candelabra._serialization import t7_file
from candelabra.errors import FileFormatError
from hypothesis import given
from hypothesis import strategies as st

from tests.core.serialization.fake_tensor import from_stored
from tests.core.serialization.t7_writer import KINDS, Function, Storage, Table, Tensor, Torch
from tests.core.serialization.t7_writer import written as _write


def _read(data: bytes) -> Any:
    assert t7_file.looks_like(data[:512])
    return t7_file.read(io.BytesIO(data), "x.t7", from_stored)


def _list(*values: object) -> Table:
    return Table(*enumerate(values, 1))


def _floats(*values: float) -> Tensor:
    return Tensor("Float", (len(values),), (1,), 1, Storage("Float", list(values)))


FORMS = pytest.mark.parametrize("form", [{"long": 8}, {"long": 4}, {"ascii": True}], ids=["64-bit", "32-bit", "ascii"])


@FORMS
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (False, False),
        (3.0, 3),
        (-0.0, -0.0),
        (0.1, 0.1),
        (2.0**60, 2.0**60),
        (float("inf"), float("inf")),
        ("", ""),
        ("é x\ny", "é x\ny"),
        (b"\xff\0", b"\xff\0"),
        (Table(), {}),
        (_list("a", 2, None), ["a", 2, None]),
        (Table((2, "b"), (1, "a")), ["a", "b"]),
        (Table((0, "a"), (1, "b")), {0: "a", 1: "b"}),
        (Table((1, "a"), (3, "b")), {1: "a", 3: "b"}),
        (Table((1, "a"), ("n", 1)), {1: "a", "n": 1}),
        (Table((True, 1), (0.5, 2), (b"\xff", 3)), {True: 1, 0.5: 2, b"\xff": 3}),
        (_list(_list(_list(1))), [[[1]]]),
    ],
)
def test_values_and_tables_come_back(form: dict[str, Any], value: object, expected: object) -> None:
    """Integral numbers become int; a table whose keys are 1 to n in any order becomes a list."""
    back = _read(_write(value, **form))
    assert repr(back) == repr(expected)


@FORMS
@pytest.mark.parametrize("device", ["", "Cuda"])
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_every_type_come_back(form: dict[str, Any], kind: str, device: str) -> None:
    """CUDA tensors have the same form."""
    values = [0, 1, -2, 3, 4, 5] if kind != "Byte" else [0, 1, 200, 3, 4, 5]
    array = np.array(values, dtype=KINDS[kind])
    plain = array.tolist()
    tensor = Tensor(device + kind, (2, 3), (3, 1), 1, Storage(device + kind, plain))
    back = _read(_write(_list(tensor, tensor, tensor.storage), **form))
    assert back[0].stored_values == (KINDS[kind], (2, 3), array.tobytes(), False)
    assert back[0] is back[1]
    assert back[2].stored_values == (KINDS[kind], (6,), array.tobytes(), False)


@FORMS
def test_views_come_back(form: dict[str, Any]) -> None:
    """Strides, offsets starting at 1, shared storages and empty tensors are supported."""
    storage = Storage("Float", [float(i) for i in range(6)])
    value = _list(
        Tensor("Float", (3, 2), (1, 3), 1, storage),
        Tensor("Float", (2,), (2,), 3, storage),
        Tensor("Float", (), (), 1, None),
        Tensor("Float", (), (), 1, Storage("Float", [])),
        Tensor("Cuda", (2,), (1,), 5, Storage("Cuda", [float(i) for i in range(6)])),
        Storage("Int", []),
    )
    base = np.arange(6, dtype="float32")
    back = _read(_write(value, **form))
    assert [tensor.shape for tensor in back] == [(3, 2), (2,), (0,), (0,), (2,), (0,)]
    assert back[0].data == base.reshape(2, 3).T.tobytes()
    assert back[1].data == back[1].data == np.float32([2, 4]).tobytes()
    assert back[4].data == np.float32([4, 5]).tobytes()


@FORMS
def test_a_module_comes_back_as_a_dict_of_its_fields(form: dict[str, Any]) -> None:
    """The dict has the class name; a module that occurs twice is one dict."""
    linear = Torch("nn.Linear", Table(("weight", _floats(1, 2)), ("train", True)))
    value = Torch("nn.Sequential", Table(("modules", _list(linear, linear))))
    back = _read(_write(value, **form))
    assert back["__class__"] == "nn.Sequential"
    assert back["modules"][0] is back["modules"][1]
    assert back["modules"][0]["__class__"] == "nn.Linear"
    assert back["modules"][0]["train"] is True
    assert back["modules"][0]["weight"].data == struct.pack("<2f", 1, 2)


@FORMS
def test_what_is_no_table_is_the_value_of_its_object(form: dict[str, Any]) -> None:
    """A class may write itself as any value."""
    assert _read(_write(Torch("tds.Thing", 5), **form)) == {"__class__": "tds.Thing", "value": 5}
    other = Torch("a", Torch("b", Table()))
    assert _read(_write(other, **form)) == {"__class__": "a", "value": {"__class__": "b"}}


def test_an_object_of_a_time_before_versions_comes_back() -> None:
    """The class name is in the position of the version."""
    assert _read(_write(Torch("nn.Identity", Table(("a", 1)), version=None))) == {"__class__": "nn.Identity", "a": 1}


@FORMS
@pytest.mark.parametrize("kind", [6, 7, 8])
def test_a_function_is_passed_over(form: dict[str, Any], kind: int) -> None:
    """The values that it closes over are omitted, but may be referenced later."""
    shared = _list(1, 2)
    function = Function(kind, _list(Table(("name", "x"), ("value", shared))))
    back = _read(_write(Table(("f", function), ("shared", shared)), **form))
    assert back == {"f": {"__class__": "function"}, "shared": [1, 2]}


@FORMS
def test_an_object_may_contain_itself(form: dict[str, Any]) -> None:
    """Modules refer to their parents, and a function may close over itself."""
    child = Torch("nn.Identity", Table())
    parent = Torch("nn.Sequential", Table(("modules", _list(child))))
    child.fields = Table(("parent", parent))
    back = _read(_write(parent, **form))
    assert back["modules"][0]["parent"] is back
    function = Function(8, None)
    function.closed_over = _list(function)
    assert _read(_write(_list(function, function), **form)) == [{"__class__": "function"}] * 2


def test_deep_nesting_is_no_danger() -> None:
    """A linked list of 100,000 tables is read."""
    depth = 100_000
    parts = [struct.pack("<iii", 3, i, 1) + struct.pack("<id", 1, 1) for i in range(depth)]
    back = _read(b"".join(parts) + struct.pack("<i", 0))
    for _ in range(depth):
        (back,) = back
    assert back is None


@FORMS
def test_every_prefix_is_an_error(form: dict[str, Any]) -> None:
    """A truncated file is never read as a smaller one, unless only trailing white space of a text file is missing."""
    data = _write(Table(("m", Torch("nn.Linear", Table(("w", _floats(1, 2))))), ("n", _list(1, "ab"))), **form)
    for end in range(4, len(data.rstrip())):
        with pytest.raises(FileFormatError, match=r"^cannot read x\.t7: expected .*, got "):
            _read(data[:end])


def _ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def _class(name: bytes) -> bytes:
    return _ints(4, 1, 3) + b"V 1" + _ints(len(name)) + name


def _tensor(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, storage: object, kind: str = "Byte"
) -> bytes:
    return _write(Tensor(kind, shape, strides, offset, storage))


TWO = Storage("Byte", [1, 2])
DAMAGED: list[tuple[bytes, str]] = [
    (_ints(3, 1, 2, 0), "expected 4 bytes at byte 16, got the end of the file after 0; truncated"),
    (_ints(3, 1, -1), "expected the size of a table, got -1"),
    (_ints(3, 1, 1, 9), "expected the type of an object, 0 to 8, got 9"),
    (_ints(3, 1, 1, -1), "expected the type of an object, 0 to 8, got -1"),
    (_ints(2, -5), "expected the length of a string, got -5"),
    (_ints(2, 2**31 - 1) + b"ab", "expected 2147483647 bytes at byte 8, got the end of the file after 2; truncated"),
    (_ints(6, -5), "expected the length of a function, got -5"),
    (_ints(4, 1, 3) + b"V 1" + _ints(1) + b"\xff", r"expected the name of a class, got b'\xff'"),
    (_ints(0, 0), "expected the end of the file at byte 4, got 8 bytes"),
    (_class(b"torch.ByteStorage") + struct.pack("<q", -1), "expected the length of a storage, got -1"),
    (_class(b"torch.LongStorage") + struct.pack("<q", 2**62), f"expected {2**65} bytes at byte "),
    (_class(b"torch.ByteTensor") + _ints(-1), "expected the number of dimensions, got -1"),
    (_class(b"torch.ByteTensor") + _ints(65), "expected at most 64 dimensions, got 65"),
    (
        _tensor((3,), (1,), 1, TWO),
        "expected a tensor inside its storage, got shape (3,), strides (1,) and offset 0 reach",
    ),
    (_tensor((1,), (1,), 0, TWO), "shape (1,), strides (1,) and offset -1 must not be negative"),
    (_tensor((-1,), (1,), 1, TWO), "must not be negative"),
    (_tensor((2**62,), (0,), 1, TWO), "the limit for that is 268435456"),
    (_tensor((1,), (1,), 1, None), "reach element 0 of a storage of 0"),
    (_tensor((1,), (1,), 1, Table()), "expected a storage of uint8, got a table"),
    (_tensor((1,), (1,), 1, Torch("nn.Linear", None)), "expected a storage of uint8, got a nn.Linear"),
    (_tensor((1,), (1,), 1, 5), "expected a storage of uint8, got a second 5"),
    (_tensor((1,), (1,), 1, Storage("Char", [1])), "expected a storage of uint8, got a tensor or storage"),
    (_write(Table((None, 1))), "expected numbers, strings or booleans as keys, each once, got a nil"),
    (_write(Table((Table(), 1))), "expected numbers, strings or booleans as keys, each once, got a table"),
    (
        _write(Table((_floats(1), 1))),
        "expected numbers, strings or booleans as keys, each once, got a tensor or storage",
    ),
    (_write(Table((True, 1), (1, 2))), "expected numbers, strings or booleans as keys, each once, got a second 1"),
    (_write(Table((1, 1), (1, 2))), "expected numbers, strings or booleans as keys, each once, got a second 1"),
    (_write(Table((2, 1), (2, 2), (1, 3))), "expected numbers, strings or booleans as keys, each once, got a second 2"),
    (b"3\n1\n2\n", "expected a number at byte 6, got the end of the file; truncated"),
    (b"3\nx\n", "expected an integer, got b'x'"),
    (b"1\nx\n", "expected a number, got b'x'"),
    (b"3\n" + b"9" * 9 + b"\n0\n5\n", "expected the end of the file at byte 14, got 16 bytes"),
    (b"3\n1\n" + b"9" * 5000, "expected an int of 32 bits, got 999"),
    (b"3\n2147483648\n0\n", "expected an int of 32 bits, got 2147483648"),
    (b"2\n5\nab\n", "expected 5 bytes at byte 4, got the end of the file after 3; truncated"),
    (_write(Storage("Short", [70_000]), ascii=True), "expected numbers of int16, got "),
    (_write(Storage("Half", [1e9]), ascii=True), "expected numbers of float16, got "),
    (_write(Storage("Int", [1], length=2**40), ascii=True), "expected a number at byte "),
]


@pytest.mark.parametrize(("data", "message"), DAMAGED)
def test_a_damaged_file_says_what_is_wrong(data: bytes, message: str) -> None:
    """Every number in the file may be invalid."""
    with pytest.raises(FileFormatError, match=r"^cannot read x\.t7: .*" + re.escape(message)):
        _read(data)


def test_the_error_is_that_of_the_attempt_that_read_more() -> None:
    """The size of a long, 4 or 8 bytes, is unknown; the wrong guess fails early, and its error is not useful."""
    value = _list(_floats(1, 2), Table((None, 1)))
    for long in (4, 8):
        with pytest.raises(FileFormatError, match="as keys, each once, got a nil"):
            _read(_write(value, long=long))


@pytest.mark.parametrize("write", [_write, lambda value: _write(value, ascii=True)], ids=["binary", "ascii"])
@given(data=st.data())
def test_damage_gives_the_documented_error_or_a_value(write: Callable[[object], bytes], data: st.DataObject) -> None:
    """Up to three bytes of a file are changed."""
    module = Torch("nn.Linear", Table(("weight", _floats(1, 2)), ("f", Function(8, Table()))))
    file = bytearray(write(_list(module, module, "text", None)))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    if t7_file.looks_like(bytes(file[:512])):
        try:
            _read(bytes(file))
        except FileFormatError:
            pass
