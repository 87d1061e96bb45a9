"""Write plain data as a pickle, for programs that read pickles: numbers, strings, containers, and what a caller adds.

The instructions are those of protocol 2, which PyTorch reads (`pickletools` in the standard library). Nothing is looked
up or called here, and no object's own methods for pickling are used.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.tree import MAX_DEPTH

__all__ = ["PickleWriter"]

BATCH = 1000
"""The number of items that one instruction adds to a container."""


class PickleWriter:
    """A writer of one pickle.

    Args:
        other: writes an object that is not plain data, by the methods of this writer, and returns True; or returns
            False for an object that it does not know.
    """

    def __init__(self, other: Callable[[PickleWriter, Any], bool]) -> None:
        self.other = other
        self.parts = [b"\x80\x02"]
        self.memo: dict[int, tuple[int, object]] = {}  # by id: the number, and the object, which stays alive

    def dumps(self, obj: object) -> bytes:
        """Return the pickle of ``obj``.

        Raises:
            TypeError: ``obj`` contains another type; the error names its path.
            ValueError: containers are nested too deeply.
        """
        self.write(obj, "obj", 0)
        return b"".join([*self.parts, b"."])

    def write(self, obj: Any, path: str = "obj", depth: int = 0) -> None:
        """Write the instructions that push ``obj``."""
        if self.recalled(obj) or self.plain(obj) or self.other(self, obj):
            return
        self.container(obj, path, depth)

    def plain(self, obj: Any) -> bool:
        """Write None, a number, a string or bytes and return True, or return False."""
        if obj is None:
            self.parts.append(b"N")
        elif obj is True or obj is False:
            self.parts.append(b"\x88" if obj else b"\x89")
        elif isinstance(obj, str):
            data = obj.encode("utf-8", "surrogatepass")
            self.parts.append(b"X" + struct.pack("<I", len(data)) + data)
            self.remember(obj)
        elif isinstance(obj, int):
            self.parts.append(_integer(int(obj)))
        elif isinstance(obj, float):
            self.parts.append(b"G" + struct.pack(">d", obj))
        elif isinstance(obj, complex):
            self.call("__builtin__", "complex", obj.real, obj.imag)
        elif isinstance(obj, bytes):
            self.call("_codecs", "encode", obj.decode("latin-1"), "latin1")
        else:
            return False
        return True

    def container(self, obj: Any, path: str, depth: int) -> None:
        """Write a container with its items."""
        if depth >= MAX_DEPTH:
            raise ValueError(f"cannot save {path}: containers are nested more than {MAX_DEPTH} deep")
        if type(obj) is list:
            self.parts.append(b"]")
            self.remember(obj)
            self.batches([[(item, f"{path}[{i}]")] for i, item in enumerate(obj)], b"e", depth)
        elif type(obj) is dict or type(obj) is OrderedDict:
            if type(obj) is dict:
                self.parts.append(b"}")
            else:
                self.call("collections", "OrderedDict")
            self.remember(obj)
            self.batches(
                [[(key, f"a key of {path}"), (value, f"{path}[{key!r}]")] for key, value in obj.items()], b"u", depth
            )
            metadata = getattr(obj, "_metadata", None)
            if metadata is not None:
                self.write({"_metadata": metadata}, f"{path}._metadata", depth + 1)
                self.parts.append(b"b")
        elif type(obj) is tuple:
            self.parts.append(b"(")
            for i, item in enumerate(obj):
                self.write(item, f"{path}[{i}]", depth + 1)
            self.parts.append(b"t")
            self.remember(obj)
        elif type(obj) is set:
            self.call("__builtin__", "set", list(obj))
        else:
            raise TypeError(
                f"cannot save {path}: {kind_of(obj)}; format='pt' holds dicts, lists, tuples, sets, numbers, strings, "
                "bytes, None, dtypes, devices, shapes and tensors"
            )

    def batches(self, entries: list[list[tuple[Any, str]]], instruction: bytes, depth: int) -> None:
        """Write the items of a list or a dict, and the instructions that add them."""
        for begin in range(0, len(entries), BATCH):
            self.parts.append(b"(")
            for entry in entries[begin : begin + BATCH]:
                for item, path in entry:
                    self.write(item, path, depth + 1)
            self.parts.append(instruction)

    def call(self, module: str, name: str, *arguments: Any) -> None:
        """Write a call of a function or class with these arguments."""
        self.look_up(module, name)
        self.write(arguments)
        self.parts.append(b"R")

    def look_up(self, module: str, name: str) -> None:
        """Write the reference to a function or class."""
        self.parts.append(f"c{module}\n{name}\n".encode())

    def recalled(self, obj: object) -> bool:
        """Write a reference to an object that was written already, and return True; or return False."""
        if id(obj) not in self.memo:
            return False
        self.parts.append(b"j" + struct.pack("<I", self.memo[id(obj)][0]))
        return True

    def remember(self, obj: object) -> None:
        """Give the object on top of the stack a number, by which later instructions refer to it."""
        self.parts.append(b"r" + struct.pack("<I", len(self.memo)))
        self.memo[id(obj)] = (len(self.memo), obj)


def _integer(value: int) -> bytes:
    """Return the instruction that pushes an integer of any size."""
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(data) < 256:
        return b"\x8a" + bytes([len(data)]) + data
    return b"\x8b" + struct.pack("<I", len(data)) + data
