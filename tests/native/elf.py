"""The dynamic symbols of a shared library of Linux with 64 bits, as the System V ABI defines the format (chapter 4)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

SYMBOL_TABLE, DYNAMIC, NEEDED = 11, 6, 1


class Library(NamedTuple):
    """The facts that a loader reads."""

    machine: int
    """62 for x86-64, 183 for aarch64."""
    imported: list[str]
    exported: list[str]
    needed: int
    """The number of libraries that it requires."""


def read(file: Path) -> Library:
    """Return the facts of a library. Raises ``ValueError`` for another file."""
    data = file.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{file} is no ELF file with 64 bits")
    (machine,) = struct.unpack_from("<H", data, 18)
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]
    imported, exported, needed = [], [], 0
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind == SYMBOL_TABLE:
            strings = sections[link][4]
            for each in range(start + entry, start + length, entry):  # the first symbol is empty
                name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", data, each)
                end = data.index(b"\0", strings + name)
                (exported if section else imported).append(data[strings + name : end].decode())
        elif kind == DYNAMIC:
            tags = [struct.unpack_from("<qQ", data, each)[0] for each in range(start, start + length, 16)]
            needed += tags.count(NEEDED)
    return Library(machine, imported, exported, needed)
