"""Read PyTorch's ``.pt`` and ``.pth`` files without executing the pickle in them.

Two formats, both as `torch.save` writes them (`torch/serialization.py`):

- since 1.6, a zip archive ``NAME/data.pkl``, ``NAME/data/KEY`` for each storage, ``NAME/byteorder`` ("little", "big");
  no record is compressed;
- before, four pickles (a magic number, a version, the sizes of C types, the object), a pickled list of storage keys,
  and for each key the number of elements in 8 bytes and the elements, little-endian.

A tensor is ``_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)``, a storage a persistent id
``("storage", type, key, location, elements)``. The result contains an OrderedDict for an OrderedDict, with its
``_metadata`` if it is the state_dict of a module, a dict for a Counter, a tuple for torch.Size, a str for a dtype
("float32") and a device, a 1-dimensional tensor for a storage, a tensor with requires_grad for a Parameter. A tensor
object that occurs twice is one object in the result; different tensors over one storage get separate memory. The device
in the file is not used.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from math import prod

from candelabra._annotations import Any, BinaryIO, TypeVar
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.pickle_reader import DICTS, PickleReader
from candelabra._serialization.stored import ITEM_SIZE, Bytes, ByteSource, StoredTensor, stored_tensor, swap_bytes
from candelabra._serialization.torch_names import NAMES, Sparse, Storage, UnreadTensor, in_short, storage_of
from candelabra.errors import FileFormatError

__all__ = ["LEGACY_START", "ZIP_START", "read_legacy", "read_zip"]

ZIP_START = b"PK\x03\x04"
LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The magic number 0x1950a86a20f9469cfc6c, pickled."""

_LEGACY_VERSION = 1001

T = TypeVar("T")


def read_zip(
    f: BinaryIO,
    file: str,
    from_stored: Callable[[StoredTensor], object],
    source: ByteSource | None = None,
    names: frozenset[str] | None = None,
) -> object:
    """Return the object in the zip archive ``f``; ``file`` is its name in errors.

    ``source`` reads or maps the same file; with ``names`` the result is a dict of these tensors, as far as the file has
    them, named by their path: "model.weight". As in PyTorch, checksums are compared only for the pickle, because
    they would take most of the time of large files.

    Raises:
        FileFormatError: damaged, compressed, not a checkpoint, or a pickle with objects other than values and tensors.
    """
    records = _Records(f, file, ByteSource(f) if source is None else source)
    order = records.read("byteorder").decode("latin-1") if "byteorder" in records else "little"
    if order not in ("little", "big"):
        raise FileFormatError(file, "byteorder little or big", in_short(order))
    reader = PickleReader(file, NAMES, _Storages.named_in(file))
    root = reader.read(io.BytesIO(records.read("data.pkl")))
    storages = _Storages(file, lambda key: records.data(f"data/{key}"), order, from_stored)
    storages.count(root)
    storages.mapped = records.source.mapping is not None
    if names is not None:
        return {
            name: storages.tensor(tensor)
            for name, tensor in _named(root)
            if name in names and isinstance(tensor, UnreadTensor | Sparse)
        }
    return reader.finish(root, storages.tensor)


def _named(root: object) -> Iterator[tuple[str, Any]]:
    """Yield the values of a pickle other than containers, with their paths."""
    ahead: list[tuple[str, Any]] = [("", root)]
    seen: dict[int, object] = {}
    while ahead:
        path, value = ahead.pop()
        if type(value) not in (*DICTS, list, tuple):
            yield path, value
        elif id(value) not in seen:
            seen[id(value)] = value
            items = value.items() if type(value) in DICTS else enumerate(value)
            ahead += reversed([(f"{path}.{key}" if path else str(key), item) for key, item in items])


def _values(root: object) -> Iterator[UnreadTensor | Storage]:
    """Yield the tensors and storages of a pickle."""
    for _, value in _named(root):
        if isinstance(value, Sparse):
            yield from (value.indices, value.values)
        elif isinstance(value, UnreadTensor | Storage):
            yield value


def read_legacy(f: BinaryIO, file: str, from_stored: Callable[[StoredTensor], object]) -> object:
    """Return the object in ``f``, a seekable file of the format before PyTorch 1.6, at its start.

    Raises:
        FileFormatError: as `read_zip`.
    """
    size = f.seek(0, 2)
    f.seek(len(LEGACY_START))
    version = PickleReader(file, {}).read(f)
    if version != _LEGACY_VERSION:
        raise FileFormatError(file, f"format version {_LEGACY_VERSION}", in_short(version))
    PickleReader(file, {}).read(f)  # the sizes of C types, which the format does not use
    widths: dict[str, int] = {}
    named = _Storages.named_in(file)

    def persistent(saved: object) -> Storage:
        storage = named(saved)
        widths.setdefault(storage.key, ITEM_SIZE[storage.dtype])
        return storage

    reader = PickleReader(file, NAMES, persistent)
    root = reader.read(f)
    keys = PickleReader(file, {}).read(f)
    if type(keys) is not list or not all(isinstance(key, str) for key in keys):
        raise FileFormatError(file, "a list of storage keys", in_short(keys))
    data: dict[str, bytes] = {}
    for key in keys:
        if key not in widths or key in data:
            raise FileFormatError(file, "storages of the tensors in the file, once each", in_short(key))
        length = int.from_bytes(f.read(8), "little") * widths[key]
        if length > size - f.tell():
            raise FileFormatError(file, f"{length} bytes of storage {key!r}", f"{size - f.tell()}", "truncated")
        data[key] = f.read(length)

    def fetch(key: str) -> bytes:
        if key not in data:
            raise FileFormatError(file, f"a storage {in_short(key)}", "none")
        return data[key]

    return reader.finish(root, _Storages(file, fetch, "little", from_stored).tensor)


class _Records:
    """The records of a zip archive as PyTorch writes it: in one folder, not compressed, with distinct names.

    Names are compared and never used as paths. No record is compressed and together they are no larger than the file,
    so reading all of them takes no more memory than the file has bytes.
    """

    def __init__(self, f: BinaryIO, file: str, source: ByteSource) -> None:
        import zipfile

        self.file = file
        self.source = source
        self.size = f.seek(0, 2)
        self.archive = self._guard(lambda: zipfile.ZipFile(f))
        infos = self.archive.infolist()
        names = [info.filename for info in infos]
        pickles = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
        if len(set(names)) < len(names) or len(pickles) != 1:
            raise FileFormatError(
                file, "a PyTorch archive, with one record data.pkl and each name once", in_short(names[:8])
            )
        self.folder = pickles[0].removesuffix("data.pkl")
        if f"{self.folder}constants.pkl" in names:
            raise FileFormatError(
                file, "a checkpoint", "a TorchScript program", "save its state_dict() with torch.save"
            )
        if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in infos):
            raise FileFormatError(file, "records that are neither compressed nor encrypted", "some that are")
        if sum(info.file_size for info in infos) > self.size:
            raise FileFormatError(
                file, f"records of at most {self.size} bytes together", f"{sum(info.file_size for info in infos)} bytes"
            )
        self.infos = {info.filename: info for info in infos}

    def __contains__(self, name: str) -> bool:
        return self.folder + name in self.infos

    def read(self, name: str) -> bytes:
        if name not in self:
            raise FileFormatError(self.file, f"a record {self.folder + name!r}", "none")
        return self._guard(lambda: self.archive.read(self.folder + name))

    def data(self, name: str) -> memoryview:
        """Return a record without comparing its checksum, in memory of its own."""
        if name not in self:
            raise FileFormatError(self.file, f"a record {self.folder + name!r}", "none")
        info = self.infos[self.folder + name]
        if info.header_offset < 0:  # zipfile adds the distance of the archive from where its end says it begins
            raise FileFormatError(self.file, f"the bytes of the record {name!r}", "a negative offset", "damaged")
        header = bytes(self.source.read(info.header_offset, 30))
        begin = info.header_offset + 30 + sum(int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
        if header[:4] != ZIP_START or begin + info.file_size > self.source.size:
            raise FileFormatError(self.file, f"the bytes of the record {name!r}", "others", "damaged")
        return self.source.read(begin, info.file_size)

    def _guard(self, act: Callable[[], T]) -> T:
        """Return ``act()``, and convert the exceptions of zipfile for a damaged archive to FileFormatError."""
        try:
            return act()
        except Exception as error:
            raise FileFormatError(self.file, "a zip archive", f"{type(error).__name__}: {error}", "damaged") from None


class _Storages:
    """Converts the Tensor and Storage records of a pickle to tensors."""

    def __init__(
        self, file: str, fetch: Callable[[str], Bytes], order: str, from_stored: Callable[[StoredTensor], object]
    ) -> None:
        self.file = file
        self.fetch = fetch
        self.order = order
        self.from_stored = from_stored
        self.data: dict[tuple[str, str], Bytes] = {}
        self.uses: dict[str, int] = {}
        self.mapped = False
        """Whether tensors over one storage share its memory, which is that of the file."""

    def count(self, root: object) -> None:
        """Count the tensors of each storage in ``root``: the only one may keep the memory that is read."""
        for value in {id(value): value for value in _values(root)}.values():
            key = value.key if isinstance(value, Storage) else value.storage.key
            self.uses[key] = self.uses.get(key, 0) + 1

    @staticmethod
    def named_in(file: str) -> Callable[[object], Storage]:
        """Return the storage of a persistent id."""

        def persistent(saved: object) -> Storage:
            try:
                return storage_of(saved)
            except ValueError as error:
                raise FileFormatError(file, "a storage as persistent id", str(error)) from None

        return persistent

    def tensor(self, value: object) -> object:
        if isinstance(value, Sparse):
            return self.sparse(value)
        if isinstance(value, Storage):
            value = UnreadTensor(value, value.dtype, 0, (value.length,), (1,), False)
        if not isinstance(value, UnreadTensor):
            raise FileFormatError(self.file, "values", f"{kind_of(value)} as a value")
        storage, width = value.storage, ITEM_SIZE[value.storage.dtype]
        alone = self.uses.get(storage.key) == 1 and self.order == "little"
        view = memoryview(self.fetch(storage.key) if alone else self.little_endian(storage.key, value.dtype))
        if not self.mapped and (not alone or 2 * prod(value.shape) * ITEM_SIZE[value.dtype] < len(view)):
            view = view.toreadonly()  # it is copied
        view = view[storage.start * width : (storage.start + storage.length) * width]
        if len(view) < storage.length * width:
            raise FileFormatError(
                self.file, f"{storage.length} of {storage.dtype} in storage {storage.key!r}", f"{len(view)} bytes"
            )
        stored = stored_tensor(
            self.file, value.dtype, value.shape, value.strides, value.offset, view, value.requires_grad
        )
        return self.from_stored(stored._replace(location=storage.location))

    def sparse(self, value: Sparse) -> object:
        """Return a sparse tensor."""
        from candelabra._sparse.construction import loaded

        try:
            return loaded(self.tensor(value.indices), self.tensor(value.values), value.shape, value.coalesced)
        except ValueError as error:
            raise FileFormatError(self.file, "indices and values that fit", str(error)) from None

    def little_endian(self, key: str, dtype: str) -> Bytes:
        """Return the bytes under ``key``, little-endian. The dtype determines the swaps in a big-endian file."""
        reading = (key, dtype if self.order == "big" else "")
        if reading not in self.data:
            data = self.fetch(key)
            self.data[reading] = swap_bytes(data, dtype) if self.order == "big" else data
        return self.data[reading]
