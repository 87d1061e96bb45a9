"""PyTorch's files: those that PyTorch wrote (data/README.md) and invented ones."""

from __future__ import annotations

import io
import re
import struct
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from candelabra._serialization.stored import swap_bytes
from candelabra._serialization.torch_file import LEGACY_START, read_legacy, read_zip
from candelabra.errors import FileFormatError
from hypothesis import given
from hypothesis import strategies as st

from tests.core.serialization.fake_tensor import FakeTensor, from_stored

DATA = Path(__file__).parent / "data"


def _read(data: bytes) -> Any:
    reader = read_legacy if data.startswith(LEGACY_START) else read_zip
    return reader(io.BytesIO(data), "x.pt", from_stored)


def _fixture(name: str) -> bytes:
    return (DATA / name).read_bytes()


def _records(data: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    return {name: archive.read(name) for name in archive.namelist()}


def _zip(records: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", compression) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    return f.getvalue()


def _tensor_pickle(arguments: bytes, function: bytes = b"_rebuild_tensor_v2", kind: bytes = b"FloatStorage") -> bytes:
    """Return the pickle of one tensor over a storage "0" of two elements, with the remaining arguments."""
    storage = b"((X\x07\0\0\0storagectorch\n" + kind + b"\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
    return b"\x80\x02ctorch._utils\n" + function + b"\n" + storage + arguments + b"tR."


def _made_up(pickle: bytes, storage: bytes = b"\0" * 8) -> bytes:
    return _zip({"a/data.pkl": pickle, "a/data/0": storage})


GOOD = b"K\0K\x02\x85K\x01\x85\x89}"
"""Offset 0, shape (2,), strides (1,), requires_grad False, no hooks."""


def test_values_come_back() -> None:
    """All objects of a checkpoint except tensors are restored."""
    value = _read(_fixture("values.pt"))
    model = value.pop("model")
    assert value == {
        "epoch": 3,
        "big": 2**80,
        "loss": 0.1,
        "names": ["a", "é", ("t", None, True)],
        "size": (2, 3),
        "dtype": "bfloat16",
        "device": "cuda:1",
        "bytes": b"\x00\xff",
        "no bytes": b"",
        "complex": 1 - 2j,
        "set": {1, 2},
        "counter": {"a": 2, "b": 1},
        7: "an int as key",
    }
    assert type(model) is OrderedDict
    assert {name: tensor.stored_values for name, tensor in model.items()} == {
        "weight": ("float32", (2, 3), struct.pack("<6f", *range(6)), False),
        "bias": ("float32", (2,), struct.pack("<2f", 0.5, -0.5), False),
    }


def _big_endian(data: bytes) -> bytes:
    """Return the file as a big-endian machine writes it: dtypes.pt has one storage per dtype, in the file's order."""
    records = _records(data)
    folder = next(iter(records)).split("/")[0]
    records[f"{folder}/byteorder"] = b"big"
    for i, dtype in enumerate(_read(data)):
        records[f"{folder}/data/{i}"] = swap_bytes(records[f"{folder}/data/{i}"], dtype)
    return _zip(records)


@pytest.mark.parametrize("order", ["little", "big"])
def test_every_dtype_comes_back(order: str) -> None:
    """Both byte orders, and dtypes without a storage class, are supported."""
    data = _fixture("dtypes.pt")
    tensors = _read(_big_endian(data) if order == "big" else data)
    assert len(tensors) == 15
    for dtype, tensor in tensors.items():
        array = np.array([0, 1, 3]).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        assert tensor.stored_values == (dtype, (3,), array.tobytes(), False)


@pytest.mark.parametrize("name", ["views.pt", "views-legacy.pt"])
def test_views_come_back_in_both_formats(name: str) -> None:
    """Strides, offsets, requires_grad, sharing and storages without tensors are restored."""
    value = _read(_fixture(name))
    base = np.arange(24, dtype="float32")
    expected = {
        "transposed": base[:6].reshape(2, 3).T,
        "offset": base[20:],
        "stepped": base.reshape(4, 6)[::2, 1::3],
        "expanded": np.array([[7, 7, 7], [8, 8, 8]], dtype="int16"),
        "scalar": np.int64(5),
        "empty": np.empty((0, 4), dtype="float32"),
        "leaf": np.float32([3]),
        "parameter": np.float32([1, 2]),
        "again": np.float32([1, 2]),
        "storage": np.int32([9, 8]),
        "untyped": np.uint8([1, 2]),
    }
    assert {name: tensor.stored_values[:3] for name, tensor in value.items()} == {
        name: (array.dtype.name, array.shape, array.tobytes()) for name, array in expected.items()
    }
    assert [name for name, tensor in value.items() if tensor.requires_grad] == ["leaf", "parameter", "again"]
    assert value["parameter"] is value["again"]


def test_a_tensor_loses_its_python_attributes() -> None:
    """The tensor is restored without them."""
    assert _read(_fixture("attribute.pt")).stored_values == ("float32", (1,), struct.pack("<f", 1), False)


def test_old_rebuilding_functions_are_known() -> None:
    """Tensors without requires_grad, and a Parameter with attributes, are restored."""
    assert _read(_made_up(_tensor_pickle(b"K\0K\x02\x85K\x01\x85", b"_rebuild_tensor"))).shape == (2,)
    parameter = _tensor_pickle(GOOD)[:-1] + b"\x88}}tR."
    parameter = parameter.replace(b"\x80\x02", b"\x80\x02ctorch._utils\n_rebuild_parameter_with_state\n(")
    assert _read(_made_up(parameter)).requires_grad is True


def test_a_file_without_its_byte_order_is_little_endian() -> None:
    """PyTorch reads files before 2.1 in this way."""
    assert _read(_made_up(_tensor_pickle(GOOD), struct.pack("<2f", 1, 2))).data == struct.pack("<2f", 1, 2)


def test_a_pickle_at_the_root_of_the_archive_is_found() -> None:
    """The name of the folder has no effect; the folder may be missing."""
    assert _read(_zip({"data.pkl": b"K\x01."})) == 1


def test_names_in_the_archive_are_never_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is compared with the names of records; nothing is opened or extracted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(b"12345678")
    pickle = _tensor_pickle(GOOD).replace(b"X\x01\0\0\x000", b"X\x0f\0\0\x00../../../secret")
    with pytest.raises(FileFormatError, match=re.escape("expected a record 'a/data/../../../secret', got none")):
        _read(_zip({"a/data.pkl": pickle, "../../../secret": b"1", "/etc/passwd": b"2"}))
    assert _read(_zip({"a/data.pkl": pickle, "a/data/../../../secret": b"\0" * 8})).shape == (2,)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("name", ["views.pt", "views-legacy.pt"])
def test_every_prefix_is_an_error(name: str) -> None:
    """A truncated file is never read as a smaller one."""
    data = _fixture(name)
    for end in range(len(LEGACY_START), len(data)):
        with pytest.raises(FileFormatError, match=r"^cannot read x\.pt: expected .*, got "):
            _read(data[:end])


def _two_records_of_one_name() -> bytes:
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a/data.pkl", b"K\x01.")
        archive.writestr("a/data/0", b"x")
        archive.writestr("a/data/0", b"y")
    return f.getvalue()


def _overlapping(count: int) -> bytes:
    """Return an archive whose directory lists one record of 1,000 bytes under many names."""
    data = _zip({"a/data.pkl": b"K\x01.", "a/data/0": b"x" * 1000})
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entries = data[start:end]
    last = entries[entries.rindex(b"PK\x01\x02") :]
    entries += b"".join(last[:-1] + bytes([ord("A") + i]) for i in range(count))
    total = struct.pack("<HHII", 2 + count, 2 + count, len(entries), start)
    return data[:start] + entries + data[end : end + 8] + total + b"\0\0"


def _edited(old: bytes, new: bytes) -> bytes:
    data = _made_up(_tensor_pickle(GOOD))
    assert old in data
    return data.replace(old, new)


ZIPS = [
    (_zip({"a/other": b""}), "expected a PyTorch archive, with one record data.pkl and each name once, got a list"),
    (_zip({"a/data.pkl": b"", "b/data.pkl": b""}), "expected a PyTorch archive, with one record data.pkl and each"),
    (_two_records_of_one_name(), "expected a PyTorch archive, with one record data.pkl and each name once, got a list"),
    (
        _zip({"a/data.pkl": b"", "a/constants.pkl": b""}),
        "expected a checkpoint, got a TorchScript program; save its state_dict() with torch.save",
    ),
    (
        _zip({"a/data.pkl": b"K\x01.", "a/data/0": b"\0" * 10_000_000}, zipfile.ZIP_DEFLATED),
        "expected records that are neither compressed nor encrypted, got some that are",
    ),
    (_overlapping(20), "bytes together, got 21003 bytes"),
    (_zip({"a/data.pkl": b"K\x01.", "a/byteorder": b"middle"}), "expected byteorder little or big, got 'middle'"),
    (_zip({"a/data.pkl": _tensor_pickle(GOOD)}), "expected a record 'a/data/0', got none"),
    (
        _edited(b"ctorch", b"cttorc"),
        "expected a zip archive, got BadZipFile: Bad CRC-32 for file 'a/data.pkl'; damaged",
    ),
    (b"PK\x03\x04" + b"\0" * 100, "expected a zip archive, got BadZipFile: File is not a zip file; damaged"),
]


@pytest.mark.parametrize(("data", "message"), ZIPS)
def test_an_archive_that_pytorch_does_not_write_is_refused(data: bytes, message: str) -> None:
    """The check comes before decompression: records must have the size in the file, and must not overlap."""
    with pytest.raises(FileFormatError, match=r"^cannot read x\.pt: .*" + re.escape(message)):
        _read(data)


_V2 = "expected arguments of torch._utils._rebuild_tensor_v2, got "
_OTHER = "TypeError: offset, shape, strides or requires_grad is of another type or negative"
PICKLES = [
    (_tensor_pickle(b"K\0K\x03\x85K\x01\x85\x89}"), "expected a tensor inside its storage, got shape (3,)"),
    (_tensor_pickle(b"K\x01K\x02\x85K\x01\x85\x89}"), "reach element 2 of a storage of 2"),
    (_tensor_pickle(b"K\0\x8a\x08" + b"\xff" * 7 + b"\x7f\x85K\0\x85\x89}"), "of float32 takes 2**63 bytes or more"),
    (_tensor_pickle(b"K\0\x8a\x04" + b"\xff" * 3 + b"\x7f\x85K\0\x85\x89}"), "the limit for that is 268435456"),
    (_tensor_pickle(b"J\xff\xff\xff\xffK\x02\x85K\x01\x85\x89}"), _V2 + _OTHER),
    (_tensor_pickle(b"K\0J\xff\xff\xff\xff\x85K\x01\x85\x89}"), _V2 + _OTHER),
    (_tensor_pickle(b"K\0K\x02\x85J\xff\xff\xff\xff\x85\x89}"), _V2 + _OTHER),
    (_tensor_pickle(b"K\0(" + b"K\x01" * 65 + b"tK\x01\x85\x89}"), _V2 + _OTHER),
    (_tensor_pickle(b"K\0K\x02\x85K\x01\x85K\0}"), _V2 + _OTHER),
    (_tensor_pickle(b"K\0K\x02\x85)\x89}"), "shape (2,) and strides () differ in length"),
    (_tensor_pickle(b"K\0"), _V2 + "ValueError: not enough values to unpack"),
    (_tensor_pickle(GOOD + b"NNN"), _V2 + "TypeError: "),
    (_tensor_pickle(b"K\0K\x02\x85K\x01\x85\x88}", kind=b"IntStorage"), "requires_grad is for floating and complex"),
    (
        _tensor_pickle(GOOD).replace(b"\nX\x01\0\0\x000", b"\nK\x01"),
        "expected a storage as persistent id, got 1, 0 and 2",
    ),
    (
        _tensor_pickle(GOOD).replace(b"K\x02tQ", b"J\xff\xff\xff\xfftQ"),
        "got '0', 0 and an int as key, offset and length",
    ),
    (_tensor_pickle(GOOD).replace(b"K\x02tQ", b"K\x03tQ"), "expected 3 of float32 in storage '0', got 8 bytes"),
    (_tensor_pickle(GOOD).replace(b"K\x02tQ", b"K\x02K\x05tQ"), "expected a storage as persistent id, got 5 as view"),
    (_tensor_pickle(GOOD).replace(b"storage", b"modules"), "expected a storage as persistent id, got a tuple"),
    (_tensor_pickle(GOOD).replace(b"ctorch\nFloatStorage\n", b"N"), "expected a storage as persistent id, got a tuple"),
    (_tensor_pickle(GOOD, kind=b"QInt8Storage"), "got torch.QInt8Storage; candelabra imports and calls nothing"),
    (b"NQ.", "expected a storage as persistent id, got None"),
    (
        _tensor_pickle(b"K\0K\x02\x85K\x01\x85\x89}ctorch\nfloat8_e5m2\n", b"_rebuild_tensor_v3"),
        "expected arguments of torch._utils._rebuild_tensor_v3, got TypeError: candelabra has no dtype 'float8_e5m2'",
    ),
    (b"ctorch._utils\n_rebuild_tensor_v2\n(NK\0)K\0\x89}tR.", _V2 + "TypeError: a NoneType in place of a storage"),
    (
        b"ctorch._utils\n_rebuild_parameter\n(N\x88}tR.",
        "expected arguments of torch._utils._rebuild_parameter, got TypeError: a NoneType in place of a tensor",
    ),
    (b"ctorch\nFloatStorage\n.", "expected values, got a StorageType as a value"),
    (b"ctorch\nTensor\n)R.", "expected arguments of torch.Tensor, got TypeError: it is not made by calling its class"),
    (b"ctorch\nSize\n(N\x85tR.", "expected arguments of torch.Size, got TypeError: other than sizes"),
    (b"ctorch\ndevice\nN\x85R.", "expected arguments of torch.device, got TypeError: other than a name and a number"),
    (b"c__builtin__\nset\n]N\x85a\x85R.", "expected arguments of __builtin__.set, got TypeError: a tuple as key"),
    (b"ccollections\nOrderedDict\n]]]aNaa\x85R.", "arguments of collections.OrderedDict, got TypeError: a list as key"),
    (b"ccollections\nOrderedDict\n]]Naa\x85R.", "arguments of collections.OrderedDict, got ValueError: not enough"),
    (b"ccollections\nCounter\n]\x85R.", "expected arguments of collections.Counter, got AttributeError"),
    (b"c_codecs\nencode\n(X\x01\0\0\0aX\x05\0\0\0utf-7tR.", "TypeError: 'a' to encode in 'utf-7'"),
    (b"c_codecs\nencode\n(NX\x06\0\0\0latin1tR.", "TypeError: None to encode in 'latin1'"),
    (b"c_codecs\nencode\n(X\x02\0\0\0\xc4\x80X\x06\0\0\0latin1tR.", "UnicodeEncodeError"),
    (b"cbuiltins\nbytes\nK\x05\x85R.", "expected arguments of builtins.bytes, got TypeError: a value to convert"),
    (
        b"cbuiltins\ncomplex\nK\1K\2\x86R.",
        "expected arguments of builtins.complex, got TypeError: other than two floats",
    ),
    (b"ctorch._tensor\n_rebuild_from_type_v2\n(NNNNtR.", "TypeError: no function and class"),
    (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nOrderedDict\nctorch\nTensor\n)NtR.",
        "TypeError: collections.OrderedDict does not create a tensor",
    ),
    (
        b"ctorch._tensor\n_rebuild_from_type_v2\nq\0(h\0ctorch\nTensor\n(h\0h\0h\0NtNtR.",
        "TypeError: torch._tensor._rebuild_from_type_v2 does not create a tensor",
    ),
    (b"cnumpy.core.multiarray\nscalar\n.", "got numpy.core.multiarray.scalar; "),
]


@pytest.mark.parametrize(("pickle", "message"), PICKLES)
def test_a_pickle_that_pytorch_does_not_write_is_refused(pickle: bytes, message: str) -> None:
    """Every argument may be invalid."""
    with pytest.raises(FileFormatError, match=r"^cannot read x\.pt: .*" + re.escape(message)):
        _read(_made_up(pickle))


def test_a_module_is_refused_with_what_to_do() -> None:
    """It is a class that candelabra does not have."""
    with pytest.raises(FileFormatError, match=re.escape("got torch.nn.modules.linear.Linear; candelabra imports and")):
        _read(_fixture("module.pt"))


def test_a_conjugated_tensor_is_refused_with_what_to_do() -> None:
    """Its bytes are not its values."""
    with pytest.raises(FileFormatError, match=re.escape("save its resolve_conj() or resolve_neg()")):
        _read(_fixture("conjugated.pt"))


def _legacy(pickle: bytes, keys: bytes = b"]X\x01\0\0\x000a.", data: bytes = struct.pack("<Q2f", 2, 1, 2)) -> bytes:
    return LEGACY_START + b"M\xe9\x03.}." + pickle + keys + data


def test_a_view_of_a_storage_in_an_old_file_comes_back() -> None:
    """Before version 0.4, a storage could be a part of another one."""
    pickle = _tensor_pickle(b"K\0K\x01\x85K\x01\x85\x89}")
    pickle = pickle.replace(b"K\x02tQ", b"K\x02(X\x01\0\0\x001K\x01K\x01ttQ")
    assert _read(_legacy(pickle)).data == struct.pack("<f", 2)


LEGACY = [
    (LEGACY_START + b"K\x01.", "expected format version 1001, got 1"),
    (LEGACY_START + b"].", "expected format version 1001, got a list"),
    (_legacy(b"K\x01.", b"K\x01.", b""), "expected a list of storage keys, got 1"),
    (_legacy(b"K\x01.", b"]K\x01a.", b""), "expected a list of storage keys, got a list"),
    (_legacy(b"K\x01."), "expected storages of the tensors in the file, once each, got '0'"),
    (_legacy(_tensor_pickle(GOOD), b"](X\x01\0\0\x000X\x01\0\0\x000e."), "in the file, once each, got '0'"),
    (_legacy(_tensor_pickle(GOOD), data=struct.pack("<Qf", 2, 1)), "expected 8 bytes of storage '0', got 4; truncated"),
    (_legacy(_tensor_pickle(GOOD), data=b"\xff" * 16), f"expected {4 * (2**64 - 1)} bytes of storage '0', got 8"),
    (_legacy(_tensor_pickle(GOOD), data=struct.pack("<Qf", 1, 1)), "expected 2 of float32 in storage '0', got 4 bytes"),
    (_legacy(_tensor_pickle(GOOD), b"].", b""), "expected a storage '0', got none"),
    (_legacy(b"cos\nsystem\n."), "got os.system; candelabra imports and calls nothing"),
]


@pytest.mark.parametrize(("data", "message"), LEGACY)
def test_an_old_file_that_pytorch_does_not_write_is_refused(data: bytes, message: str) -> None:
    """The lengths outside the pickle may be invalid too."""
    with pytest.raises(FileFormatError, match=r"^cannot read x\.pt: .*" + re.escape(message)):
        _read(data)


@pytest.mark.parametrize("name", ["views.pt", "views-legacy.pt", "values.pt"])
@given(data=st.data())
def test_damage_gives_the_documented_error_or_a_value(name: str, data: st.DataObject) -> None:
    """Up to three bytes of a file are changed; the checksums of an archive are updated."""
    if name == "views-legacy.pt":
        file = bytearray(_fixture(name))[len(LEGACY_START) :]
    else:
        records = _records(_fixture(name))
        pickle = next(record for record in records if record.endswith("data.pkl"))
        file = bytearray(records[pickle])
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    try:
        _read(LEGACY_START + file if name == "views-legacy.pt" else _zip({**records, pickle: bytes(file)}))
    except FileFormatError:
        pass


def test_the_callers_tensor_class_is_returned() -> None:
    """The readers do not depend on a tensor class: they return the tensors that the caller's function creates."""
    assert type(_read(_fixture("attribute.pt"))) is FakeTensor
