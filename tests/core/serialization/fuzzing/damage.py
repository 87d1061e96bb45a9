"""Damage to files: to the values of JSON, the opcodes of pickles, the fields of archives, and to any bytes."""

from __future__ import annotations

import io
import json
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

from candelabra._serialization.torch_file import LEGACY_START

from tests.core.serialization import t7_writer
from tests.core.serialization.fuzzing import files

CODES = ("F32", "F64", "U8", "BOOL", "C64", "BF16", "F9", "")
TAGS = ("$tensor", "$dict", "$int", "$float", "$complex", "$object", "$ref", "$set", "$function", "$dtype", "$device")
CLASSES = (
    *("os.system", "builtins.eval", "subprocess.Popen", "candelabra.nn.modules.linear.Linear", "candelabra.nn.os"),
    *("candelabra.nn.parameter.Parameter", "candelabra.nn.parameter._buffer", "candelabra.nn..x", "nn.functional.relu"),
)
GLOBALS = (
    *("os system", "builtins eval", "__builtin__ set", "builtins bytes", "collections OrderedDict", "torch Size"),
    *("collections Counter", "_codecs encode", "torch device", "torch.nn.parameter Parameter", "torch float32"),
    *("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3"),
    *("torch._utils _rebuild_parameter", "torch._tensor _rebuild_from_type_v2", "torch DoubleStorage"),
    *("torch.storage UntypedStorage", "torch BoolStorage", "builtins complex", "torch ComplexDoubleStorage"),
)
OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]


# -- any bytes --------------------------------------------------------------------------------------------------------
def some_bytes(rng: Random, data: bytes) -> bytes:
    """Change, remove or repeat a few bytes anywhere."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
    if kind == 2:
        return data[:at] + data[at + rng.randrange(1, 9) :]
    if kind == 3:
        length = rng.choice((1, 2, 4, 8))
        new = (rng.choice(files.INTS) % 256**length).to_bytes(length, "little")
        return data[:at] + new + data[at + length :]
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4) if data else 0):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


# -- JSON -------------------------------------------------------------------------------------------------------------
def json_value(rng: Random, node: Any) -> Any:
    """Return a JSON value with one part changed."""
    places: list[tuple[Any, Any]] = []
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, dict | list):
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            places += [(part, key) for key in keys]
            ahead += [part[key] for key in keys]
    if not places:
        return _any_json(rng, node)
    container, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind == 0:
        del container[key]
    elif kind == 1:
        other, name = rng.choice(places)
        container[key] = json.loads(json.dumps(other[name]))
    elif kind == 2 and isinstance(container, dict):
        container[rng.choice((*TAGS, *files.TEXTS))] = container.pop(key)
    else:
        container[key] = _any_json(rng, container[key])
    return node


def _any_json(rng: Random, old: Any) -> Any:
    kind = rng.randrange(9)
    if kind == 0:
        return {rng.choice(TAGS): old}
    if kind == 1:
        return {"$object": {"class": rng.choice(CLASSES), rng.choice(("state", "arguments", "x")): old}}
    if kind == 2:
        return {rng.choice(TAGS): rng.choice((*CLASSES, *files.TEXTS, *files.INTS, [], {}, [old, old]))}
    if kind == 3:
        shape, strides, _ = files.geometry(rng)
        return list(rng.choice((shape, strides)))
    if kind == 4:
        for _ in range(rng.choice((2, 90, 101, 300))):
            old = [old] if rng.randrange(2) else {"a": old}
        return old
    if kind == 5:
        return rng.choice((*CODES, *CLASSES, *files.TEXTS))
    return rng.choice((None, True, 0.5, 1e300, "", [], {}, *files.INTS))


def json_text(rng: Random, node: Any) -> bytes:
    """Return the text of a JSON value, sometimes damaged as a text."""
    text = json.dumps(node).encode()
    kind = rng.randrange(12)
    if kind == 0:
        return re.sub(rb"\d+", lambda m: (m[0] * 700)[:5000], text, count=1)
    if kind == 1:
        return re.sub(
            rb"\d+", rng.choice((b"NaN", b"1e999", b"-0", b"[" * 500, b"1.5")), text, count=rng.randrange(1, 4)
        )
    if kind == 2:
        return re.sub(rb"(\{)(.*?,)", rb"\1\2\2", text, count=1)  # a key that occurs twice
    return some_bytes(rng, text) if kind == 3 else text


def safetensors(rng: Random, data: bytes) -> bytes:
    """Damage the header, the document of candelabra in it, or the data."""
    if rng.randrange(8) == 0:
        return files.odd_safetensors(rng)
    length = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{" or 8 + length > len(data) or rng.randrange(8) == 0:
        return some_bytes(rng, data)
    try:
        header = json.loads(data[8 : 8 + length])
        kind = rng.randrange(4)
        if kind == 0:
            document = json.loads(header["__metadata__"]["candelabra"])
            header["__metadata__"]["candelabra"] = json_text(rng, json_value(rng, document)).decode("latin-1")
        elif kind == 1:
            shape, _, _ = files.geometry(rng)
            header[rng.choice([name for name in header if name != "__metadata__"])]["shape"] = shape
        else:
            header = json_value(rng, header)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):  # it is damaged already
        return some_bytes(rng, data)
    text = json_text(rng, header)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


# -- pickles ----------------------------------------------------------------------------------------------------------
def pickle(rng: Random, data: bytes) -> bytes:
    """Damage a pickle, by its opcodes while it has valid ones."""
    places = []
    try:
        for opcode, argument, place in pickletools.genops(data):
            places.append((place or 0, opcode.name, argument))
    except (ValueError, OverflowError, Warning):
        pass
    if len(places) < 2 or rng.randrange(10) == 0:
        return some_bytes(rng, data)
    ints = [i for i, (_, _, argument) in enumerate(places[:-1]) if isinstance(argument, int)]
    i = rng.choice(ints) if ints and rng.randrange(2) else rng.randrange(len(places) - 1)
    begin, end = places[i][0], places[i + 1][0]
    return data[:begin] + _opcodes(rng, data[begin:end], places[i][1], data) + data[end:]


def _opcodes(rng: Random, old: bytes, name: str, data: bytes) -> bytes:
    """Return opcodes in place of one."""
    kind = rng.randrange(9)
    if kind == 0:
        return b""
    if kind == 1:
        return old * rng.choice((2, 3, 50))
    if kind == 2:
        return files.number(rng.choice(files.INTS))
    if kind == 3 or name == "GLOBAL":
        return b"c" + rng.choice(GLOBALS).replace(" ", "\n").encode() + b"\n"
    if kind == 4:
        return files.tensor_pickle(*files.geometry(rng))
    if kind == 5:
        return rng.choice(OPCODES) + rng.randbytes(rng.randrange(6))
    if kind == 6:
        return b"(" + old + b"2" * rng.choice((1, 20)) + rng.choice((b"l", b"t", b"d", b"\x90", b"R"))
    if kind == 7:
        word = rng.choice((b"p%d\n", b"g%d\n", b"I%d\n", b"L%dL\n"))
        return old + word % rng.choice((*files.INTS, 10**90))
    return rng.choice((b"N", b"]", b"}", b")", b"\x88", b"X\x01\0\0\0x", b"G\x7f\xf8\0\0\0\0\0\0", b"\x8f", b"b", b"Q"))


def torch_legacy(rng: Random, data: bytes) -> bytes:
    """Damage one of the pickles of an old file, or the storages after them."""
    f = io.BytesIO(data)
    f.seek(len(LEGACY_START))
    ends = [f.tell()]
    try:
        for _ in range(4):
            for _operation in pickletools.genops(f):
                pass
            ends.append(f.tell())
    except (ValueError, OverflowError, Warning):
        return some_bytes(rng, data)
    part = rng.choice((0, 1, 2, 2, 2, 2, 3, 4))
    if part == 4:
        return data[: ends[4]] + some_bytes(rng, data[ends[4] :])
    return data[: ends[part]] + pickle(rng, data[ends[part] : ends[part + 1]]) + data[ends[part + 1] :]


# -- archives ---------------------------------------------------------------------------------------------------------
_FIELDS = {  # of each signature: the offsets and widths of its numbers
    b"PK\3\4": ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
    b"PK\1\2": ((4, 2), (6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
    b"PK\5\6": ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}


def torch_zip(rng: Random, data: bytes) -> bytes:
    """Damage a record of an archive, its records as a whole, or a number of its directory."""
    kind = rng.randrange(10)
    if kind > 7:
        return files.odd_zip(rng)
    if kind < 2:
        return _archive_field(rng, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = {name: archive.read(name) for name in archive.namelist()}
        root = next(name for name in records if name.endswith("data.pkl"))
    except Exception:
        return some_bytes(rng, data)
    if kind < 6:
        records[root] = pickle(rng, records[root])
    else:
        _records(rng, records, root.removesuffix("data.pkl"))
    f = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng.randrange(30) == 0 else zipfile.ZIP_STORED
    with zipfile.ZipFile(f, "w", method) as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return f.getvalue()


def _archive_field(rng: Random, data: bytes) -> bytes:
    places = [(m.start(), m[0]) for m in re.finditer(rb"PK(\x01\x02|\x03\x04|\x05\x06)", data)]
    if not places:
        return some_bytes(rng, data)
    place, signature = rng.choice((*places, places[-1]))
    offset, width = rng.choice(_FIELDS[signature])
    old = int.from_bytes(data[place + offset : place + offset + width], "little")
    new = (rng.choice((*files.INTS, old + 1, old - 1, old * 2, old + 100)) % 256**width).to_bytes(width, "little")
    return data[: place + offset] + new + data[place + offset + width :]


def _records(rng: Random, records: dict[str, bytes], folder: str) -> None:
    name = rng.choice(list(records))
    kind = rng.randrange(5)
    if kind == 0:
        del records[name]
    elif kind == 1:
        records[folder + rng.choice(("data/0", "constants.pkl", "x/data.pkl", "byteorder"))] = records[name]
    elif kind == 2:
        records[folder + "byteorder"] = rng.choice((b"big", b"big", b"big", b"middle", b"\xff", b""))
    else:
        records[name] = some_bytes(rng, records[name])


# -- LuaTorch ---------------------------------------------------------------------------------------------------------
class T7Writer(t7_writer.Writer):
    """A writer that now and then writes another number, text or geometry than it should."""

    def __init__(self, rng: Random, every: int, **form: Any) -> None:
        super().__init__(**form)
        self.rng = rng
        self.every = every

    def numbers(self, form: str, *values: float) -> None:
        """Write other numbers than ``values``, if they fit the form."""
        if values and self.rng.randrange(self.every) == 0:
            changed = list(values)
            changed[self.rng.randrange(len(values))] = self.rng.choice(files.INTS)
            if not self.ascii:
                try:
                    struct.pack(f"<{len(values)}{form}", *changed)
                except (struct.error, OverflowError):
                    changed[:] = [1] * len(values)
            values = tuple(changed)
        super().numbers(form, *values)

    def contents(self, value: t7_writer.Torch) -> None:
        """Write a tensor with another geometry, if its numbers fit the form."""
        if isinstance(value, t7_writer.Tensor) and self.rng.randrange(self.every) == 0:
            shape, strides, offset = files.geometry(self.rng)
            bound = 2 ** (8 * self.long - 1)
            if self.ascii or all(-bound <= n < bound for n in (*shape, *strides, offset + 1)):
                storage = t7_writer.Storage("Char", [0] * files.STORED)
                value = t7_writer.Tensor("Char", shape, strides, offset + 1, storage)
        super().contents(value)


def t7(rng: Random, data: bytes) -> bytes:
    """Write another file, with damage, or damage the bytes of this one."""
    if rng.randrange(3) == 0:
        return some_bytes(rng, data)
    return files.t7(rng, T7Writer(rng, rng.choice((3, 10, 30)), **rng.choice(files.FORMS)))


FORMATS: dict[str, tuple[Callable[[Random], bytes], Callable[[Random, bytes], bytes]]] = {
    "safetensors": (files.safetensors, safetensors),
    "zip": (files.torch_zip, torch_zip),
    "legacy": (files.torch_legacy, torch_legacy),
    "t7": (files.t7, t7),
}
"""The writer of valid files and the damage, by the name of a format."""
