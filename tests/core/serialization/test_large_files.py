"""Parts of files, mapped files, checkpoints in several files, and the memory that they take."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
import tracemalloc  # NumPy reports its memory to it
from pathlib import Path

import candelabra as cd
import numpy as np
import pytest
from candelabra._serialization.stored import ByteSource
from candelabra.serialization import FileFormatError

FORMATS = ("safetensors", "pt")
DATA = Path(__file__).parent / "data"


@pytest.fixture(params=FORMATS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the path of a file with a module's and an optimizer's tensors."""
    path = tmp_path / "x"
    state = {"model": {"w": cd.arange(6.0).reshape(2, 3), "flag": cd.tensor([True, False])}, "step": [cd.tensor(7)]}
    cd.save(state, path, format=request.param)
    return path


def address(x: cd.Tensor) -> int:
    """Return the address of a tensor's memory."""
    return int(x.numpy().__array_interface__["data"][0])


def test_a_subset_of_names_is_loaded_as_a_dict(file: Path) -> None:
    """The names are the keys that lead to the tensors."""
    found = cd.load(file, names=["step.0", "model.w"])
    assert set(found) == {"step.0", "model.w"}
    assert found["model.w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert cd.load(file, names=[]) == {}
    with pytest.raises(KeyError, match=r"the file has no tensor 'model\.v'"):
        cd.load(file, names=["model.w", "model.v"])
    with pytest.raises(TypeError, match="names must be several names, got one str"):
        cd.load(file, names="model.w")


def test_a_mapped_file_is_not_copied(file: Path) -> None:
    """Tensors lie in the mapping; a write to one does not reach the file."""
    found = cd.load(file, mmap=True)
    w = found["model"]["w"]
    assert w.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["model"]["flag"].tolist() == [True, False]
    assert found["step"][0].item() == 7
    before = file.read_bytes()
    w += 1
    assert w.sum().item() == 21
    assert file.read_bytes() == before
    assert cd.load(file, mmap=True, names=["model.w"])["model.w"].sum().item() == 15


def test_mapped_tensors_of_one_storage_share_it(tmp_path: Path) -> None:
    """As in PyTorch, views in a mapped file of PyTorch stay over one memory; otherwise they are separate."""
    x = cd.arange(6.0).reshape(2, 3)
    cd.save([x, x[1]], tmp_path / "x", format="pt")
    whole, row = cd.load(tmp_path / "x", mmap=True)
    assert address(row) - address(whole) == 12
    whole, row = cd.load(tmp_path / "x")
    row += 1
    assert whole[1].tolist() == [3, 4, 5]


def test_what_cannot_be_mapped(tmp_path: Path) -> None:
    """A file object has no path, and old formats no layout for it."""
    with pytest.raises(ValueError, match="mmap=True requires a path"):
        cd.load(io.BytesIO(b""), mmap=True)
    for options in ({"mmap": True}, {"names": ["a"]}):
        with pytest.raises(ValueError, match=r"mmap and names are for safetensors and zip files, and .* before 1\.6"):
            cd.load(DATA / "views-legacy.pt", **options)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(FileFormatError, match="got an empty file"):
        cd.load(tmp_path / "empty", mmap=True)


def test_loaded_memory_is_that_of_the_tensors(tmp_path: Path) -> None:
    """Reading takes the memory of the tensors and no copy of the file, in both formats; saving takes no copy."""
    size = 4 << 20
    state = {f"w{i}": cd.zeros(size // 16) for i in range(4)}
    for form in FORMATS:
        path = tmp_path / form
        tracemalloc.start()
        try:
            cd.save(state, path, format=form)
            assert tracemalloc.get_traced_memory()[1] < size / 4
            tracemalloc.reset_peak()
            found = cd.load(path)
            assert tracemalloc.get_traced_memory()[1] < 1.1 * size
        finally:
            tracemalloc.stop()
        assert sorted(found) == sorted(state)


def test_a_source_reads_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is then a bytearray; at the end of the file fewer bytes come back."""
    monkeypatch.delitem(sys.modules, "numpy")
    source = ByteSource(io.BytesIO(b"abcdef"))
    assert bytes(source.read(2, 3)) == b"cde"
    assert bytes(source.read(4, 9)) == b"ef"
    assert not source.read(2, 3).readonly


def test_damaged_offsets_of_an_archive(tmp_path: Path) -> None:
    """A local header that is not where the directory has it is an error."""
    cd.save({"w": cd.ones(3)}, tmp_path / "x", format="pt")
    data = bytearray((tmp_path / "x").read_bytes())
    place = data.index(b"archive/data/0") - 30
    data[place : place + 4] = b"XX\3\4"
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(FileFormatError, match="expected the bytes of the record 'data/0', got others; damaged"):
        cd.load(tmp_path / "x")


def test_an_archive_that_begins_before_its_file(tmp_path: Path) -> None:
    """zipfile moves all offsets by what the end of an archive says; a record before the file's start is an error."""
    cd.save({"w": cd.ones(3)}, tmp_path / "x", format="pt")
    data = bytearray((tmp_path / "x").read_bytes())
    end = data.rindex(b"PK\5\6")
    place = data.rindex(b"archive/data/0") - 46  # its entry in the directory
    (offset,) = struct.unpack_from("<I", data, end + 16)
    struct.pack_into("<I", data, end + 16, offset + 8)
    for start in (m.start() for m in re.finditer(b"PK\1\2", data)):
        (where,) = struct.unpack_from("<I", data, start + 42)
        struct.pack_into("<I", data, start + 42, 3 if start == place else where + 8)
    (tmp_path / "x").write_bytes(data)
    for mapped in (False, True):
        with pytest.raises(FileFormatError, match="the bytes of the record 'data/0', got a negative offset; damaged"):
            cd.load(tmp_path / "x", mmap=mapped)


# -- several files ----------------------------------------------------------------------------------------------------
def shards(folder: Path, form: str = "safetensors") -> Path:
    """Write a checkpoint in two files, and return the path of its index."""
    for name, state in (("a", {"x": cd.ones(2), "y": cd.zeros(3)}), ("b", {"z": cd.arange(4)})):
        cd.save(state, folder / name, format=form)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4}, "weight_map": {"z": "b", "x": "a", "y": "a"}}))
    return index


@pytest.mark.parametrize("form", FORMATS)
def test_several_files_load_as_one(tmp_path: Path, form: str) -> None:
    """The result is one dict in the order of the index; a subset opens only the files that it needs."""
    index = shards(tmp_path, form)
    for mapped in (False, True):
        found = cd.load(index, mmap=mapped)
        assert list(found) == ["z", "x", "y"]
        assert found["z"].tolist() == [0, 1, 2, 3]
    (tmp_path / "a").unlink()
    assert list(cd.load(str(index), names={"z"})) == ["z"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "a JSON object with a weight_map, got a list"),
        (b"{}", "a JSON object with a weight_map, got a dict"),
        (b'{"weight_map": {"x": "../a"}}', "the name of a file next to the index for 'x', got '../a'"),
        (b'{"weight_map": {"x": ".."}}', "the name of a file next to the index for 'x', got '..'"),
        (b'{"weight_map": {"x": "/etc/a"}}', "the name of a file next to the index for 'x', got '/etc/a'"),
        (b'{"weight_map": {"x": "%s"}}' % (b"a" * 300), "the name of a file next to the index for 'x', got 'aaaa"),
        (b'{"weight_map": {"x": 3}}', "the name of a file next to the index for 'x', got 3"),
        (b'{"weight_map": {"x": "a\\u0000"}}', "the name of a file next to the index for 'x', got 'a\\x00'"),
        (b'{"weight_map": {"x": "a\\ud800"}}', "the name of a file next to the index for 'x', got 'a\\ud800'"),
        (b'{"weight_map": {"x": "m.index.json"}}', "the name of a file of tensors for 'x', got that of an index"),
        (b'{"weight_map": {"q": "a"}}', "a tensor 'q' in a, got none"),
        (b'{"weight_map": {"q": "old"}}', "a file of safetensors or a zip file of PyTorch, as part of an index"),
        (b"{", "the index in JSON"),
        (b"\xff", "an index in UTF-8"),
    ],
)
def test_an_index_that_is_damaged(tmp_path: Path, text: bytes, message: str) -> None:
    """The error says what the index lacks; an index names no file elsewhere."""
    index = shards(tmp_path)
    (tmp_path / "old").write_bytes((DATA / "views-legacy.pt").read_bytes())
    index.write_bytes(text)
    with pytest.raises(FileFormatError, match=re.escape(message)):
        cd.load(index)


def test_an_index_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index is read up to a limit."""
    from candelabra._serialization import sharded

    index = shards(tmp_path)
    monkeypatch.setattr(sharded, "MAX_HEADER_BYTES", 10)
    with pytest.raises(FileFormatError, match="an index of at most 10 bytes, got more"):
        cd.load(index)


def test_arrays_of_other_alignment_are_copied() -> None:
    """A tensor's memory is aligned, also if the bytes in a mapped file are not."""
    from candelabra._interchange.host import adopted
    from candelabra.library import open_device

    memory = np.zeros(17, "u1")
    found = adopted(memoryview(memory)[1:], cd.float64, (2,), open_device(None))
    memory[:] = 1
    assert found.tolist() == [0, 0]
