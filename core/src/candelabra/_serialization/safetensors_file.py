"""Write and read the safetensors format, with a tree of containers in the metadata.

The format (https://huggingface.co/docs/safetensors, "Format"): 8 bytes N, little-endian; N bytes of JSON,
``{"__metadata__": {str: str}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}}``; then the data,
which the tensors cover without gap or overlap. The format is simple enough to be read here, without a package: the
byte-level functions of `safetensors` changed incompatibly in its version 0.8 (safetensors#738), return no metadata, and
do not report where a file is damaged. The tests compare this module with that package in both directions.

Our metadata has one entry, ``candelabra``: a JSON document
``{"version": 1, "tree": NODE, "tensors": {name: {"requires_grad": true, "dtype": "complex128"}}}``. `tree.py` defines
NODE; a tensor without such properties is not listed. Other readers see the tensors under their names. complex128, which
the format lacks, is stored as F64 with one more dim of size 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from candelabra._annotations import Any, BinaryIO, NamedTuple
from candelabra._serialization import tree
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.stored import (
    ITEM_SIZE,
    MAX_DIMENSIONS,
    Bytes,
    ByteSource,
    StoredTensor,
    byte_count,
    contiguous_strides,
    stored_tensor,
)
from candelabra.dtypes import ALL
from candelabra.errors import FileFormatError

__all__ = ["MAX_HEADER_BYTES", "TensorAccess", "looks_like", "parse_json", "read", "write"]

MAX_HEADER_BYTES = 100_000_000
"""The reference implementation's limit."""


KEY = "candelabra"
VERSION = 1

_CODE = {d.name: d.safetensors for d in ALL if d.safetensors}
_DTYPE = {code: dtype for dtype, code in _CODE.items()}


class TensorAccess(NamedTuple):
    """The functions with which the writer accesses tensors, whose class it does not import.

    ``describe`` returns (dtype name, shape, requires_grad), and ``to_bytes`` the elements in C order, little-endian.
    The writer requests the bytes of one tensor at a time, so that at most one copy exists.
    """

    is_tensor: Callable[[object], bool]
    describe: Callable[[Any], tuple[str, tuple[int, ...], bool]]
    to_bytes: Callable[[Any], Bytes]


def write(f: BinaryIO, obj: object, access: TensorAccess) -> None:
    """Write ``obj`` to ``f``.

    Raises:
        TypeError, ValueError: see `tree.encode`; also for a dtype that the format lacks. All errors are raised before
            the first byte is written.
    """
    import json

    node, tensors = tree.encode(obj, access.is_tensor)
    notes: dict[str, dict[str, object]] = {}
    entries: list[tuple[int, str, str, tuple[int, ...]]] = []
    for name, tensor in tensors.items():
        dtype, shape, requires_grad = access.describe(tensor)
        if requires_grad:
            notes.setdefault(name, {})["requires_grad"] = True
        if dtype == "complex128":
            notes.setdefault(name, {})["dtype"] = dtype
            dtype, shape = "float64", (*shape, 2)
        if dtype not in _CODE:
            raise TypeError(f"cannot save the tensor {name!r}: safetensors has no dtype for {dtype}")
        entries.append((-ITEM_SIZE[dtype], name, dtype, shape))
    entries.sort(key=lambda entry: entry[:2])  # wide dtypes first: every tensor is then aligned

    document = json.dumps({"version": VERSION, "tree": node, "tensors": notes}, separators=(",", ":"))
    header: dict[str, object] = {"__metadata__": {KEY: document}}
    begin = 0
    for _, name, dtype, shape in entries:
        end = begin + prod(shape) * ITEM_SIZE[dtype]
        header[name] = {"dtype": _CODE[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"cannot save: the containers take {len(text)} bytes as JSON, the format allows {MAX_HEADER_BYTES}; "
            "long lists of numbers belong in tensors"
        )
    f.write(len(text).to_bytes(8, "little") + text)
    for _, name, dtype, shape in entries:
        data = access.to_bytes(tensors[name])
        if len(data) != prod(shape) * ITEM_SIZE[dtype]:
            raise ValueError(
                f"cannot save the tensor {name!r}: {dtype} of shape {shape} takes {prod(shape) * ITEM_SIZE[dtype]} "
                f"bytes, but its device returned {len(data)}"
            )
        f.write(data)


def looks_like(start: bytes) -> bool:
    """Return whether the first 9 bytes of a file are those of a safetensors file."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= MAX_HEADER_BYTES


def read(
    f: BinaryIO,
    file: str,
    from_stored: Callable[[StoredTensor], object],
    source: ByteSource | None = None,
    names: frozenset[str] | None = None,
) -> object:
    """Return the object in ``f``, a seekable file at its start; ``file`` is its name in errors.

    A file without our metadata is loaded as a dict of its tensors. ``from_stored`` is called for each tensor as soon as
    its bytes are read. ``source`` reads or maps the same file; with ``names`` the result is a dict of these tensors, as
    far as the file has them.

    Raises:
        FileFormatError: truncated or damaged, a dtype that candelabra lacks, or written by a later version.
    """
    entries, metadata, start = _read_header(f, file)
    source = ByteSource(f) if source is None else source
    note = _Note.parse(metadata[KEY], file) if KEY in metadata else None
    tensors: dict[str, object] = {}
    for entry in entries:
        if names is not None and entry.name not in names:
            continue
        data = source.read(start + entry.begin, entry.end - entry.begin)
        stored = note.restore(entry, data, file) if note else entry.stored(data, file)
        tensors[entry.name] = from_stored(stored)
    return note.build(tensors, file) if note and names is None else tensors


class _Entry(NamedTuple):
    """One tensor of the header; ``begin`` and ``end`` in bytes of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def stored(self, data: Bytes, file: str, requires_grad: bool = False) -> StoredTensor:
        return stored_tensor(file, self.dtype, self.shape, contiguous_strides(self.shape), 0, data, requires_grad)


class _Note(NamedTuple):
    """The document of candelabra in the metadata."""

    tree: tree.Node
    tensors: dict[str, dict[str, object]]

    @classmethod
    def parse(cls, text: str, file: str) -> _Note:
        document = parse_json(text, file, "the candelabra metadata")
        if not isinstance(document, dict) or not isinstance(document.get("version"), int):
            raise FileFormatError(file, "candelabra metadata with a version", "none")
        if document["version"] > VERSION:
            raise FileFormatError(
                file,
                f"candelabra metadata of version {VERSION}",
                f"version {document['version']}",
                "a newer candelabra wrote it; upgrade to read it",
            )
        notes = document.get("tensors")
        if (
            "tree" not in document
            or not isinstance(notes, dict)
            or not all(isinstance(n, dict) for n in notes.values())
        ):
            raise FileFormatError(file, "candelabra metadata with a tree and notes on tensors", "something else")
        return cls(document["tree"], notes)

    def restore(self, entry: _Entry, data: Bytes, file: str) -> StoredTensor:
        note = self.tensors.get(entry.name, {})
        if note.get("dtype") == "complex128":
            if entry.dtype != "float64" or entry.shape[-1:] != (2,):
                raise FileFormatError(
                    file, f"{entry.name!r} as pairs of float64 (it is complex128)", f"{entry.dtype} of {entry.shape}"
                )
            entry = entry._replace(dtype="complex128", shape=entry.shape[:-1])
        return entry.stored(data, file, requires_grad=note.get("requires_grad") is True)

    def build(self, tensors: dict[str, object], file: str) -> object:
        used = set()

        def tensor(name: str) -> object:
            if name not in tensors:
                raise ValueError(f"a tensor {name!r} that the file does not hold")
            used.add(name)
            return tensors[name]

        try:
            obj = tree.decode(self.tree, tensor)
        except ValueError as error:
            raise FileFormatError(file, "a tree of containers", str(error)) from None
        if len(used) < len(tensors):
            extra = next(name for name in tensors if name not in used)
            raise FileFormatError(file, "tensors that its tree names", f"{extra!r}, which it does not")
        return obj


def _read_header(f: BinaryIO, file: str) -> tuple[list[_Entry], dict[str, str], int]:
    """Return the tensors in the order of their data, the metadata, and the offset of the data."""
    size = f.seek(0, 2)
    f.seek(0)
    length = int.from_bytes(f.read(8), "little")
    if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
        raise FileFormatError(
            file, f"a header of at most {max(0, min(size - 8, MAX_HEADER_BYTES))} bytes", f"{length} of {size} bytes"
        )
    try:
        text = f.read(length).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(file, "a header in UTF-8", str(error)) from None
    header = parse_json(text, file, "the header")
    if not isinstance(header, dict):
        raise FileFormatError(file, "a header that is a JSON object", kind_of(header))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FileFormatError(file, "metadata from strings to strings", "something else")
    entries = sorted(
        (_parse_entry(name, fields, file) for name, fields in header.items()), key=lambda e: (e.begin, e.end)
    )
    _check_cover(entries, size - 8 - length, file)
    return entries, metadata, 8 + length


def _parse_entry(name: str, fields: object, file: str) -> _Entry:
    if not isinstance(fields, dict) or not {"dtype", "shape", "data_offsets"} <= fields.keys():
        raise FileFormatError(file, f"dtype, shape and data_offsets of {name!r}", "other fields")
    code, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        got = f"{_listed(shape)}, {_listed(offsets)}"
        raise FileFormatError(file, f"lists of sizes as shape and data_offsets of {name!r}", got)
    if not isinstance(code, str) or code not in _DTYPE:
        raise FileFormatError(file, f"a dtype of {', '.join(_DTYPE)} for {name!r}", repr(code))
    entry = _Entry(name, _DTYPE[code], tuple(shape), *offsets)
    try:
        wanted = byte_count(entry.shape, entry.dtype, MAX_DIMENSIONS + 1)  # complex128 has one more dim here
    except ValueError as error:
        raise FileFormatError(file, f"a shape of {name!r} that tensors can have", str(error)) from None
    if entry.end - entry.begin != wanted:
        raise FileFormatError(
            file, f"{wanted} bytes for {name!r} ({code} of {shape})", f"data_offsets {entry.begin} to {entry.end}"
        )
    return entry


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 2**63 for n in values)


def _listed(values: object) -> str:
    """Return a list of few numbers or a string as text, and the type of any other value."""
    if isinstance(values, list) and len(values) <= MAX_DIMENSIONS and all(isinstance(n, int | float) for n in values):
        return repr(values)
    return repr(values[:60]) if isinstance(values, str) else kind_of(values)


def _check_cover(entries: Iterable[_Entry], size: int, file: str) -> None:
    """Raise unless the tensors cover the ``size`` bytes of data in order, without gap or overlap."""
    end = 0
    for entry in entries:
        if entry.begin != end:
            raise FileFormatError(file, f"{entry.name!r} to begin at byte {end} of the data", f"byte {entry.begin}")
        end = entry.end
    if end != size:
        raise FileFormatError(file, f"{end} bytes of data", f"{size} bytes", "truncated, or something was appended")


def parse_json(text: str, file: str, part: str) -> Any:
    """Return the value of a JSON document, without constants such as NaN and without duplicate keys."""
    import json

    def no_constant(word: str) -> object:
        raise ValueError(f"{word} is not JSON")

    def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise ValueError("a key occurs twice")
        return result

    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(file, f"{part} in JSON", f"{type(error).__name__}: {error}") from None
