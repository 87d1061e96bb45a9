"""save and load, with the tests' own tensor class instead of the core's."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from candelabra._serialization import api
from candelabra.serialization import FileFormatError, load, save

from tests.core.serialization.fake_tensor import ACCESS, FakeTensor, floats

DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def _fake_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(data: bytes, dtype: str, shape: tuple[int, ...], device: object = None) -> FakeTensor:
        return FakeTensor(data, dtype, shape, device=device)

    monkeypatch.setattr(api, "_bridge", lambda: (ACCESS, make))


def test_a_checkpoint_comes_back_from_a_path(tmp_path: Path) -> None:
    """The path is a str or a Path, and the checkpoint is one file."""
    w = floats(1, 2).requires_grad_()
    save({"epoch": 3, "model": {"w": w}, "best": w}, tmp_path / "x")
    for path in (tmp_path / "x", str(tmp_path / "x")):
        back = load(path)
        assert back["epoch"] == 3
        assert back["model"]["w"].stored_values == w.stored_values
        assert back["best"] is back["model"]["w"]
    assert os.listdir(tmp_path) == ["x"]


def test_a_checkpoint_comes_back_from_a_file_object(tmp_path: Path) -> None:
    """The file object is in memory, or is read from its position to the end."""
    f = io.BytesIO()
    f.write(b"before")
    save([floats(1)], f)
    f.seek(6)
    assert load(f)[0].stored_values == floats(1).stored_values
    (tmp_path / "x").write_bytes(f.getvalue())
    with open(tmp_path / "x", "rb") as opened:
        opened.seek(6)
        assert load(opened)[0].stored_values == floats(1).stored_values


@pytest.mark.parametrize(
    "obj", [[floats(1), print], [floats(1), FakeTensor(b"", "int8", (5,))], {"a": FakeTensor(b"a", "float4", (1,))}]
)
def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path, obj: object) -> None:
    """The error may be raised before the first byte or in the middle."""
    save("old", tmp_path / "x")
    with pytest.raises((TypeError, ValueError), match="cannot save"):
        save(obj, tmp_path / "x")
    assert load(tmp_path / "x") == "old"
    assert os.listdir(tmp_path) == ["x"]


T7 = struct.pack("<iiiidi", 3, 1, 1, 1, 1, 0)


def test_each_format_is_known_by_its_content(tmp_path: Path) -> None:
    """The file name has no effect."""
    assert load(DATA / "values.pt")["epoch"] == 3
    assert load(DATA / "views-legacy.pt")["parameter"].requires_grad
    for i, data in enumerate([T7, b"3\n1\n1\n1\n1\n0\n"]):
        (tmp_path / str(i)).write_bytes(data)
        assert load(tmp_path / str(i)) == [None]


def test_tensors_go_to_the_device_that_is_asked_for() -> None:
    """The device may be passed by position or by keyword, as in PyTorch programs."""
    f = DATA / "attribute.pt"
    assert load(f).device is None
    assert load(f, "flame:1").device == "flame:1"
    assert load(f, map_location="flame:1", weights_only=True).device == "flame:1"


UNKNOWN = "a file of candelabra, safetensors, PyTorch (.pt, .pth) or LuaTorch (.t7)"


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"", "an empty file"),
        (b"hello, world", "one that begins with b'hello, w'"),
        (b"\x80\x04K\x01.", "a plain pickle; candelabra executes no pickle; save it with torch.save, or its arrays as"),
        (b"\x93NUMPY\x01\x00", "an array of NumPy; numpy.load reads it"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"x" * 257 + b"ustar" + b"x" * 300, "a tar archive, as PyTorch wrote before 0.1.10; load and save it with"),
        (b"\xff" * 8 + b"{", r"one that begins with b'\xff\xff"),
    ],
)
def test_another_file_is_an_error_that_says_what_it_is(tmp_path: Path, data: bytes, got: str) -> None:
    """The error lists the formats that are supported."""
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(
        FileFormatError, match=re.escape(f"cannot read {tmp_path / 'x'}: expected {UNKNOWN}, got {got}")
    ):
        load(tmp_path / "x")
    with pytest.raises(FileFormatError, match=re.escape(f"cannot read the file object: expected {UNKNOWN}, got {got}")):
        load(io.BytesIO(data))


def test_every_prefix_of_each_format_is_an_error(tmp_path: Path) -> None:
    """The error is raised also if the remaining bytes do not identify the format."""
    save([floats(1)], tmp_path / "x")
    paths = (tmp_path / "x", DATA / "attribute.pt", DATA / "views-legacy.pt")
    for data in [path.read_bytes() for path in paths] + [T7]:
        for end in range(len(data)):
            with pytest.raises(FileFormatError, match=r"^cannot read the file object: expected .*, got "):
                load(io.BytesIO(data[:end]))


def test_a_file_that_is_missing_is_the_error_of_open(tmp_path: Path) -> None:
    """FileNotFoundError is raised, and not the error of a damaged file."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "x")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: save(1, 2), "save(): f must be a path or a binary file, got int"),  # type: ignore[arg-type]
        (lambda: load(2), "load(): f must be a path or a binary file, got int"),  # type: ignore[arg-type]
        (lambda: load(io.StringIO("x")), "load(): f must be opened in binary mode, but its read() returned str"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named(call: object, message: str) -> None:
    """The error is raised before any file is opened."""
    assert callable(call)
    with pytest.raises(TypeError, match=re.escape(message)):
        call()


def test_views_of_a_file_take_a_bounded_multiple_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand tensors may view the same bytes, each described by a few bytes of the file."""
    monkeypatch.setattr("candelabra._serialization.stored.MAX_EXPANDED_BYTES", 40)
    assert load(DATA / "views.pt")
    monkeypatch.setattr(api, "_VIEWS", 0)
    with pytest.raises(FileFormatError, match="expected tensors of at most 40 bytes together, got 56"):
        load(DATA / "views.pt")


def test_a_bool_of_a_file_is_true_or_false(tmp_path: Path) -> None:
    """The error names the file."""
    save(FakeTensor(b"\2", "bool", (1,)), tmp_path / "x")
    with pytest.raises(FileFormatError, match="expected the elements of a tensor, got a bool must be stored as 0 or 1"):
        load(tmp_path / "x")


def test_importing_the_package_imports_no_reader() -> None:
    """Importing the package imports neither the readers nor their dependencies."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    program = "import sys, candelabra.serialization; print(*sys.modules)"
    run = subprocess.run(  # -S: the .pth files of an environment may import modules.
        [sys.executable, "-S", "-c", program], check=True, capture_output=True, text=True, env={"PYTHONPATH": path}
    )
    imported = set(run.stdout.split())
    assert "candelabra._serialization.api" in imported
    assert not imported & {"json", "zipfile", "pickle", "pickletools", "safetensors", "numpy"}
    assert not imported & {f"candelabra.serialization.{name}" for name in ("tree", "stored", "torch_file", "t7_file")}
