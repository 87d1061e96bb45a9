"""The replacements of the names in the pickle of a PyTorch file.

The names are those that `torch.save` writes for tensors and for the containers and values around them
(``torch/_utils.py``, ``torch/_tensor.py``, ``torch/storage.py``). Each is mapped to a function of this module or to a
value; `pickle_reader` refuses every other name. The functions raise TypeError or ValueError for arguments that PyTorch
does not write.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from candelabra._annotations import Any, NamedTuple
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.pickle_reader import Builder, is_key
from candelabra._serialization.stored import HOST, ITEM_SIZE, MAX_DIMENSIONS
from candelabra.dtypes import PYTHON_NAMES

__all__ = ["NAMES", "Sparse", "Storage", "StorageType", "UnreadTensor", "in_short", "storage_of"]

_STORAGES = {kind: dtype for dtype, kind in PYTHON_NAMES.items() if dtype not in ("uint16", "uint32", "uint64")}
"""The dtypes of PyTorch's typed storages, which the unsigned dtypes other than uint8 lack."""
_STORAGES["Untyped"] = "uint8"


class StorageType(NamedTuple):
    """A class of storages, such as torch.FloatStorage."""

    dtype: str


class Storage(NamedTuple):
    """Elements ``start`` to ``start + length``, of ``dtype``, of the bytes that the file has under ``key``."""

    key: str
    dtype: str
    start: int
    length: int
    location: str = HOST
    """The device of the program that has written the file."""


class UnreadTensor(NamedTuple):
    """A tensor whose bytes are not read yet."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool


class Sparse(NamedTuple):
    """A sparse tensor in coordinate format whose indices and values are not read yet."""

    indices: UnreadTensor
    values: UnreadTensor
    shape: tuple[int, ...]
    coalesced: bool


def storage_of(saved: object) -> Storage:
    """Return the storage that a persistent id names: ``("storage", type, key, location, length)``.

    Old files have a sixth item: None, or ``(key, offset, length)`` of a view of that storage.

    Raises:
        ValueError: the id has another form.
    """
    parts = saved if type(saved) is tuple else ()
    if len(parts) not in (5, 6) or parts[0] != "storage" or not isinstance(parts[1], StorageType):
        raise ValueError(in_short(saved))
    key, start, length = parts[2], 0, parts[4]
    if len(parts) == 6 and parts[5] is not None:
        if type(parts[5]) is not tuple or len(parts[5]) != 3:
            raise ValueError(f"{in_short(parts[5])} as view")
        _, start, length = parts[5]
    if not isinstance(key, str) or not _is_size(start) or not _is_size(length):
        raise ValueError(f"{in_short(key)}, {in_short(start)} and {in_short(length)} as key, offset and length")
    return Storage(key, parts[1].dtype, start, length, parts[3] if isinstance(parts[3], str) else HOST)


def in_short(value: object) -> str:
    """Return a value for an error message; a value that may be long or deep is represented by its type."""
    if isinstance(value, str | bytes):
        return repr(value[:60])
    return repr(value) if _is_size(value) or value is None else kind_of(value)


def _tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, dtype: Any = None, metadata: Any = None
) -> UnreadTensor:
    if not isinstance(storage, Storage):
        raise TypeError(f"{kind_of(storage)} in place of a storage")
    if not _is_size(offset) or not _are_sizes(shape) or not _are_sizes(strides) or type(requires_grad) is not bool:
        raise TypeError("offset, shape, strides or requires_grad is of another type or negative")
    dtype = storage.dtype if dtype is None else dtype
    if not isinstance(dtype, str) or dtype not in ITEM_SIZE:
        raise TypeError(f"candelabra has no dtype {in_short(dtype)}")
    if metadata:
        raise ValueError("a lazily conjugated or negated tensor; save its resolve_conj() or resolve_neg()")
    return UnreadTensor(storage, dtype, offset, tuple(shape), tuple(strides), requires_grad)


def _rebuild_tensor_v2(arguments: tuple[Any, ...]) -> UnreadTensor:
    storage, offset, shape, strides, requires_grad, _, *rest = arguments
    return _tensor(storage, offset, shape, strides, requires_grad, None, *rest)


def _rebuild_tensor_v3(arguments: tuple[Any, ...]) -> UnreadTensor:
    storage, offset, shape, strides, requires_grad, _, dtype, *rest = arguments
    return _tensor(storage, offset, shape, strides, requires_grad, dtype, *rest)


def _rebuild_tensor(arguments: tuple[Any, ...]) -> UnreadTensor:
    storage, offset, shape, strides = arguments
    return _tensor(storage, offset, shape, strides, False)


def _rebuild_parameter(arguments: tuple[Any, ...]) -> UnreadTensor:
    """Return the tensor of a parameter. The attributes of ``_rebuild_parameter_with_state`` are dropped."""
    tensor, requires_grad, *_ = arguments
    if not isinstance(tensor, UnreadTensor) or type(requires_grad) is not bool:
        raise TypeError(f"{kind_of(tensor)} in place of a tensor")
    return tensor._replace(requires_grad=requires_grad)


def _rebuild_from_type(arguments: tuple[Any, ...]) -> UnreadTensor:
    """Return the tensor of ``_rebuild_from_type_v2(function, class, arguments, state)``, without its attributes."""
    function, kind, inner, _ = arguments
    if not isinstance(function, Builder) or not isinstance(kind, Builder) or type(inner) is not tuple:
        raise TypeError("no function and class")
    tensor = None if function.build is _rebuild_from_type else function.build(inner)  # None: it would recurse
    if not isinstance(tensor, UnreadTensor):
        raise TypeError(f"{function.name} does not create a tensor")
    return tensor


def _rebuild_sparse_tensor(arguments: tuple[Any, ...]) -> Sparse:
    """Return the record of ``_rebuild_sparse_tensor(layout, (indices, values, shape, coalesced))``.

    Files of PyTorch before 2.1 do not say whether the tensor is coalesced.
    """
    kind, (indices, values, shape, *rest) = arguments
    if kind != "torch.sparse_coo" or not isinstance(indices, UnreadTensor) or not isinstance(values, UnreadTensor):
        raise TypeError(f"a layout {in_short(kind)}, or no indices and values")
    if not _are_sizes(shape):
        raise TypeError("other than sizes")
    return Sparse(indices, values, tuple(shape), rest == [True])


def _layout(arguments: tuple[Any, ...]) -> str:
    (name,) = arguments
    if name not in ("torch.sparse_coo", "torch.strided"):
        raise ValueError(f"the layout {in_short(name)}, which candelabra lacks")
    return str(name)


def _no_instance(arguments: tuple[Any, ...]) -> object:
    raise TypeError("it is not made by calling its class")


def _ordered_dict(arguments: tuple[Any, ...]) -> OrderedDict[Any, Any]:
    pairs = arguments[0] if arguments else []
    return OrderedDict([(_key(key), value) for key, value in pairs])


def _counter(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    counts = arguments[0] if arguments else {}
    return {_key(key): value for key, value in counts.items()}


def _set(arguments: tuple[Any, ...]) -> set[Any]:
    return set(map(_key, arguments[0])) if arguments else set()


def _size(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    if not _are_sizes(arguments[0]):
        raise TypeError("other than sizes")
    return tuple(arguments[0])


def _complex(arguments: tuple[Any, ...]) -> complex:
    real, imaginary = arguments
    if not isinstance(real, float) or not isinstance(imaginary, float):
        raise TypeError("other than two floats")
    return complex(real, imaginary)


def _encode(arguments: tuple[Any, ...]) -> bytes:
    """Return bytes, which a pickle of protocol 2 represents as ``_codecs.encode(text, "latin1")``."""
    text, codec = arguments
    if not isinstance(text, str) or codec not in ("latin1", "latin-1"):
        raise TypeError(f"{in_short(text)} to encode in {in_short(codec)}")
    return text.encode("latin-1")


def _bytes(arguments: tuple[Any, ...]) -> bytes:
    if arguments:
        raise TypeError("a value to convert")
    return b""


def _device(arguments: tuple[Any, ...]) -> str:
    kind, *index = arguments
    if not isinstance(kind, str) or not all(map(_is_size, index)):
        raise TypeError("other than a name and a number")
    return ":".join([kind, *map(str, index)])


def _key(key: Any) -> Any:
    if not is_key(key):
        raise TypeError(f"{kind_of(key)} as key")
    return key


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _are_sizes(values: object) -> bool:
    return isinstance(values, tuple | list) and len(values) <= MAX_DIMENSIONS and all(map(_is_size, values))


def _table() -> dict[str, object]:
    builders = {
        "collections.OrderedDict": _ordered_dict,
        "collections.Counter": _counter,
        "_codecs.encode": _encode,
        "torch.Size": _size,
        "torch.device": _device,
        "torch.Tensor": _no_instance,
        "torch.nn.parameter.Parameter": _no_instance,
        "torch._utils._rebuild_tensor": _rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": _rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
        "torch._utils._rebuild_sparse_tensor": _rebuild_sparse_tensor,
        "torch.serialization._get_layout": _layout,
    }
    for module in ("builtins", "__builtin__"):  # the second in pickles of protocol 2
        builders |= {f"{module}.bytes": _bytes, f"{module}.set": _set, f"{module}.complex": _complex}
    table: dict[str, object] = {name: Builder(name, build) for name, build in builders.items()}
    for kind, dtype in _STORAGES.items():
        for module in ("torch", "torch.cuda", "torch.storage"):
            table[f"{module}.{kind}Storage"] = StorageType(dtype)
    for dtype in (*ITEM_SIZE, "float8_e4m3fn", "float8_e5m2"):
        table[f"torch.{dtype}"] = dtype
    return table


NAMES: Mapping[str, object] = _table()
"""By "module.name": a `Builder`, a `StorageType`, or the name of a dtype."""
