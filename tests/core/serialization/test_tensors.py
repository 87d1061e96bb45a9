"""save and load with the core's own tensors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra.serialization import load, save

DATA = Path(__file__).parent / "data"

DTYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back(tmp_path: Path, dtype: str) -> None:
    """Our files and PyTorch's files are read."""
    tensor = cd.arange(3).to(getattr(cd, dtype))
    save({"t": tensor}, tmp_path / "x")
    back = load(tmp_path / "x")["t"]
    assert back.dtype is tensor.dtype
    assert back.tolist() == tensor.tolist() == [0, 1, 1 if dtype == "bool" else 2]
    back = load(DATA / "dtypes.pt")[dtype]
    assert back.dtype is tensor.dtype
    assert back.tolist() == [0, 1, 1 if dtype == "bool" else 3]


def test_a_file_is_little_endian_on_every_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a big-endian machine the bytes are swapped, and a complex number is swapped as two numbers."""
    if sys.byteorder == "little":
        monkeypatch.setattr(sys, "byteorder", "big")
    tensor = cd.arange(3).to(cd.complex64)
    save(tensor, tmp_path / "x")
    assert load(tmp_path / "x").tolist() == tensor.tolist()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "byteorder", "little")
    assert load(tmp_path / "x").tolist() != tensor.tolist()


def test_shapes_and_views_come_back(tmp_path: Path) -> None:
    """Tensors are contiguous after loading, also without dims or elements."""
    base = cd.arange(6.0).reshape(2, 3)
    tensors = [base.T, base[:, 1], base[1:, ::2], base.sum(), base[:0], cd.ones(1).expand(2, 2)]
    save(tensors, tmp_path / "x")
    for back, tensor in zip(load(tmp_path / "x"), tensors, strict=True):
        assert back.shape == tensor.shape
        assert back.tolist() == tensor.tolist()
        assert back.is_contiguous()


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    """requires_grad and sharing are restored; a non-leaf tensor becomes a leaf."""
    w = cd.ones(2, requires_grad=True)
    save({"w": w, "tied": w, "out": w * 2, "size": w.shape, "step": 3}, tmp_path / "x")
    back = load(tmp_path / "x")
    assert back["tied"] is back["w"]
    assert back["w"].requires_grad
    assert back["out"].is_leaf
    assert (back["size"], back["step"]) == ((2,), 3)


def test_what_is_loaded_can_be_written_to(tmp_path: Path) -> None:
    """A tensor has its own memory, not the file's."""
    save([cd.zeros(2), cd.zeros(2)], tmp_path / "x")
    a, b = load(tmp_path / "x")
    a.add_(1)
    assert (a.tolist(), b.tolist()) == ([1, 1], [0, 0])
    assert load(tmp_path / "x")[0].tolist() == [0, 0]


def test_a_tensor_goes_where_it_is_asked(tmp_path: Path) -> None:
    """map_location is a device, by name or as an object."""
    save(cd.ones(1), tmp_path / "x")
    device = cd.ones(1).device
    assert load(tmp_path / "x", device).device == device
    assert load(tmp_path / "x", str(device)).device == device


def test_devices_in_the_file_are_mapped(tmp_path: Path) -> None:
    """By a dict, or by a function of a storage and the device in the file."""
    file = tmp_path / "x"
    save({"a": cd.ones(2), "b": cd.ones(3)}, file, format="pt")
    assert load(file, {"cpu": "meta"})["a"].device.type == "meta"
    assert load(file, {"elsewhere:0": "meta"})["b"].tolist() == [1, 1, 1]
    seen = []

    def stay(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    assert load(file, stay)["a"].tolist() == [1, 1]
    assert seen == ["cpu"]  # once for each device
    assert load(file, lambda *_: None)["a"].tolist() == [1, 1]
    with pytest.raises(
        TypeError, match=r"load\(\): the function map_location must return a storage or None, got a str"
    ):
        load(file, lambda *_: "cpu")
    save(cd.ones(1), file)
    assert load(file, {"cpu": "meta"}).device.type == "meta"
