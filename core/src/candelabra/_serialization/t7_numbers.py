"""The numbers and characters of a ``.t7`` file, binary or ASCII (torch7's ``THDiskFile.c``)."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod

from candelabra._serialization.stored import ITEM_SIZE
from candelabra.dtypes import ALL
from candelabra.errors import FileFormatError

__all__ = ["AsciiNumbers", "BinaryNumbers", "Numbers"]

_FORMAT = {d.name: d.format for d in ALL}
_TOKEN = re.compile(rb"[ \t\r\n]*([^ \t\r\n]{1,100})")


class Numbers(ABC):
    """A sequential reader of numbers and characters; ``position`` is the number of bytes that were read."""

    def __init__(self, data: bytes, file: str) -> None:
        self.data = data
        self.file = file
        self.position = 0

    @abstractmethod
    def integer(self) -> int:
        """Read a C int of 32 bits."""

    @abstractmethod
    def longs(self, length: int) -> tuple[int, ...]:
        """Read ``length`` C longs."""

    @abstractmethod
    def double(self) -> float:
        """Read a C double."""

    @abstractmethod
    def chars(self, length: int) -> bytes:
        """Read ``length`` bytes."""

    @abstractmethod
    def array(self, dtype: str, length: int) -> bytes:
        """Read ``length`` elements, little-endian; those of int64 are C longs."""

    @abstractmethod
    def end(self) -> None:
        """Raise FileFormatError unless the file was read completely."""

    def size(self, expected: str) -> int:
        """Read an int that must not be negative; ``expected`` describes it in the error."""
        return self._checked(self.integer(), expected)

    def long_size(self, expected: str) -> int:
        """Read a long that must not be negative; ``expected`` describes it in the error."""
        return self._checked(self.longs(1)[0], expected)

    def _checked(self, size: int, expected: str) -> int:
        if size < 0:
            raise FileFormatError(self.file, expected, str(size))
        return size

    def _take(self, length: int) -> bytes:
        left = len(self.data) - self.position
        if length > left:
            raise FileFormatError(
                self.file, f"{length} bytes at byte {self.position}", f"the end of the file after {left}", "truncated"
            )
        self.position += length
        return self.data[self.position - length : self.position]


class BinaryNumbers(Numbers):
    """Little-endian numbers. A C long has ``long`` bytes."""

    def __init__(self, data: bytes, file: str, *, long: int) -> None:
        super().__init__(data, file)
        self.long = long

    def integer(self) -> int:
        return int.from_bytes(self._take(4), "little", signed=True)

    def longs(self, length: int) -> tuple[int, ...]:
        return struct.unpack(f"<{length}{'q' if self.long == 8 else 'i'}", self._take(length * self.long))

    def double(self) -> float:
        value: float = struct.unpack("<d", self._take(8))[0]
        return value

    def chars(self, length: int) -> bytes:
        return self._take(length)

    def array(self, dtype: str, length: int) -> bytes:
        if dtype == "int64" and self.long == 4:
            return struct.pack(f"<{length}q", *self.longs(length))
        return self._take(length * ITEM_SIZE[dtype])

    def end(self) -> None:
        if self.position < len(self.data):
            raise FileFormatError(self.file, f"the end of the file at byte {self.position}", f"{len(self.data)} bytes")


class AsciiNumbers(Numbers):
    """Decimal numbers separated by white space; characters are followed by a line end."""

    def integer(self) -> int:
        value = self.longs(1)[0]
        if not -(2**31) <= value < 2**31:
            raise FileFormatError(self.file, "an int of 32 bits", str(value))
        return value

    def longs(self, length: int) -> tuple[int, ...]:
        return tuple(self._integer(token) for token in self._tokens(length))

    def double(self) -> float:
        return self._float(self._tokens(1)[0])

    def chars(self, length: int) -> bytes:
        chars = self._take(length)
        if length:
            self._line_end()
        return chars

    def array(self, dtype: str, length: int) -> bytes:
        if ITEM_SIZE[dtype] == 1:
            return self.chars(length)
        number = self._float if dtype.startswith("float") else self._integer
        try:
            return struct.pack(f"<{length}{_FORMAT[dtype]}", *map(number, self._tokens(length)))
        except (struct.error, OverflowError) as error:
            raise FileFormatError(self.file, f"numbers of {dtype}", str(error)) from None

    def end(self) -> None:
        if self.data[self.position :].strip():
            raise FileFormatError(self.file, f"the end of the file at byte {self.position}", f"{len(self.data)} bytes")

    def _tokens(self, length: int) -> list[bytes]:
        tokens: list[bytes] = []
        while len(tokens) < length:
            match = _TOKEN.match(self.data, self.position)
            if match is None:
                raise FileFormatError(
                    self.file, f"a number at byte {self.position}", "the end of the file", "truncated"
                )
            self.position = match.end()
            tokens.append(match[1])
        if length:
            self._line_end()
        return tokens

    def _line_end(self) -> None:
        if self.data[self.position : self.position + 1] == b"\n":
            self.position += 1

    def _integer(self, token: bytes) -> int:
        try:
            return int(token)
        except ValueError:
            raise FileFormatError(self.file, "an integer", repr(token)) from None

    def _float(self, token: bytes) -> float:
        try:
            return float(token)
        except ValueError:
            raise FileFormatError(self.file, "a number", repr(token)) from None
