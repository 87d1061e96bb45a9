"""safetensors files, compared with the package of that name, and damaged files."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from candelabra._serialization import safetensors_file, tree
from candelabra.errors import FileFormatError
from hypothesis import given
from hypothesis import strategies as st

from tests.core.serialization.fake_tensor import ACCESS, FakeTensor, floats, from_stored

DTYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


def _numpy(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _tensor(dtype: str, *shape: int) -> FakeTensor:
    array = np.arange(np.prod(shape, dtype=int)).astype(_numpy(dtype))
    return FakeTensor(array.tobytes(), dtype, shape)


def _write(obj: object) -> bytes:
    f = io.BytesIO()
    safetensors_file.write(f, obj, ACCESS)
    return f.getvalue()


def _read(data: bytes) -> Any:
    return safetensors_file.read(io.BytesIO(data), "x.safetensors", from_stored)


def _file(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _entry(dtype: object = "U8", shape: object = (2,), offsets: object = (0, 2)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def _document(node: object = None, notes: object = None, version: object = 1) -> dict[str, object]:
    text = json.dumps({"version": version, "tree": node, "tensors": {} if notes is None else notes})
    return {"__metadata__": {"candelabra": text}}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_every_dtype_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    """Shape and bytes are restored, also without dims or elements."""
    tensor = _tensor(dtype, *shape)
    assert _read(_write([tensor]))[0].stored_values == tensor.stored_values


def test_containers_and_sharing_come_back() -> None:
    """A whole checkpoint is stored in one file."""
    w = floats(1, 2)
    w.requires_grad = True
    obj = {"epoch": 3, "model": {"w": w, "n": _tensor("int64")}, "groups": [{"lr": 0.1, "params": (w,)}], 7: None}
    back = _read(_write(obj))
    assert back["model"]["w"].stored_values == w.stored_values
    assert back["model"]["n"].stored_values == _tensor("int64").stored_values
    assert back["groups"][0]["params"] == (back["model"]["w"],)
    assert back | {"model": 0, "groups": 0} == {"epoch": 3, "model": 0, "groups": 0, 7: None}


def test_the_package_reads_what_is_written(tmp_path: Path) -> None:
    """Tensors are named by their paths; complex128 has one more dimension."""
    obj = {"model": [{dtype: _tensor(dtype, 2, 3)} for dtype in DTYPES], "lr": 0.1}
    (tmp_path / "x").write_bytes(_write(obj))
    arrays = safetensors.numpy.load_file(tmp_path / "x")
    assert arrays.keys() == {f"model.{i}.{dtype}" for i, dtype in enumerate(DTYPES)}
    for name, array in arrays.items():
        dtype = name.split(".")[-1]
        expected = np.frombuffer(_tensor(dtype, 2, 3).data, _numpy(dtype)).reshape(2, 3)
        if dtype == "complex128":
            expected = expected.view("float64").reshape(2, 3, 2)
        assert array.dtype == expected.dtype
        assert np.array_equal(array, expected)
    with safetensors.safe_open(tmp_path / "x", "np") as f:
        assert json.loads(f.metadata()["candelabra"])["tree"]["lr"] == 0.1


def test_every_tensor_is_aligned() -> None:
    """The alignment is the element size, so that a reader may map the file."""
    data = _write([_tensor("bool", 3), _tensor("int64", 1), _tensor("int16", 5), _tensor("complex128", 1)])
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    size = {"BOOL": 1, "I64": 8, "I16": 2, "F64": 8}
    for name in header.keys() - {"__metadata__"}:
        assert header[name]["data_offsets"][0] % size[header[name]["dtype"]] == 0


def test_a_file_of_others_is_a_dict_of_its_tensors() -> None:
    """Files that the package wrote with its own metadata are read."""
    arrays = {f"a.{name}": np.arange(6).astype(_numpy(name)).reshape(2, 3) for name in DTYPES if name != "complex128"}
    back = _read(safetensors.numpy.save(arrays, {"format": "np"}))
    assert {name: tensor.stored_values for name, tensor in back.items()} == {
        name: (array.dtype.name, (2, 3), array.tobytes(), False) for name, array in arrays.items()
    }
    assert _read(safetensors.numpy.save({})) == {}


def test_every_prefix_is_an_error() -> None:
    """A truncated file is never read as a smaller one."""
    data = _write({"w": floats(1, 2), "n": [1, 2]})
    for end in range(len(data)):
        with pytest.raises(FileFormatError, match=r"^cannot read x\.safetensors: expected .*, got "):
            _read(data[:end])


DAMAGED: list[tuple[bytes, str]] = [
    (b"", "expected a header of at most 0 bytes, got 0 of 0 bytes"),
    (b"\2\0\0", "expected a header of at most 0 bytes, got 2 of 3 bytes"),
    (b"\xff" * 8 + b"{}", f"expected a header of at most 2 bytes, got {2**64 - 1} of 10 bytes"),
    (_file(b"{\xff}"), "expected a header in UTF-8, got 'utf-8' codec can't decode byte 0xff"),
    (_file(b"{} {"), "expected the header in JSON, got JSONDecodeError: Extra data"),
    (_file(b'{"a": NaN}'), "expected the header in JSON, got ValueError: NaN is not JSON"),
    (_file(b'{"a": 1, "a": 2}'), "expected the header in JSON, got ValueError: a key occurs twice"),
    (_file(b"[" * 100_000), "expected the header in JSON, got RecursionError: "),
    (_file(b'{"a": ' + b"9" * 5000 + b"}"), "expected the header in JSON, got ValueError: Exceeds the limit"),
    (_file([]), "expected a header that is a JSON object, got a list"),
    (_file({"__metadata__": []}), "expected metadata from strings to strings, got something else"),
    (_file({"__metadata__": {"a": 1}}), "expected metadata from strings to strings, got something else"),
    (_file({"a": 1}), "expected dtype, shape and data_offsets of 'a', got other fields"),
    (_file({"a": {"dtype": "U8"}}), "expected dtype, shape and data_offsets of 'a', got other fields"),
    (_file({"a": _entry(shape=[-1])}), "expected lists of sizes as shape and data_offsets of 'a', got [-1], [0, 2]"),
    (_file({"a": _entry(shape=[1.0])}), "expected lists of sizes as shape and data_offsets of 'a', got [1.0], [0, 2]"),
    (_file({"a": _entry(shape=[2**63])}), "expected lists of sizes"),
    (_file({"a": _entry(shape=[True])}), "expected lists of sizes"),
    (_file({"a": _entry(offsets=[0])}), "expected lists of sizes as shape and data_offsets of 'a', got [2], [0]"),
    (_file({"a": _entry(offsets="02")}), "expected lists of sizes as shape and data_offsets of 'a', got [2], '02'"),
    (_file({"a": _entry("F4")}), "expected a dtype of BOOL, U8, I8, "),
    (_file({"a": _entry([])}), "expected a dtype of BOOL, U8, I8, "),
    (_file({"a": _entry("U16")}, b"ab"), "expected 4 bytes for 'a' (U16 of [2]), got data_offsets 0 to 2"),
    (_file({"a": _entry(offsets=[2, 0])}), "expected 2 bytes for 'a' (U8 of [2]), got data_offsets 2 to 0"),
    (_file({"a": _entry(shape=[2**62, 2**62])}), f"shape ({2**62}, {2**62}) of uint8 takes 2**63 bytes or more"),
    (
        _file({"a": _entry(shape=[2**62, 2, 0], offsets=(0, 0))}),
        "of 'a' that tensors can have, got shape (461168601842",
    ),
    (_file({"a": _entry(shape=[2**62] * 300)}), "of 'a' that tensors can have, got 300 dimensions are more than 65"),
    (_file({"a": _entry(shape=[-1] * 300)}), "lists of sizes as shape and data_offsets of 'a', got a list, [0, 2]"),
    (_file({"a" * 5000: _entry("F9")}), "aaa … aaa"),
    (_file({"a": _entry(offsets=[1, 3])}, b"abc"), "expected 'a' to begin at byte 0 of the data, got byte 1"),
    (
        _file({"a": _entry(), "b": _entry(offsets=[1, 3])}, b"abc"),
        "expected 'b' to begin at byte 2 of the data, got byte 1",
    ),
    (_file({"a": _entry(), "b": _entry()}, b"ab"), "expected 'b' to begin at byte 2 of the data, got byte 0"),
    (_file({"a": _entry()}, b"a"), "expected 2 bytes of data, got 1 bytes; truncated, or something was appended"),
    (_file({"a": _entry()}, b"abc"), "expected 2 bytes of data, got 3 bytes; truncated, or something was appended"),
    (_file({}, b"a"), "expected 0 bytes of data, got 1 bytes; truncated, or something was appended"),
    (_file({"a": _entry(shape=[1] * 65, offsets=[0, 1])}, b"a"), "65 dimensions are more than 64"),
]


@pytest.mark.parametrize(("data", "message"), DAMAGED)
def test_a_damaged_file_says_what_is_wrong(data: bytes, message: str) -> None:
    """Every number and string in a header may be invalid."""
    with pytest.raises(FileFormatError, match=r"^cannot read x\.safetensors: .*" + re.escape(message)):
        _read(data)


@pytest.mark.parametrize("data", [data for data, _ in DAMAGED])
def test_what_the_package_refuses_is_refused(data: bytes) -> None:
    """This reader accepts no more files than the package; it also refuses duplicate keys and 65 dimensions."""
    try:
        safetensors.deserialize(data)
    except safetensors.SafetensorError:
        with pytest.raises(FileFormatError, match="expected"):
            _read(data)


@given(st.data())
def test_a_flipped_byte_of_the_header_is_an_error_or_a_header(data: st.DataObject) -> None:
    """Damage raises only the documented exception."""
    file = bytearray(_write({"w": floats(1, 2), "z": _tensor("complex128", 1), 3: (1, None)}))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    try:
        _read(bytes(file))
    except FileFormatError:
        pass


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"__metadata__": {"candelabra": "{"}}, "expected the candelabra metadata in JSON, got JSONDecodeError"),
        ({"__metadata__": {"candelabra": "[]"}}, "expected candelabra metadata with a version, got none"),
        ({"__metadata__": {"candelabra": "{}"}}, "expected candelabra metadata with a version, got none"),
        (
            _document(version=2),
            "expected candelabra metadata of version 1, got version 2; a newer candelabra wrote it; upgrade to read it",
        ),
        (
            {"__metadata__": {"candelabra": '{"version": 1}'}},
            "expected candelabra metadata with a tree and notes on tensors, got something else",
        ),
        (_document(notes=[]), "expected candelabra metadata with a tree and notes on tensors, got something else"),
        (
            _document(notes={"a": 1}),
            "expected candelabra metadata with a tree and notes on tensors, got something else",
        ),
        (_document({"$tensor": "b"}), "expected a tree of containers, got a tensor 'b' that the file does not hold"),
        (_document({"$no": 1}), "expected a tree of containers, got $no with an int is not known to this version"),
        (_document() | {"a": _entry()}, "expected tensors that its tree names, got 'a', which it does not"),
        (
            _document({"$tensor": "a"}, {"a": {"dtype": "complex128"}}) | {"a": _entry()},
            "expected 'a' as pairs of float64 (it is complex128), got uint8 of (2,)",
        ),
        (
            _document({"$tensor": "a"}, {"a": {"requires_grad": True}}) | {"a": _entry()},
            "expected a tensor inside its storage, got requires_grad is for floating and complex numbers, not uint8",
        ),
    ],
)
def test_metadata_that_save_does_not_write_is_refused(header: dict[str, object], message: str) -> None:
    """Such a file has the tensors but an unknown structure."""
    with pytest.raises(FileFormatError, match=re.escape(message)):
        _read(_file(header, b"ab" if "a" in header else b""))


@pytest.mark.parametrize(
    ("obj", "error", "message"),
    [
        (
            [FakeTensor(b"a", "float8_e5m2", (1,))],
            TypeError,
            "cannot save the tensor '0': safetensors has no dtype for float8_e5m2",
        ),
        (
            {"w": FakeTensor(b"a", "int16", (1,))},
            ValueError,
            "cannot save the tensor 'w': int16 of shape (1,) takes 2 bytes, but its device returned 1",
        ),
        ([{}.keys()], TypeError, "cannot save obj[0]: a dict_keys"),
    ],
)
def test_what_cannot_be_written_is_named(obj: object, error: type[Exception], message: str) -> None:
    """The error names a tensor by its name in the file, other objects by their path."""
    with pytest.raises(error, match=re.escape(message)):
        _write(obj)


def test_a_tree_that_needs_too_large_a_header_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader would open the file."""
    monkeypatch.setattr(safetensors_file, "MAX_HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match="the format allows 1000; long lists of numbers belong in tensors"):
        _write(list(range(1000)))


def test_a_document_of_the_greatest_depth_is_read() -> None:
    """The JSON parser supports the maximum depth of the tree."""
    obj: object = 1
    for i in range(tree.MAX_DEPTH):
        obj = {7: obj} if i % 2 else (obj,)
    assert _read(_write(obj)) == obj
