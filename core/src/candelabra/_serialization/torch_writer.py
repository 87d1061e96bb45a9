"""Write PyTorch's zip format, so that ``torch.load(file, weights_only=True)`` reads it.

`torch_file.py` describes the format. Tensors that are views of one tensor refer to one storage, with their strides, if
that takes no more room than copies; a tensor that occurs twice is one object. The records of storages begin at
multiples of 64 bytes, so that a mapped file has aligned tensors. All tensors are marked as those of the host, where
every PyTorch can load them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from math import prod
from threading import Thread

from candelabra._annotations import Any, BinaryIO, NamedTuple
from candelabra._serialization.pickle_writer import PickleWriter
from candelabra._serialization.stored import HOST, ITEM_SIZE, Bytes, contiguous_strides
from candelabra.dtypes import PYTHON_NAMES

__all__ = ["Geometry", "TorchAccess", "write"]

ALIGNMENT = 64
FOLDER = "archive"
THREADED = 2**20
"""The number of bytes from which a thread computes their checksum."""
LIMIT = 2**32 - 1
"""The largest number in a zip header without the fields of 64 bits."""
_STORAGES = {dtype: kind for dtype, kind in PYTHON_NAMES.items() if dtype not in ("uint16", "uint32", "uint64")}


class Geometry(NamedTuple):
    """A tensor as a strided view of another one, its owner, whose elements are in C order."""

    owner: object
    strides: tuple[int, ...]
    offset: int


class TorchAccess(NamedTuple):
    """The functions with which the writer accesses tensors, whose class it does not import.

    ``describe`` returns (dtype name, shape, requires_grad), ``geometry`` a :class:`Geometry`, ``to_bytes`` the elements
    in C order, little-endian, and ``named`` the name in PyTorch of a dtype (``("torch", "float32")``) or the arguments
    of a device, layout or shape: ``(module, name, arguments)`` with arguments None for a value that is not called.
    ``sparse`` returns the layout of a sparse tensor and ``(indices, values, shape, whether coalesced)``, or None.
    """

    is_tensor: Callable[[object], bool]
    describe: Callable[[Any], tuple[str, tuple[int, ...], bool]]
    geometry: Callable[[Any], Geometry]
    to_bytes: Callable[[Any], Bytes]
    named: Callable[[Any], tuple[str, str, tuple[Any, ...] | None] | None]
    sparse: Callable[[Any], tuple[object, tuple[Any, ...]] | None] = lambda _: None


class _Record(NamedTuple):
    """One record of the archive."""

    name: bytes
    crc: int
    size: int
    offset: int


def write(f: BinaryIO, obj: object, access: TorchAccess) -> None:
    """Write ``obj`` to ``f``.

    Raises:
        TypeError, ValueError: see `PickleWriter`. They are raised before the first byte is written.
    """
    storages = _SharedStorages(access)
    storages.collect(obj)
    pickle = PickleWriter(storages.write).dumps(obj)
    archive = _Archive(f)
    archive.add("data.pkl", pickle)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", str(ALIGNMENT).encode())
    archive.add("byteorder", b"little")
    waiting: tuple[str, memoryview, _Checksum] | None = None
    for key, owner in storages.written.items():
        view = memoryview(access.to_bytes(owner)).cast("B")
        following = f"data/{key}", view, _Checksum(view)
        if waiting:  # written while the checksum of the following one is computed
            archive.add(*waiting)
        waiting = following
    if waiting:
        archive.add(*waiting)
    archive.add("version", b"3\n")
    archive.add(".data/serialization_id", f"{zlib.crc32(pickle):040d}".encode())
    archive.finish()


class _SharedStorages:
    """The tensors of an object, by the storages that they share."""

    def __init__(self, access: TorchAccess) -> None:
        self.access = access
        self.members: dict[int, dict[int, object]] = {}  # by id: of the owner, of the tensor
        self.owners: dict[int, object] = {}
        self.keys: dict[int, str] = {}
        self.written: dict[str, object] = {}

    def collect(self, obj: object) -> None:
        """Find the tensors in ``obj`` and their owners."""
        ahead, seen = [obj], {}
        while ahead:
            value: Any = ahead.pop()
            if self.access.is_tensor(value):
                sparse = self.access.sparse(value)
                if sparse is not None:
                    ahead.extend(sparse[1][:2])
                    continue
                owner = self.access.geometry(value).owner
                self.owners[id(owner)] = owner
                self.members.setdefault(id(owner), {})[id(value)] = value
            elif isinstance(value, dict | list | tuple) and id(value) not in seen:
                seen[id(value)] = value
                ahead.extend(value.values() if isinstance(value, dict) else value)

    def placed(self, tensor: object) -> Geometry:
        """Return where the file holds a tensor: in its owner's storage, or alone if that takes less room."""
        found = self.access.geometry(tensor)
        shared = self.members[id(found.owner)].values()
        room = sum(prod(self.access.describe(member)[1]) for member in shared)
        if room >= prod(self.access.describe(found.owner)[1]):
            return found
        return Geometry(tensor, contiguous_strides(self.access.describe(tensor)[1]), 0)

    def write(self, writer: PickleWriter, value: Any) -> bool:
        """Write a tensor, dtype, device or shape."""
        if self.access.is_tensor(value):
            sparse = self.access.sparse(value)
            if sparse is None:
                self.tensor(writer, value)
            else:
                writer.call("torch._utils", "_rebuild_sparse_tensor", *sparse)
                writer.remember(value)
            return True
        named = self.access.named(value)
        if named is None:
            return False
        module, name, arguments = named
        if arguments is None:
            writer.look_up(module, name)
        else:
            writer.call(module, name, *arguments)
        return True

    def tensor(self, writer: PickleWriter, tensor: object) -> None:
        """Write the call that rebuilds a tensor over its storage."""
        dtype, shape, requires_grad = self.access.describe(tensor)
        owner, strides, offset = self.placed(tensor)
        key = self.keys.setdefault(id(owner), str(len(self.keys)))
        self.written[key] = owner
        kind = _STORAGES.get(dtype)
        writer.look_up("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        writer.parts.append(b"((")
        writer.write("storage")
        writer.look_up(*(("torch", f"{kind}Storage") if kind else ("torch.storage", "UntypedStorage")))
        count = prod(self.access.describe(owner)[1])
        for part in (key, HOST, count if kind else count * ITEM_SIZE[dtype]):
            writer.write(part)
        writer.parts.append(b"tQ")
        for argument in (offset, tuple(shape), tuple(strides), requires_grad):
            writer.write(argument)
        writer.call("collections", "OrderedDict")
        if not kind:
            writer.look_up("torch", dtype)
        writer.parts.append(b"tR")
        writer.remember(tensor)


class _Checksum:
    """The CRC-32 of bytes. A thread of its own computes it if there are many of them: it takes as long as writing."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.value = 0
        self.thread = Thread(target=self.compute) if len(view) >= THREADED else None
        if self.thread:
            self.thread.start()
        else:
            self.compute()

    def compute(self) -> None:
        """Set the value."""
        self.value = zlib.crc32(self.view)

    def result(self) -> int:
        """Wait for the value and return it."""
        if self.thread:
            self.thread.join()
        return self.value


class _Archive:
    """A zip archive without compression, written from its start to its end."""

    def __init__(self, f: BinaryIO) -> None:
        self.file = f
        self.position = 0
        self.records: list[_Record] = []

    def add(self, name: str, data: Bytes, checksum: _Checksum | None = None) -> None:
        """Write a record whose data begin at a multiple of `ALIGNMENT`."""
        view = memoryview(data).cast("B")
        crc = (checksum or _Checksum(view)).result()
        record = _Record(f"{FOLDER}/{name}".encode(), crc, len(view), self.position)
        large = struct.pack("<HHQQ", 1, 16, len(view), len(view)) if len(view) >= LIMIT else b""
        begin = self.position + 30 + len(record.name) + len(large)
        padding = -(begin + 4) % ALIGNMENT
        extra = large + b"FB" + struct.pack("<H", padding) + b"Z" * padding
        size = min(len(view), LIMIT)
        self.put(
            b"PK\x03\x04"
            + struct.pack("<HHHHHIIIHH", 45 if large else 20, 0, 0, 0, 0x21, record.crc, size, size,
                          len(record.name), len(extra))
            + record.name
            + extra
        )  # fmt: skip
        self.put(view)
        self.records.append(record)

    def put(self, data: Bytes) -> None:
        self.file.write(data)
        self.position += len(data)

    def finish(self) -> None:
        """Write the directory."""
        begin = self.position
        for record in self.records:
            large = [n for n in (record.size, record.size, record.offset) if n >= LIMIT]
            extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
            size, offset = min(record.size, LIMIT), min(record.offset, LIMIT)
            self.put(
                b"PK\x01\x02"
                + struct.pack("<HHHHHHIIIHHHHHII", 45, 45 if large else 20, 0, 0, 0, 0x21, record.crc, size, size,
                              len(record.name), len(extra), 0, 0, 0, 0, offset)
                + record.name
                + extra
            )  # fmt: skip
        count, length = len(self.records), self.position - begin
        if begin >= LIMIT or length >= LIMIT or count >= 0xFFFF:
            end = self.position
            self.put(b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, begin))
            self.put(b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1))
        count = min(count, 0xFFFF)
        self.put(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, min(length, LIMIT), min(begin, LIMIT), 0))
