"""`save` and `load`, which write two formats and read four.

No pickle is executed. `save` writes a safetensors file, or PyTorch's format. `load` reads safetensors files, also those
of other programs, and the files of PyTorch and LuaTorch; it recognises the format by the content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from candelabra._annotations import TYPE_CHECKING, Any, BinaryIO
from candelabra._serialization.kinds import kind_of
from candelabra.errors import FileFormatError

if TYPE_CHECKING:
    from candelabra._serialization.safetensors_file import TensorAccess
    from candelabra._serialization.stored import StoredTensor

__all__ = ["load", "save"]

Path = str | os.PathLike[str]
MakeTensor = Callable[..., Any]
"""A function of ``(data, dtype_name, shape, device=None)``; the data are in C order and little-endian. It may keep
writable data as the tensor's memory."""

_VIEWS = 16
"""The maximum ratio of the memory of all tensors to the size of the file, in which tensors may share bytes."""

_KNOWN = "a file of candelabra, safetensors, PyTorch (.pt, .pth) or LuaTorch (.t7)"
FORMATS = ("safetensors", "pt")


def save(obj: object, f: Path | BinaryIO, format: str = "safetensors") -> None:
    """Write nested dicts, lists, tuples, numbers, strings, None, tensors and modules to a file.

    By default the file is a safetensors file. Any reader of that format opens it as tensors, which are named by their
    path in ``obj`` ("model.weight"); the other values are JSON in its metadata. With ``format="pt"`` PyTorch reads the
    file by ``torch.load(f, weights_only=True)``: state_dicts with their ``_metadata``, states of optimizers, views of
    one tensor, which stay views. A path is written atomically: if an error occurs, an existing file is unchanged. A
    tensor object that occurs several times is written once and loaded as one object. requires_grad is restored; the
    device is not (see ``map_location`` of `load`). A module is written as the names of its classes, with plain data and
    tensors, not with their code; hooks and other functions of the program cannot be written. `load` rebuilds modules of
    candelabra, and classes that the program allows (``serialization.add_safe_globals``).

    Args:
        obj: the object to write. A shape is loaded as a tuple, instances of subclasses of str, int and float as
            instances of these, and, except from PyTorch's format, an OrderedDict as a dict.
        f: a path, or a file opened for writing in binary mode.
        format: "safetensors", or "pt" for PyTorch's format.

    Raises:
        TypeError: ``obj`` contains another type; the error names the path, such as ``obj['opt']['hook']``.
        ValueError: another format; a container contains itself, or containers are nested too deeply.
    """
    from candelabra._serialization.atomic import replacing

    if format not in FORMATS:
        raise ValueError(f"save(): format must be one of {', '.join(FORMATS)}, got {format!r}")
    if isinstance(f, str | os.PathLike):
        with replacing(f) as out:
            _write(out, obj, format)
    elif hasattr(f, "write"):
        _write(f, obj, format)
    else:
        raise TypeError(f"save(): f must be a path or a binary file, got {type(f).__name__}")


def _write(f: BinaryIO, obj: object, format: str) -> None:
    """Write ``obj`` in a format of `FORMATS`."""
    if format == "pt":
        from candelabra._serialization import torch_writer

        torch_writer.write(f, obj, _torch_bridge())
    else:
        from candelabra._serialization import safetensors_file

        safetensors_file.write(f, obj, _bridge()[0])


def load(
    f: Path | BinaryIO,
    map_location: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    names: Iterable[str] | None = None,
) -> Any:
    """Load the object in a file that `save`, safetensors, ``torch.save`` of PyTorch or of LuaTorch has written.

    Args:
        f: a path, or a file opened for reading in binary mode, read from its position to its end. The path of the index
            of a checkpoint in several files (``model.safetensors.index.json``) loads all of them, as one dict.
        map_location: the device of the tensors; None for the default. A dict maps devices in the file to devices. A
            function of a storage and the device in the file returns a storage on the chosen device. The default serves
            devices that the dict lacks, and a function that returns None. Only PyTorch's files name devices; the
            tensors of others count as written from the host's memory.
        weights_only: accepted for compatibility, without effect. Only numbers, strings, containers, tensors and
            modules of candelabra are read, and objects of classes that the program allowed; no other name in a file is
            imported or called.
        mmap: map the file into memory and do not read it. Tensors on the host are loaded without a copy, at their first
            use, and a write to them does not reach the file. For paths of safetensors and of PyTorch's files.
        names: load only these tensors, as a dict. The names are those of safetensors, or the keys that lead to the
            tensor in a file of PyTorch ("model.weight").

    Raises:
        FileFormatError: the file has another format, is damaged, or contains other objects.
        KeyError: the file has no tensor of one of the names.
        TypeError: the function ``map_location`` returns something other than a storage or None.
        ValueError: ``mmap`` with a file object, or with a format that cannot be mapped.
    """
    if isinstance(names, str):
        raise TypeError("load(): names must be several names, got one str")
    wanted = None if names is None else frozenset(names)
    loaded = _load_any(f, map_location, bool(mmap), wanted)
    if wanted is not None and len(loaded) < len(wanted):
        missing = min(wanted.difference(loaded))
        raise KeyError(f"load(): the file has no tensor {missing!r}")
    return loaded


def _load_any(f: Any, device: object, mapped: bool, names: frozenset[str] | None) -> Any:
    """Load a path, an index of files, or a file object."""
    import io

    if isinstance(f, str | os.PathLike):
        if os.fspath(f).endswith(".index.json"):
            from candelabra._serialization import sharded

            return sharded.read(os.fspath(f), names, lambda shard, some: _load_any(shard, device, mapped, some))
        with open(f, "rb") as opened:
            return _load(opened, os.fspath(f), device, mapped, names)
    if mapped:
        raise ValueError("load(): mmap=True requires a path")
    if not hasattr(f, "read"):
        raise TypeError(f"load(): f must be a path or a binary file, got {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError(f"load(): f must be opened in binary mode, but its read() returned {type(data).__name__}")
    name = getattr(f, "name", None)
    return _load(io.BytesIO(data), name if isinstance(name, str) else "the file object", device, False, names)


def _load(f: BinaryIO, file: str, device: object, mapped: bool, names: frozenset[str] | None) -> Any:
    """Load the object in ``f``, a seekable file at its start."""
    import io

    from candelabra._serialization import safetensors_file, t7_file, torch_file
    from candelabra._serialization.stored import ByteSource

    _, make = _bridge()
    start = f.read(512)
    read: Any = torch_file.read_zip if start.startswith(torch_file.ZIP_START) else None
    if safetensors_file.looks_like(start):
        read = safetensors_file.read
    source = ByteSource(f, mapped=mapped and read is not None)
    maker = _TensorMaker(make, file, source.size, device)
    if read is not None:
        return read(f, file, maker, source, names)
    legacy = start.startswith(torch_file.LEGACY_START)
    if not legacy and not t7_file.looks_like(start):
        raise FileFormatError(file, _KNOWN, *_what_else(start))
    if mapped or names is not None:
        kind = "PyTorch before 1.6" if legacy else "LuaTorch"
        raise ValueError(f"load(): mmap and names are for safetensors and zip files, and {file} is one of {kind}")
    return torch_file.read_legacy(io.BytesIO(f.read()), file, maker) if legacy else t7_file.read(f, file, maker)


def _what_else(start: bytes) -> tuple[str, str]:
    """Return a description of an unknown file and a hint, for the error."""
    if not start:
        return "an empty file", ""
    if start[257:262] == b"ustar":
        return "a tar archive, as PyTorch wrote before 0.1.10", "load and save it with PyTorch"
    if start[:1] == b"\x80":
        return "a plain pickle", "candelabra executes no pickle; save it with torch.save, or its arrays as safetensors"
    if start[:6] == b"\x93NUMPY":
        return "an array of NumPy", "numpy.load reads it"
    if start[:8] == b"\x89HDF\r\n\x1a\n":
        return "an HDF5 file", ""
    return f"one that begins with {start[:8]!r}", ""


class _TensorMaker:
    """Creates a Tensor from each stored tensor, and limits their total size and the time that they take."""

    def __init__(self, make: MakeTensor, file: str, file_size: int, device: object) -> None:
        from candelabra._serialization.stored import MAX_COPIES, MAX_EXPANDED_BYTES

        self.make = make
        self.file = file
        self.device = device
        self.devices: dict[str, object] = {}
        """The device for each device in the file."""
        self.limit = _VIEWS * file_size + MAX_EXPANDED_BYTES
        self.taken = 0
        self.copies_left = file_size + 4 * MAX_COPIES

    def __call__(self, stored: StoredTensor) -> object:
        self.taken += stored.nbytes
        if self.taken > self.limit:
            raise FileFormatError(self.file, f"tensors of at most {self.limit} bytes together", f"{self.taken}")
        self.copies_left -= stored.copies
        if self.copies_left < 0:
            raise FileFormatError(
                self.file, "tensors that overlap in few pieces", "more pieces than the file has bytes"
            )
        try:
            data = stored.contiguous_bytes()
        except ValueError as error:
            raise FileFormatError(self.file, "the elements of a tensor", str(error)) from None
        if stored.location not in self.devices:
            self.devices[stored.location] = self.device_for(stored.location)
        tensor = self.make(data, stored.dtype, stored.shape, device=self.devices[stored.location])
        return tensor.requires_grad_() if stored.requires_grad else tensor

    def device_for(self, location: str) -> object:
        """Return where ``map_location`` puts the tensors of a device in the file; None is the default device."""
        from candelabra._device import device

        if isinstance(self.device, dict):
            return self.device.get(location)
        if not callable(self.device) or isinstance(self.device, device):
            return self.device
        from candelabra._storage import UntypedStorage

        chosen = self.device(self.make(b"", "uint8", (0,)).untyped_storage(), location)
        if not isinstance(chosen, UntypedStorage | None):
            raise TypeError(f"load(): the function map_location must return a storage or None, got {kind_of(chosen)}")
        return None if chosen is None else chosen.device


def _bridge() -> tuple[TensorAccess, MakeTensor]:
    """Return functions between Tensors and little-endian bytes. The imports are late: the core imports this package."""
    import sys

    from candelabra._device import open_device
    from candelabra._interchange.host import adopted, host_view
    from candelabra._serialization.safetensors_file import TensorAccess
    from candelabra._serialization.stored import Bytes, swap_bytes
    from candelabra._tensor import Tensor
    from candelabra.dtypes import BY_NAME

    foreign = sys.byteorder == "big"

    def describe(tensor: Tensor) -> tuple[str, tuple[int, ...], bool]:
        return tensor.dtype.name, tuple(tensor.shape), tensor.requires_grad

    def to_bytes(tensor: Tensor) -> Bytes:
        view = host_view(tensor)
        return swap_bytes(view, tensor.dtype.name) if foreign else view

    def from_bytes(data: Bytes, dtype: str, shape: tuple[int, ...], device: Any = None) -> Tensor:
        view = memoryview(swap_bytes(data, dtype) if foreign else data)
        return adopted(view, BY_NAME[dtype], shape, open_device(device))

    return TensorAccess(lambda obj: isinstance(obj, Tensor), describe, to_bytes), from_bytes


def _torch_bridge() -> Any:
    """Return the functions with which the writer of PyTorch's format accesses Tensors."""
    from math import prod

    from candelabra._device import device
    from candelabra._keys import VIEW
    from candelabra._layout import layout
    from candelabra._serialization.stored import contiguous_strides
    from candelabra._serialization.torch_writer import Geometry, TorchAccess
    from candelabra._size import Size
    from candelabra._tensor import Tensor
    from candelabra.dtypes import dtype

    access = _bridge()[0]
    owners: dict[int, Tensor] = {}
    """By the id of a payload, which several tensors may have: a parameter and its detach()."""

    def geometry(tensor: Tensor) -> Geometry:
        base = tensor._base if tensor._keys & VIEW else tensor
        base = owners.setdefault(id(base._payload), base)
        shape, whole = tuple(tensor.shape), tuple(base.shape)
        dense = contiguous_strides(shape)
        strided = tensor._instance.backend.capabilities.strided
        if base._payload is tensor._payload:
            return Geometry(base, dense, 0)
        if not strided or base.dtype is not tensor.dtype or not prod(shape):
            return Geometry(tensor, dense, 0)
        strides, offset = tuple(tensor.stride()), tensor.storage_offset()
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if tuple(base.stride()) != contiguous_strides(whole) or base.storage_offset() or last >= prod(whole):
            return Geometry(tensor, dense, 0)
        return Geometry(base, strides, offset)

    def named(value: Any) -> tuple[str, str, tuple[Any, ...] | None] | None:
        if isinstance(value, dtype):
            return "torch", value.name, None
        if isinstance(value, device):
            return "torch", "device", (value.type,) if value.index is None else (value.type, value.index)
        if isinstance(value, layout):
            return "torch.serialization", "_get_layout", (f"torch.{value.name}",)
        return ("torch", "Size", ((*value,),)) if isinstance(value, Size) else None

    def sparse(tensor: Any) -> tuple[object, tuple[Any, ...]] | None:
        if not tensor.is_sparse:
            return None
        return tensor.layout, (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())

    return TorchAccess(access.is_tensor, access.describe, geometry, access.to_bytes, named, sparse)
