"""Valid files of each format, from a random number generator."""

from __future__ import annotations

import io
import json
import pickle  # noqa: TID251 - only its writing half, to make files
import struct
import zipfile
from collections import OrderedDict
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import candelabra as cd
from candelabra import nn
from candelabra._serialization.torch_file import LEGACY_START

from tests.core.serialization import t7_writer

DATA = Path(__file__).parent.parent / "data"
FIXTURES = {path.name: path.read_bytes() for path in sorted(DATA.glob("*.pt"))}

HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**61 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30)
INTS = (-(2**63), -(2**31), -1, 0, 1, 2, 3, 5, 8, 63, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536, *HUGE)
TEXTS = ("", "a", "weight", "é", "\0", "\ud800", "../a", "__class__", "$tensor", "x" * 300, "little", "big", "9" * 400)

DTYPES = (
    *(cd.bool, cd.uint8, cd.int8, cd.int16, cd.int32, cd.int64, cd.uint16, cd.uint32, cd.uint64),
    *(cd.float16, cd.bfloat16, cd.float32, cd.float64, cd.complex64, cd.complex128),
)
STORED = 100
"""The number of elements in the storages of invented tensors: enough for any number of overlapping dims of size 2."""
KINDS = [kind for kind in t7_writer.KINDS if kind != "Half"]


def tensor(rng: Random) -> cd.Tensor:
    """Return a small tensor, sometimes a view."""
    shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
    x = cd.zeros(shape, dtype=rng.choice(DTYPES))
    view = rng.randrange(8)
    if view == 0 and x.dim() > 1:
        return x.transpose(0, 1)
    if view == 1 and x.dim() and x.shape[0]:
        return x[1:]
    return x.expand(3, *x.shape) if view == 2 else x


def value(rng: Random, depth: int = 0) -> Any:
    """Return a value that both of our formats write."""
    kind = rng.randrange(14 if depth < 3 else 9)
    if kind < 4:
        return tensor(rng)
    if kind < 9:
        plain = (None, True, -1, 2**70, 0.5, float("nan"), 3 + 4j, "text", rng.choice(INTS), rng.choice(TEXTS[:4]))
        return rng.choice(plain)
    items = [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 9:
        return items
    if kind == 10:
        return tuple(items)
    if kind == 11:
        return dict(enumerate(items))
    keyed = {f"key{i}": item for i, item in enumerate(items)}
    return OrderedDict(keyed) if kind == 12 else keyed


def safetensors(rng: Random) -> bytes:
    """Return a file of our own, sometimes with a module."""
    f = io.BytesIO()
    module = {"model": nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "w": cd.ones(2)}
    cd.save(module if rng.randrange(4) == 0 else {"w": cd.ones(2), "v": value(rng), "u": value(rng)}, f)
    return f.getvalue()


def torch_zip(rng: Random) -> bytes:
    """Return a zip file of PyTorch's format: of PyTorch, or written here."""
    if rng.randrange(3) == 0:
        return FIXTURES[rng.choice([name for name in FIXTURES if not _refused(name)])]
    f = io.BytesIO()
    cd.save({"w": cd.ones(2), "v": value(rng), "u": value(rng)}, f, format="pt")
    return f.getvalue()


def _refused(name: str) -> bool:
    return "legacy" in name or name in ("module.pt", "conjugated.pt")


def torch_legacy(rng: Random) -> bytes:
    """Return a file of PyTorch before 1.6."""
    if rng.randrange(2):
        return FIXTURES["views-legacy.pt"]
    count = rng.randrange(1, 4)
    items = b"".join(tensor_pickle((2,), (1,), 0, key=str(i)) for i in range(count))
    start = LEGACY_START + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    keys = pickle.dumps([str(i) for i in range(count)], 2)
    return start + b"\x80\x02(" + items + b"l." + keys + struct.pack(f"<Q{STORED}f", STORED, *range(STORED)) * count


def odd_zip(rng: Random) -> bytes:
    """Return a sound archive of tensors with shapes, strides and offsets that PyTorch does not write."""
    items = b"".join(tensor_pickle(*geometry(rng)) for _ in range(rng.choice((1, 1, 3, 50))))
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02(" + items + b"l.")
        archive.writestr("a/data/0", bytes(4 * STORED))
        if rng.randrange(4) == 0:
            archive.writestr("a/byteorder", b"big")
    return f.getvalue()


def odd_safetensors(rng: Random) -> bytes:
    """Return a sound file with shapes that no other writer writes."""
    shape, steps, _ = geometry(rng)
    size = prod(max(0, n) for n in shape)
    entry = {"dtype": "U8", "shape": rng.choice((shape, [*shape, 0], steps)), "data_offsets": [0, min(size, STORED)]}
    text = json.dumps({"x": entry}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(min(size, STORED))


def tensor_pickle(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, key: str = "0") -> bytes:
    """Return the opcodes that push a float32 tensor over a storage of `STORED` elements."""
    text = key.encode()
    storage = b"((X\x07\0\0\0storagectorch\nFloatStorage\nX" + struct.pack("<I", len(text)) + text
    storage += b"X\x03\0\0\0cpuK" + bytes([STORED]) + b"tQ"
    sizes = [b"(" + b"".join(map(number, numbers)) + b"t" for numbers in (shape, strides)]
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + storage + number(offset) + sizes[0] + sizes[1] + b"\x89}tR"


def number(n: int) -> bytes:
    """Return the opcode that pushes an int."""
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data if len(data) < 256 else b"K\0"


def geometry(rng: Random) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides and offset of a tensor that a file should not have, over a storage of `STORED` elements."""
    if rng.randrange(2):  # many dims, which overlap within the storage
        rank = rng.randrange(12, 64)
        sizes: tuple[int, ...] = rng.choice(((2,), (1, 2)))
        steps: tuple[int, ...] = rng.choice(((0,), (1,), (0, 1), (1, 2)))
        return tuple(rng.choices(sizes, k=rank)), tuple(rng.choices(steps, k=rank)), 0
    rank = rng.choice((0, 1, 2, 3, 12, 30, 64, 65, 300))
    sizes = rng.choice(((2,), (0, 2, *HUGE), (1, 1, 1, 2**16), (1, 2, 3, 5), INTS))
    steps = rng.choice(((0,), (1,), (0, 1), (0, 1, 2), INTS))
    shape = tuple(rng.choice(sizes) for _ in range(rank))
    strides = tuple(rng.choice(steps) for _ in range(rank if rng.randrange(8) else rng.randrange(4)))
    return shape, strides, rng.choice((0, 0, 0, 0, 1, rng.choice(INTS)))


def t7(rng: Random, writer: t7_writer.Writer | None = None) -> bytes:
    """Return a file of LuaTorch, by a writer that may damage it."""
    writer = t7_writer.Writer(**rng.choice(FORMS)) if writer is None else writer
    writer.object(_lua(rng, []))
    return writer.out.getvalue()


FORMS: tuple[dict[str, Any], ...] = ({"long": 8}, {"long": 4}, {"ascii": True})


def _lua(rng: Random, known: list[object], depth: int = 0) -> object:
    """Return a value for the writer of LuaTorch's format."""
    kind = rng.randrange(10 if depth < 3 else 6)
    if kind < 2:
        return rng.choice((None, True, 3.0, -0.5, "text", b"\xff"))
    if kind == 2 and known:
        return rng.choice(known)
    if kind < 6:
        name, rows = rng.choice(KINDS), rng.randrange(4)
        dtype = t7_writer.KINDS[name]
        storage = t7_writer.Storage(name, [float(i) if dtype.startswith("float") else i for i in range(2 * rows)])
        made: object = storage if kind == 5 else t7_writer.Tensor(name, (rows, 2), (2, 1), 1, storage)
    elif kind == 6:
        made = t7_writer.Function(rng.choice((6, 7, 8)), _lua(rng, known, depth + 1))
    elif kind == 7:
        made = t7_writer.Torch("nn.Linear", t7_writer.Table(("weight", _lua(rng, known, depth + 1))))
    else:
        keys: list[Any] = list(range(1, 4)) if kind == 8 else ["a", 2.5, True]
        made = t7_writer.Table(*((key, _lua(rng, known, depth + 1)) for key in keys[: rng.randrange(4)]))
    known.append(made)
    return made
