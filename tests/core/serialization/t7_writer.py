"""A writer of LuaTorch's files, by the rules of torch7's File.lua, Tensor.c and Storage.c."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

KINDS = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
}


class Ref:
    """An object with an index, which is written once and then referenced."""


class Table(Ref):
    """A Lua table, as its pairs in the order of writing."""

    def __init__(self, *pairs: tuple[object, object]) -> None:
        self.pairs = list(pairs)


class Torch(Ref):
    """An object of a class, which is written as its fields."""

    def __init__(self, name: str, fields: object, version: str | None = "V 1") -> None:
        self.name = name
        self.fields = fields
        self.version = version


class Storage(Torch):
    """torch.*Storage; ``length`` is the number that is written as its length."""

    def __init__(self, kind: str, values: list[Any], length: int | None = None) -> None:
        super().__init__(f"torch.{kind}Storage", None)
        self.dtype = KINDS.get(kind.removeprefix("Cuda"), "float32")
        self.values = values
        self.length = len(values) if length is None else length


class Tensor(Torch):
    """torch.*Tensor; ``offset`` starts at 1, as in Lua."""

    def __init__(
        self, kind: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, storage: object
    ) -> None:
        super().__init__(f"torch.{kind}Tensor", None)
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.storage = storage


class Function(Ref):
    """A function, of one of the three historical types."""

    def __init__(self, kind: int, closed_over: object) -> None:
        self.kind = kind
        self.closed_over = closed_over


class Writer:
    """torch.File: binary, or text with a newline after each item."""

    def __init__(self, *, ascii: bool = False, long: int = 8) -> None:
        self.ascii = ascii
        self.long = long
        self.out = io.BytesIO()
        self.indices: dict[int, int] = {}

    def numbers(self, form: str, *values: float) -> None:
        if self.ascii and values:
            self.out.write(" ".join(f"{v:.17g}" if isinstance(v, float) else str(v) for v in values).encode() + b"\n")
        elif not self.ascii:
            self.out.write(struct.pack(f"<{len(values)}{form}", *values))

    def longs(self, *values: int) -> None:
        self.numbers("q" if self.long == 8 else "i", *values)

    def chars(self, text: bytes) -> None:
        self.out.write(text + (b"\n" if self.ascii and text else b""))

    def string(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.numbers("i", len(data))
        self.chars(data)

    def object(self, value: object) -> None:
        if value is None:
            self.numbers("i", 0)
        elif isinstance(value, bool):
            self.numbers("i", 5)
            self.numbers("i", int(value))
        elif isinstance(value, int | float):
            self.numbers("i", 1)
            self.numbers("d", value)
        elif isinstance(value, str | bytes):
            self.numbers("i", 2)
            self.string(value)
        else:
            self.reference(value)

    def reference(self, value: object) -> None:
        kind = value.kind if isinstance(value, Function) else 3 if isinstance(value, Table) else 4
        self.numbers("i", kind)
        if kind != 6:
            known = id(value) in self.indices
            self.numbers("i", self.indices.setdefault(id(value), len(self.indices) + 1))
            if known:
                return
        if isinstance(value, Table):
            self.numbers("i", len(value.pairs))
            for pair in value.pairs:
                self.object(pair[0])
                self.object(pair[1])
        elif isinstance(value, Function):
            self.string(b"\x1bLJ\x01")
            self.object(value.closed_over)
        elif isinstance(value, Torch):
            if value.version:
                self.string(value.version)
            self.string(value.name)
            self.contents(value)

    def contents(self, value: Torch) -> None:
        if isinstance(value, Tensor):
            self.numbers("i", len(value.shape))
            self.longs(*value.shape)
            self.longs(*value.strides)
            self.longs(value.offset)
            self.object(value.storage)
        elif isinstance(value, Storage):
            self.longs(value.length)
            if value.dtype in ("uint8", "int8"):
                self.chars(bytes(v & 255 for v in value.values))
            elif value.dtype == "int64":
                self.longs(*value.values)
            else:
                self.numbers(np.dtype(value.dtype).char, *value.values)
        else:
            self.object(value.fields)


def written(value: object, **form: Any) -> bytes:
    """Return the file of a value."""
    writer = Writer(**form)
    writer.object(value)
    return writer.out.getvalue()
