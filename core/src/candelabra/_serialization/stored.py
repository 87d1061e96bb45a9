"""A tensor in a file: dtype, shape, strides and offset over a block of bytes.

All readers in this package return these tensors, without importing the Tensor class. Strides and offset count elements,
bytes are little-endian, complex numbers are (real, imaginary) pairs. Files are untrusted, so the numbers are checked
against the storage before any byte is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from math import prod

from candelabra._annotations import BinaryIO, Literal, NamedTuple
from candelabra.dtypes import ALL
from candelabra.errors import FileFormatError

__all__ = [
    "HOST",
    "ITEM_SIZE",
    "MAX_EXPANDED_BYTES",
    "Bytes",
    "ByteSource",
    "StoredTensor",
    "byte_count",
    "contiguous_strides",
    "stored_tensor",
    "swap_bytes",
]

HOST = "cpu"
"""The host's memory, in the files of PyTorch."""

Bytes = bytes | bytearray | memoryview

ITEM_SIZE = {d.name: d.itemsize for d in ALL}
"""The size of one element in bytes, for each dtype that a file may contain."""

MAX_EXPANDED_BYTES = 1 << 28
"""A tensor may be larger than its storage (stride 0, overlapping rows), but not larger than this: a file of 100 bytes
may otherwise ask for terabytes."""

MAX_DIMENSIONS = 64

MAX_COPIES = 1 << 16
"""A tensor that overlaps itself may need more strided copies than its storage has elements, but not more than these."""

_AT_ONCE = 4096
"""The number of strided copies whose offsets are computed together."""

_WORD: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}


class StoredTensor(NamedTuple):
    """A strided view of a block of bytes.

    ``dtype`` is a key of `ITEM_SIZE`; ``shape``, ``strides`` and ``offset`` are in elements; ``storage`` holds at least
    every element that they reach (`check`).
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: Bytes
    requires_grad: bool = False
    location: str = HOST
    """The device in the file. Formats without devices are written from the host's memory."""

    @property
    def nbytes(self) -> int:
        """The number of bytes of the contiguous tensor."""
        return prod(self.shape) * ITEM_SIZE[self.dtype]

    def check(self) -> None:
        """Raise ValueError if an element is outside the storage or the tensor is too large."""
        if self.dtype not in ITEM_SIZE:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(ITEM_SIZE)}")
        if len(self.shape) > MAX_DIMENSIONS:
            raise ValueError(f"{len(self.shape)} dimensions are more than {MAX_DIMENSIONS}")
        if len(self.shape) != len(self.strides):
            raise ValueError(f"shape {self.shape} and strides {self.strides} differ in length")
        if any(n < 0 for n in (*self.shape, *self.strides, self.offset)):
            raise ValueError(
                f"shape {self.shape}, strides {self.strides} and offset {self.offset} must not be negative"
            )
        if self.requires_grad and not self.dtype.startswith(("float", "bfloat", "complex")):
            raise ValueError(f"requires_grad is for floating and complex numbers, not {self.dtype}")
        nbytes = byte_count(self.shape, self.dtype)
        if 0 in self.shape:
            return
        held = memoryview(self.storage).nbytes // ITEM_SIZE[self.dtype]
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        if last >= held:
            raise ValueError(
                f"shape {self.shape}, strides {self.strides} and offset {self.offset} reach element {last} "
                f"of a storage of {held}"
            )
        if nbytes > max(memoryview(self.storage).nbytes, MAX_EXPANDED_BYTES):
            raise ValueError(
                f"shape {self.shape} takes {nbytes} bytes, expanded from a storage of "
                f"{memoryview(self.storage).nbytes}; the limit for that is {MAX_EXPANDED_BYTES}"
            )
        if self.copies > max(held, MAX_COPIES):
            raise ValueError(
                f"shape {self.shape} and strides {self.strides} overlap in {self.copies} pieces of a storage "
                f"of {held}; the limit for that is {MAX_COPIES}"
            )

    @property
    def copies(self) -> int:
        """The number of strided copies that `contiguous_bytes` takes: the elements, apart from the longest dim."""
        sizes = [n for n, _ in self._merged()]
        return prod(sizes) // max(1, *sizes) if sizes else 1

    def _merged(self) -> list[tuple[int, int]]:
        """Return the size and stride of each dim, without those that repeat, after merging dims that form one."""
        merged: list[tuple[int, int]] = []
        for n, step in zip(self.shape, self.strides, strict=True):
            if n == 1 or step == 0:
                continue
            if merged and merged[-1][1] == n * step:
                n *= merged.pop()[0]
            merged.append((n, step))
        return merged

    def contiguous_bytes(self) -> Bytes:
        """Return the elements in C order.

        A contiguous tensor is a slice, without a copy. Otherwise there is one strided copy (in C, by memoryview) per
        index of all dims except the longest; `check` bounds their number. A dim of stride 0 is copied once and then
        repeated.

        Raises:
            ValueError: see `check`; or a bool that is neither 0 nor 1.
        """
        self.check()
        data = b"" if 0 in self.shape else self._gather()
        if self.dtype == "bool" and any(bytes(part).translate(None, b"\0\1") for part in _pieces(data)):
            raise ValueError("a bool must be stored as 0 or 1")
        return data

    def _gather(self) -> Bytes:
        size = ITEM_SIZE[self.dtype]
        dense = contiguous_strides(self.shape)
        view = memoryview(self.storage).cast("B")
        if all(n == 1 or have == want for n, have, want in zip(self.shape, self.strides, dense, strict=True)):
            return view[self.offset * size : self.offset * size + self.nbytes]
        data: bytes | bytearray = _strided_copy(view, size, self._merged(), self.offset)
        inner = size
        for n, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if step == 0 and n > 1:
                data = _repeated(data, inner, n)
            inner *= n
        return data


def byte_count(shape: tuple[int, ...], dtype: str, dims: int = MAX_DIMENSIONS) -> int:
    """Return the number of bytes of a contiguous tensor.

    Raises:
        ValueError: more than ``dims`` dims; or 2**63 bytes or more, where a dim of size 0 counts as one of
            size 1, because array libraries cannot describe such a tensor even without elements.
    """
    if len(shape) > dims:
        raise ValueError(f"{len(shape)} dimensions are more than {dims}")
    if prod(max(n, 1) for n in shape) * ITEM_SIZE[dtype] >= 2**63:
        raise ValueError(f"shape {shape} of {dtype} takes 2**63 bytes or more")
    return prod(shape) * ITEM_SIZE[dtype]


def stored_tensor(
    file: str,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    storage: Bytes,
    requires_grad: bool = False,
) -> StoredTensor:
    """Return a checked StoredTensor. Raise FileFormatError for ``file`` if it is invalid."""
    stored = StoredTensor(dtype, shape, strides, offset, storage, requires_grad)
    try:
        stored.check()
    except ValueError as error:
        raise FileFormatError(file, "a tensor inside its storage", str(error)) from None
    return stored


def _pieces(data: Bytes) -> Iterator[memoryview]:
    """Yield slices of at most 1 MiB."""
    view = memoryview(data)
    return (view[begin : begin + (1 << 20)] for begin in range(0, len(view), 1 << 20))


class ByteSource:
    """The bytes of a seekable file, which are read into new memory, or mapped without a copy."""

    def __init__(self, f: BinaryIO, *, mapped: bool = False) -> None:
        """``mapped``: map the file. A write to the memory does not reach the file."""
        self.file = f
        self.size = f.seek(0, 2)
        self.mapping: memoryview | None = None
        if mapped and self.size:
            import mmap

            self.mapping = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY))
        f.seek(0)

    def read(self, begin: int, length: int) -> memoryview:
        """Return the bytes from ``begin``, in writable memory; fewer than ``length`` at the end of the file."""
        length = max(0, min(length, self.size - begin))
        if self.mapping is not None:
            return self.mapping[begin : begin + length]
        numpy = sys.modules.get("numpy")  # its memory is not set to 0 first
        view = memoryview(bytearray(length) if numpy is None else numpy.empty(length, "u1"))
        self.file.seek(begin)
        filled = 0
        while filled < length:
            count = self.file.readinto(view[filled:])  # type: ignore[attr-defined]
            if not count:
                return view[:filled]
            filled += count
        return view


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return C-order strides in elements: ``(3, 1)`` for shape ``(2, 3)``."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def swap_bytes(data: Bytes, dtype: str) -> bytes:
    """Return the same numbers in the other byte order (a complex number is two). Bytes after the last one stay."""
    width = ITEM_SIZE[dtype] // 2 if dtype.startswith("complex") else ITEM_SIZE[dtype]
    source = memoryview(data).cast("B")
    end = len(source) // width * width
    swapped = bytearray(source)
    for i in range(width):
        swapped[i:end:width] = source[width - 1 - i : end : width]
    return bytes(swapped)


def _strided_copy(view: memoryview, size: int, dims: list[tuple[int, int]], offset: int) -> bytes:
    """Return the C-order bytes of a strided tensor with at least one element; ``dims`` are pairs of size and stride."""
    if size not in _WORD:  # complex128: two words of 8 bytes
        dims, offset, size = [*((n, 2 * step) for n, step in dims), (2, 1)], 2 * offset, size // 2
    source = view[: len(view) // size * size].cast(_WORD[size])
    dims = dims or [(1, 1)]
    shape = tuple(n for n, _ in dims)
    result = bytearray(prod(shape) * size)
    target = memoryview(result).cast(_WORD[size])
    outer = [(n, take, put) for (n, take), put in zip(dims, contiguous_strides(shape), strict=True)]
    count, take, put = outer.pop(max(range(len(dims)), key=shape.__getitem__))
    inner = [(offset, 0)]  # the beginnings of a copy in the source and in the target, for the last of the other dims
    while outer and len(inner) * outer[-1][0] <= _AT_ONCE:
        n, *steps = outer.pop()
        inner = [(at + i * steps[0], to + i * steps[1]) for i in range(n) for at, to in inner]
    for index in product(*(range(n) for n, _, _ in outer)):
        skip = sum(i * step for i, (_, step, _) in zip(index, outer, strict=True))
        skip_to = sum(i * step for i, (_, _, step) in zip(index, outer, strict=True))
        for at, to in inner:
            first, start = at + skip, to + skip_to
            target[start : start + (count - 1) * put + 1 : put] = source[first : first + (count - 1) * take + 1 : take]
    return bytes(result)


def _repeated(data: bytes | bytearray, length: int, count: int) -> bytes | bytearray:
    """Return ``data`` with each block of ``length`` bytes ``count`` times in a row.

    There is one step per block, or one per byte of a repeated block, whichever are fewer: at most the root of the
    number of bytes.
    """
    if len(data) // length <= length * count:
        return b"".join(data[i : i + length] * count for i in range(0, len(data), length))
    result = bytearray(len(data) * count)
    for place in range(length * count):
        result[place :: length * count] = data[place % length :: length]
    return result
