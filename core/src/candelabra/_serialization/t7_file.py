"""Read LuaTorch's ``.t7`` files as numbers, strings, containers and tensors.

The format is defined by torch7's ``File.lua`` (writeObject), ``generic/Tensor.c`` and ``generic/Storage.c``: a 32-bit
type, then for tables, torch objects and functions an index by which the same object is referred to later, then the
contents. Binary files are little-endian. A C long takes 8 bytes, or 4 if the writer's long did; the file does not
record it, so both are tried. ASCII files contain the same numbers as text.

The result contains:

- for a number without a fraction an int (Lua has only doubles, and most of these are counts); for a string a str, or
  bytes if it is not UTF-8; for nil None;
- for a table with keys 1 to n a list, for any other table (also an empty one) a dict;
- for ``torch.*Tensor``, also of CUDA, a tensor; for ``torch.*Storage`` a 1-dimensional tensor. A tensor without dims is
  empty in LuaTorch, and has shape (0,) here;
- for any other torch object, such as a module of nn, a dict of its fields with the name of its class under
  ``"__class__"`` (``candelabra.nn.utils.lua`` makes modules of them);
- for a function ``{"__class__": "function"}``; its bytecode is skipped.

An object that occurs twice is one object in the result, also if it contains itself. No function recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from candelabra._annotations import BinaryIO, NamedTuple
from candelabra._serialization.stored import ITEM_SIZE, MAX_DIMENSIONS, StoredTensor, stored_tensor
from candelabra._serialization.t7_numbers import AsciiNumbers, BinaryNumbers, Numbers
from candelabra.dtypes import PYTHON_NAMES
from candelabra.errors import FileFormatError

__all__ = ["looks_like", "read"]

NIL, NUMBER, STRING, TABLE, TORCH, BOOLEAN, FUNCTION, OLD_RECURSIVE_FUNCTION, RECURSIVE_FUNCTION = range(9)

_DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_KINDS = {PYTHON_NAMES[dtype]: dtype for dtype in _DTYPES}
_TENSORS = {f"torch.{kind}Tensor": dtype for kind, dtype in _KINDS.items()}
_TENSORS |= {f"torch.Cuda{kind}Tensor": dtype for kind, dtype in _KINDS.items()} | {"torch.CudaTensor": "float32"}
_STORAGES = {name.replace("Tensor", "Storage"): dtype for name, dtype in _TENSORS.items()}


def looks_like(start: bytes) -> bool:
    """Return whether a file that begins so may be a ``.t7`` file, judging by the type of the first object."""
    return (start[:1] <= b"\x08" and start[1:4] == b"\0\0\0") or (b"0" <= start[:1] <= b"8" and start[1:2] == b"\n")


def read(f: BinaryIO, file: str, from_stored: Callable[[StoredTensor], object]) -> object:
    """Return the object in ``f``; ``file`` is its name in errors.

    Raises:
        FileFormatError: truncated or damaged, or a table with keys that Python does not support.
    """
    data = f.read()
    if data[:1] >= b"0":
        return _Reader(AsciiNumbers(data, file), file).read(from_stored)
    wide, narrow = BinaryNumbers(data, file, long=8), BinaryNumbers(data, file, long=4)
    try:
        return _Reader(wide, file).read(from_stored)
    except FileFormatError as error:
        try:
            return _Reader(narrow, file).read(from_stored)
        except FileFormatError:
            if narrow.position > wide.position:
                raise
            raise error from None


class _Storage(NamedTuple):
    dtype: str
    data: bytes


class _Table:
    """A table, or an object of ``kind``. Its container is created when all keys are known."""

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind
        self.pairs: list[tuple[object, object]] = []
        self.container: list[object] | dict[object, object] = {}

    def is_list(self) -> bool:
        keys = {key for key, _ in self.pairs if type(key) is int}
        return self.kind is None and bool(keys) and keys == set(range(1, len(self.pairs) + 1))


class _Reader:
    """A reader of one file. A generator per object requests the contained objects by ``yield``; `parse` runs them."""

    def __init__(self, numbers: Numbers, file: str) -> None:
        self.numbers = numbers
        self.file = file
        self.objects: dict[int, object] = {}
        self.tables: list[_Table] = []

    def read(self, from_stored: Callable[[StoredTensor], object]) -> object:
        root = self.parse()
        self.numbers.end()
        return self.finish(root, from_stored)

    def parse(self) -> object:
        stack = [self.one_object()]
        value: object = None
        while stack:
            try:
                stack[-1].send(value)
            except StopIteration as stop:
                value = stop.value
                stack.pop()
            else:
                value = None
                stack.append(self.one_object())
        return value

    def one_object(self) -> Generator[None, object, object]:
        kind = self.numbers.integer()
        if kind == NIL:
            return None
        if kind == NUMBER:
            return _number(self.numbers.double())
        if kind == STRING:
            return self.string()
        if kind == BOOLEAN:
            return self.numbers.integer() == 1
        if kind == FUNCTION:
            return (yield from self.function(None))
        if kind not in (TABLE, TORCH, RECURSIVE_FUNCTION, OLD_RECURSIVE_FUNCTION):
            raise FileFormatError(self.file, "the type of an object, 0 to 8", str(kind))
        index = self.numbers.integer()
        if index in self.objects:
            return self.objects[index]
        if kind == TABLE:
            return (yield from self.table(index))
        if kind == TORCH:
            return (yield from self.torch_object(index))
        return (yield from self.function(index))

    def table(self, index: int) -> Generator[None, object, object]:
        table = self.objects[index] = self.new_table()
        for _ in range(self.numbers.size("the size of a table")):
            key = yield
            value = yield
            table.pairs.append((key, value))
        return table

    def function(self, index: int | None) -> Generator[None, object, object]:
        function = self.new_table("function")
        self.numbers.chars(self.numbers.size("the length of a function"))
        if index is not None:
            self.objects[index] = function
        yield  # the variables of the closure: later objects may refer to their values
        return function

    def torch_object(self, index: int) -> Generator[None, object, object]:
        name = self.string()
        if isinstance(name, str) and name.startswith("V "):
            name = self.string()  # after the version of the class, which old files lack
        if not isinstance(name, str):
            raise FileFormatError(self.file, "the name of a class", f"{name[:60]!r}")
        if name in _STORAGES:
            length = self.numbers.long_size("the length of a storage")
            result: object = _Storage(_STORAGES[name], self.numbers.array(_STORAGES[name], length))
        elif name in _TENSORS:
            result = yield from self.tensor(_TENSORS[name])
        else:
            table = self.objects[index] = self.new_table(name)
            fields = yield
            if isinstance(fields, _Table) and fields.kind is None:
                table.pairs = fields.pairs
            else:
                table.pairs.append(("value", fields))
            return table
        self.objects[index] = result
        return result

    def tensor(self, dtype: str) -> Generator[None, object, object]:
        rank = self.numbers.size("the number of dimensions")
        if rank > MAX_DIMENSIONS:
            raise FileFormatError(self.file, f"at most {MAX_DIMENSIONS} dimensions", str(rank))
        shape, strides = self.numbers.longs(rank), self.numbers.longs(rank)
        (offset,) = self.numbers.longs(1)
        storage = yield
        if storage is None:
            storage = _Storage(dtype, b"")
        if not isinstance(storage, _Storage) or storage.dtype != dtype:
            raise FileFormatError(self.file, f"a storage of {dtype}", f"a {_lua_name(storage)}")
        if rank == 0:
            return stored_tensor(self.file, dtype, (0,), (1,), 0, b"")
        return stored_tensor(self.file, dtype, shape, strides, offset - 1, storage.data)

    def string(self) -> str | bytes:
        chars = self.numbers.chars(self.numbers.size("the length of a string"))
        try:
            return chars.decode()
        except UnicodeDecodeError:
            return chars

    def new_table(self, kind: str | None = None) -> _Table:
        self.tables.append(_Table(kind))
        return self.tables[-1]

    def finish(self, root: object, from_stored: Callable[[StoredTensor], object]) -> object:
        """Return ``root`` with tables replaced by containers and stored tensors by tensors."""
        tensors: dict[int, object] = {}

        def resolve(value: object) -> object:
            if isinstance(value, _Table):
                return value.container
            if isinstance(value, StoredTensor | _Storage):
                if id(value) not in tensors:
                    tensors[id(value)] = from_stored(self.stored(value))
                return tensors[id(value)]
            return value

        for table in self.tables:
            table.container = [None] * len(table.pairs) if table.is_list() else {}
        for table in self.tables:
            container = table.container
            if isinstance(container, dict) and table.kind is not None:
                container["__class__"] = table.kind
            for key, value in table.pairs:
                if isinstance(container, list) and isinstance(key, int):
                    container[key - 1] = resolve(value)
                elif (
                    isinstance(container, dict) and isinstance(key, str | bytes | int | float) and key not in container
                ):
                    container[key] = resolve(value)
                else:
                    raise FileFormatError(
                        self.file, "numbers, strings or booleans as keys, each once", f"a {_lua_name(key)}"
                    )
        return resolve(root)

    def stored(self, value: StoredTensor | _Storage) -> StoredTensor:
        if isinstance(value, StoredTensor):
            return value
        length = len(value.data) // ITEM_SIZE[value.dtype]
        return stored_tensor(self.file, value.dtype, (length,), (1,), 0, value.data)


def _number(value: float) -> int | float:
    if value.is_integer() and abs(value) <= 2**53 and str(value) != "-0.0":
        return int(value)
    return value


def _lua_name(value: object) -> str:
    if isinstance(value, _Table):
        return value.kind or "table"
    if isinstance(value, StoredTensor | _Storage):
        return "tensor or storage"
    return "nil" if value is None else f"second {value!r:.60}"
