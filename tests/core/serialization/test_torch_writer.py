"""Files in PyTorch's format that save writes: their records and pickles, and the values that load returns."""

from __future__ import annotations

import io
import pickletools
import re
import struct
import zipfile
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra._serialization import torch_writer
from candelabra._serialization.torch_writer import Geometry, TorchAccess
from candelabra.dtypes import ALL
from candelabra.serialization import FileFormatError
from hypothesis import given
from hypothesis import strategies as st

from tests.core.serialization.fake_tensor import ACCESS, FakeTensor, floats


def written(obj: object) -> bytes:
    """Return the bytes of a file of PyTorch."""
    f = io.BytesIO()
    cd.save(obj, f, format="pt")
    return f.getvalue()


def back(obj: object) -> Any:
    """Write and load an object."""
    return cd.load(io.BytesIO(written(obj)))


def globals_of(data: bytes) -> list[str]:
    """Return the names that the pickle of a file looks up."""
    pickle = zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")
    return [str(argument) for opcode, argument, _ in pickletools.genops(pickle) if opcode.name == "GLOBAL"]


VALUES: dict[str, Any] = {
    "none": None, "flags": [True, False], "small": -5, "long": -(2**40), "longer": 2**70, "longest": 1 << 3000,
    "float": 1.5, "nan": float("inf"), "complex": 1 + 2j, "text": "ä\n\ud800", "bytes": b"\0\xff",
    "tuple": (1, (2, ())), "set": {1, "a"}, "empty": {}, "many": list(range(2500)),
    "dict": {i: str(i) for i in range(1200)},
}  # fmt: skip


def test_values_come_back() -> None:
    """Numbers of any size, strings, bytes and containers come back as they were."""
    assert back(VALUES) == VALUES


def test_a_file_is_an_archive_that_every_reader_opens() -> None:
    """Checksums are right, nothing is compressed, records begin at multiples of 64 bytes and have PyTorch's names."""
    data = written({"a": cd.arange(5), "b": cd.ones(3, 3)})
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    names = [info.filename.removeprefix("archive/") for info in archive.infolist()]
    assert names[0] == "data.pkl"
    assert {"byteorder", "version", "data/0", "data/1"} < set(names)
    assert archive.read("archive/version") == b"3\n"
    for info in archive.infolist():
        assert info.compress_type == zipfile.ZIP_STORED
        lengths = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
        assert (info.header_offset + 30 + sum(lengths)) % 64 == 0


@pytest.mark.parametrize("dtype", [d.name for d in ALL])
def test_every_dtype_comes_back(dtype: str) -> None:
    """Also the unsigned ones, which have no typed storage in PyTorch."""
    kind = cd.dtypes.BY_NAME[dtype]
    x = cd.tensor([[0, 1, 2], [3, 1, 0]]).to(kind)
    for tensor in (x, x.mT, x[:, 1], x[:0], x[0, 0]):
        found = back([tensor])[0]
        assert found.dtype is kind
        assert found.tolist() == tensor.tolist()
        assert found.shape == tensor.shape


def test_only_names_that_pytorch_allows_are_in_the_pickle() -> None:
    """``weights_only=True`` accepts them: tensors, typed storages, OrderedDict, values of PyTorch."""
    state = OrderedDict(w=cd.ones(2), n=cd.tensor(3, dtype=cd.uint16))
    assert set(globals_of(written([state, cd.float16, cd.device("cpu"), cd.ones(2, 3).shape, {1}, b"x", 1j]))) == {
        "collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3",
        "torch FloatStorage", "torch.storage UntypedStorage", "torch uint16", "torch float16", "torch device",
        "torch Size", "__builtin__ set", "__builtin__ complex", "_codecs encode",
    }  # fmt: skip


def test_dtypes_devices_and_shapes_are_those_of_pytorch() -> None:
    """load reads them as a name, a name and a tuple."""
    found = back([cd.float16, cd.device("cpu"), cd.device("cpu", 0), cd.ones(2, 3).shape])
    assert found == ["float16", "cpu", "cpu:0", (2, 3)]


def test_metadata_of_a_state_dict_is_an_attribute() -> None:
    """An OrderedDict keeps the attribute from which PyTorch reads versions of modules."""
    state: Any = OrderedDict(w=cd.ones(2))
    state._metadata = OrderedDict({"": {"version": 1}})
    pickle = zipfile.ZipFile(io.BytesIO(written(state))).read("archive/data.pkl")
    operations = [(opcode.name, argument) for opcode, argument, _ in pickletools.genops(pickle)]
    assert ("BINUNICODE", "_metadata") in operations
    assert operations[-2:] == [("BUILD", None), ("STOP", None)]
    assert list(back(state)) == ["w"]
    assert back(state)._metadata == state._metadata
    state._metadata = "not a dict"
    assert not hasattr(back(state), "_metadata")


def test_views_share_a_storage() -> None:
    """Views of one tensor refer to one record with their strides; a part of a large tensor is stored alone."""
    x = cd.arange(12.0).reshape(3, 4)
    obj = {"x": x, "t": x.t(), "row": x[1:], "column": x[:, 1], "again": x}
    data = written(obj)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert [n for n in archive.namelist() if "/data/" in n] == ["archive/data/0"]
    assert len(archive.read("archive/data/0")) == 48
    found = back(obj)
    assert found["again"] is found["x"]
    for name, tensor in obj.items():
        assert found[name].tolist() == tensor.tolist()
    assert len(written(cd.zeros(1000, 1000)[3])) < 10_000
    tied = cd.ones(3).requires_grad_()
    archive = zipfile.ZipFile(io.BytesIO(written([tied, tied.detach()])))
    assert len([n for n in archive.namelist() if "/data/" in n]) == 1


def test_requires_grad_and_identity_come_back() -> None:
    """A tensor object that occurs twice is one object, and a list that contains itself too."""
    x = cd.ones(2).requires_grad_()
    items: list[Any] = [x, x]
    items.append(items)
    found = back(items)
    assert found[0] is found[1]
    assert found[0].requires_grad
    assert found[2] is found


def test_what_pytorch_cannot_read_is_refused(tmp_path: Path) -> None:
    """The error names the path of the object, and the old file stays."""
    cd.save("old", tmp_path / "x", "pt")
    with pytest.raises(TypeError, match=re.escape("cannot save obj['a'][1]: an object; format='pt' holds dicts")):
        cd.save({"a": [1, object()]}, tmp_path / "x", "pt")
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ValueError, match="containers are nested more than 100 deep"):
        cd.save(deep, tmp_path / "x", "pt")
    assert cd.load(tmp_path / "x") == "old"
    with pytest.raises(ValueError, match="format must be one of safetensors, pt, got 'zip'"):
        cd.save([], tmp_path / "x", "zip")


def test_checksums_of_large_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads compute the checksums of large records; every record has its own, in the order of the tensors."""
    monkeypatch.setattr(torch_writer, "THREADED", 40)
    tensors = [cd.full((size,), size, dtype=cd.float32) for size in (64, 3, 0, 300, 9, 10, 64)]
    archive = zipfile.ZipFile(io.BytesIO(written(tensors)))
    assert archive.testzip() is None
    assert [archive.getinfo(f"archive/data/{key}").file_size for key in range(7)] == [4 * t.numel() for t in tensors]
    assert [t.tolist() for t in back(tensors)] == [t.tolist() for t in tensors]


def test_large_files_have_fields_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes, offsets and the directory beyond the limit of 32 bits are written as Python's zipfile reads them."""
    monkeypatch.setattr(torch_writer, "LIMIT", 200)
    access = TorchAccess(
        ACCESS.is_tensor,
        ACCESS.describe,
        lambda tensor: Geometry(tensor, (1,), 0),
        ACCESS.to_bytes,
        lambda value: None,
    )
    f = io.BytesIO()
    tensors = [floats(*range(100)), FakeTensor(b"\1" * 300, "uint8", (300,)), floats(1)]
    torch_writer.write(f, tensors, access)
    data = f.getvalue()
    # zipfile reads a field of 64 bits only where that of 32 bits has its largest value.
    data = data.replace(struct.pack("<I", 200), b"\xff" * 4)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert [archive.read(f"archive/data/{i}") for i in range(3)] == [t.data for t in tensors]


SAVED = written({"w": cd.ones(2, 3), "v": cd.arange(4)[1:], "n": [1, (2.5, "x")]})


@given(st.data(), st.booleans())
def test_damage_gives_the_documented_error_or_a_value(tmp_path_factory: Any, data: st.DataObject, mapped: bool) -> None:
    """Whatever bytes change, load returns or raises FileFormatError, also for a mapped file and for some names."""
    damaged = bytearray(SAVED)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.pt"
    path.write_bytes(damaged)
    with suppress(FileFormatError):
        cd.load(path, mmap=mapped)
    with suppress(FileFormatError, KeyError):
        cd.load(path, mmap=mapped, names=["w", "n.1"])
