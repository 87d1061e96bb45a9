"""`save` and `load`, which write one format and read four.

No pickle is executed. `save` writes a safetensors file. `load` reads safetensors files, also those of other programs,
and the files of PyTorch and LuaTorch; it recognises the format by the content.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, BinaryIO
from candelabra._serialization.kinds import kind_of
from candelabra.errors import FileFormatError

if TYPE_CHECKING:
    from candelabra._serialization.safetensors_file import TensorAccess
    from candelabra._serialization.stored import StoredTensor

__all__ = ["load", "save"]

Path = str | os.PathLike[str]
MakeTensor = Callable[..., Any]
"""A function of ``(data, dtype_name, shape, device=None)``; the data are in C order and little-endian."""

_VIEWS = 16
"""The maximum ratio of the memory of all tensors to the size of the file, in which tensors may share bytes."""

_KNOWN = "a file of candelabra, safetensors, PyTorch (.pt, .pth) or LuaTorch (.t7)"


def save(obj: object, f: Path | BinaryIO) -> None:
    """Write nested dicts, lists, tuples, numbers, strings, None and tensors to a file.

    The file is a safetensors file. Any reader of that format opens it as tensors, which are named by their path in
    ``obj`` ("model.weight"); the other values are JSON in its metadata. A path is written atomically: if an error
    occurs, an existing file is unchanged. A tensor object that occurs several times is written once and loaded as one
    object. requires_grad is restored; the device is not (see ``map_location`` of `load`).

    Args:
        obj: the object to write. An OrderedDict is loaded as a dict, a shape as a tuple, and instances of subclasses of
            str, int and float as instances of these.
        f: a path, or a file opened for writing in binary mode.

    Raises:
        TypeError: ``obj`` contains another type; the error names the path, such as ``obj['opt']['hook']``.
        ValueError: a container contains itself, or containers are nested too deeply.
    """
    from candelabra._serialization import safetensors_file
    from candelabra._serialization.atomic import replacing

    access, _ = _bridge()
    if isinstance(f, str | os.PathLike):
        with replacing(f) as out:
            safetensors_file.write(out, obj, access)
    elif hasattr(f, "write"):
        safetensors_file.write(f, obj, access)
    else:
        raise TypeError(f"save(): f must be a path or a binary file, got {type(f).__name__}")


def load(f: Path | BinaryIO, map_location: object = None, *, weights_only: bool | None = None) -> Any:
    """Load the object in a file that `save`, safetensors, ``torch.save`` of PyTorch or of LuaTorch has written.

    Args:
        f: a path, or a file opened for reading in binary mode, read from its position to its end.
        map_location: the device of the tensors; None for the default. The device in the file is not used.
        weights_only: accepted for compatibility, without effect. Only numbers, strings, containers and tensors are
            read; names in a file are never imported or called.

    Raises:
        FileFormatError: the file has another format, is damaged, or contains other objects.
        TypeError: ``map_location`` is a dict or a function, which would require the devices in the file.
    """
    import io

    from candelabra._device import device

    if isinstance(map_location, dict) or (callable(map_location) and not isinstance(map_location, device)):
        raise TypeError(
            f"load(): map_location must be a device, got {kind_of(map_location)}; "
            "all tensors of the file are loaded to one device, by default the default device"
        )
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as opened:
            return _load(opened, os.fspath(f), map_location)
    if not hasattr(f, "read"):
        raise TypeError(f"load(): f must be a path or a binary file, got {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError(f"load(): f must be opened in binary mode, but its read() returned {type(data).__name__}")
    name = getattr(f, "name", None)
    return _load(io.BytesIO(data), name if isinstance(name, str) else "the file object", map_location)


def _load(f: BinaryIO, file: str, device: object) -> object:
    """Load the object in ``f``, a seekable file at its start."""
    import io

    from candelabra._serialization import safetensors_file, t7_file, torch_file

    _, make = _bridge()
    maker = _TensorMaker(make, file, f.seek(0, 2), device)
    f.seek(0)
    start = f.read(512)
    f.seek(0)
    if start.startswith(torch_file.ZIP_START):
        return torch_file.read_zip(f, file, maker)
    if start.startswith(torch_file.LEGACY_START):
        return torch_file.read_legacy(io.BytesIO(f.read()), file, maker)
    if safetensors_file.looks_like(start):
        return safetensors_file.read(f, file, maker)
    if t7_file.looks_like(start):
        return t7_file.read(f, file, maker)
    raise FileFormatError(file, _KNOWN, *_what_else(start))


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
    """Creates a Tensor from each stored tensor, and limits their total size."""

    def __init__(self, make: MakeTensor, file: str, file_size: int, device: object) -> None:
        from candelabra._serialization.stored import MAX_EXPANDED_BYTES

        self.make = make
        self.file = file
        self.device = device
        self.limit = _VIEWS * file_size + MAX_EXPANDED_BYTES
        self.taken = 0

    def __call__(self, stored: StoredTensor) -> object:
        self.taken += stored.nbytes
        if self.taken > self.limit:
            raise FileFormatError(self.file, f"tensors of at most {self.limit} bytes together", f"{self.taken}")
        try:
            data = stored.contiguous_bytes()
        except ValueError as error:
            raise FileFormatError(self.file, "the elements of a tensor", str(error)) from None
        tensor = self.make(data, stored.dtype, stored.shape, device=self.device)
        return tensor.requires_grad_() if stored.requires_grad else tensor


def _bridge() -> tuple[TensorAccess, MakeTensor]:
    """Return functions between Tensors and little-endian bytes. The imports are late: the core imports this package."""
    import sys

    from candelabra._interchange.host import tensor_from_bytes, tensor_to_bytes
    from candelabra._serialization.safetensors_file import TensorAccess
    from candelabra._serialization.stored import swap_bytes
    from candelabra._tensor import Tensor

    foreign = sys.byteorder == "big"

    def describe(tensor: Tensor) -> tuple[str, tuple[int, ...], bool]:
        return tensor.dtype.name, tuple(tensor.shape), tensor.requires_grad

    def to_bytes(tensor: Tensor) -> bytes:
        data = tensor_to_bytes(tensor)
        return swap_bytes(data, tensor.dtype.name) if foreign else data

    def from_bytes(data: bytes, dtype: str, shape: tuple[int, ...], device: object = None) -> Tensor:
        return tensor_from_bytes(swap_bytes(data, dtype) if foreign else data, dtype, shape, device)

    return TensorAccess(lambda obj: isinstance(obj, Tensor), describe, to_bytes), from_bytes
