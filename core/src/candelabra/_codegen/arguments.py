"""Convert arguments to their canonical form, or raise the error for invalid ones.

All functions run before the dispatch key is looked up, so each handles the most frequent form first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance, instance_of_key, open_device
from candelabra._dispatch.out import write_out as write
from candelabra._dispatch.overriding import handle_arguments
from candelabra._geometry import extent
from candelabra._keys import NO_OVERRIDE, OVERRIDE, SCALAR_BITS, SCALAR_FIRST, state
from candelabra._layout import infer_shape, wrap_dim
from candelabra._overrides import participates
from candelabra._records.schema import OPTIONAL, REQUIRED, TENSOR
from candelabra._tensor import Tensor
from candelabra.dtypes import BY_NAME, INTEGER, bool_, dtype, int64, promote_types

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def kind_of(value: object) -> str:
    """Return a value's type in words, for error messages."""
    return type(value).__name__


def missing(name: str, parameter: str) -> TypeError:
    """Return the error for a required argument that was passed neither by its name nor by its alias."""
    return TypeError(f"{name}() missing 1 required positional argument: {parameter!r}")


def present_arguments(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are neither omitted nor None."""
    return {name: value for name, value in arguments.items() if value is not REQUIRED and value is not None}


def number_first(entry: Any, kind: str, factors: tuple[str, ...], count: int, values: tuple[Any, ...]) -> Any:
    """Serve a call with factors before the tensors, ``add_(input, 2, other)``, with PyTorch's warning.

    Raises ``TypeError`` if the call has more arguments than that.
    """
    input, *rest = values
    numbers = [value for value in rest if not isinstance(value, Tensor)]
    tensors = rest[len(numbers) :]
    name = entry.name + ("_" if kind == "inplace" else "")
    fit = len(values) == count + len(numbers) and 0 < len(numbers) <= len(factors)
    if not fit or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}() takes {count} positional arguments but {len(values)} were given")
    named = dict(zip(factors, numbers, strict=False))
    warnings.warn(
        f"This overload of {name} is deprecated: pass the number by keyword, "
        f"{name}(…, {', '.join(f'{factor}={number}' for factor, number in named.items())})",
        UserWarning,
        stacklevel=3,
    )
    return entry.form(kind)(input, *tensors, **named)


def not_tensors(op: Operator[..., Any], kind: str, **arguments: Any) -> Any:
    """Serve a call with an argument that is not a tensor by ``__torch_function__``, or raise the error for it."""
    handled = handle_arguments(op, kind, arguments)
    if handled is NotImplemented:
        raise not_a_tensor(op, **arguments)
    return handled


def not_a_tensor(op: Operator[..., Any], **arguments: Any) -> TypeError:
    """Return the error for an argument that is not a tensor."""
    names = [p.name for p in op.schema.parameters]
    for name, value in arguments.items():
        optional = op.schema.named(name)
        if optional is None or optional.kind not in (TENSOR, OPTIONAL):
            continue
        if isinstance(value, Tensor) or (value is None and optional is not None and optional.kind == "optional"):
            continue
        return TypeError(
            f"{op.title}(): argument '{name}' (position {names.index(name) + 1}) must be Tensor, not {kind_of(value)}"
        )
    return TypeError(f"{op.title}(): a tensor argument was never initialised")


def as_operand(op: Operator[..., Any], name: str, value: Any, first: bool) -> tuple[Any, int]:
    """Convert a tensor subclass, a subclass of a Python number, or a NumPy-like scalar to (value, its key bits)."""
    keys = getattr(value, "_keys", None)  # a subclass: callers recognise Tensor itself by its type
    if keys is not None:
        return value, keys
    number: Any
    for number in (bool, int, float, complex):
        if isinstance(value, number):
            return number(value), SCALAR_BITS[number] | (SCALAR_FIRST if first else 0)
    if participates(type(value)):
        return value, OVERRIDE
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar of an array library
        return as_operand(op, name, value.item(), first)
    raise not_operand(op, name, value)


def as_bound(op: Operator[..., Any], name: str, value: Any) -> tuple[Any, int]:
    """As :func:`as_operand`, but a number has no key bits."""
    value, keys = as_operand(op, name, value, False)
    return value, keys if hasattr(value, "_keys") else 0


def maybe_operand(op: Operator[..., Any], name: str, value: Any, first: bool) -> tuple[Any, int | None]:
    """As :func:`as_operand`, but return None as the key of an unknown type: Python then tries the other operand."""
    try:
        return as_operand(op, name, value, first)
    except TypeError:
        return value, None


def not_operand(op: Operator[..., Any], name: str, value: Any) -> TypeError:
    names = [p.name for p in op.schema.parameters]
    return TypeError(
        f"{op.title}(): argument '{name}' (position {names.index(name) + 1}) must be Tensor or Number, not "
        f"{kind_of(value)}"
    )


def as_tensors(op: Operator[..., Any], name: str, value: Any) -> Sequence[Tensor]:
    """Return a non-empty tuple or list of tensors."""
    if type(value) not in (tuple, list) and (isinstance(value, Tensor) or not isinstance(value, Iterable)):
        place = [p.name for p in op.schema.parameters].index(name) + 1
        raise TypeError(
            f"{op.title}(): argument '{name}' (position {place}) must be tuple of Tensors, not {kind_of(value)}"
        )
    tensors = tuple(value)
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            if participates(type(tensor)):
                continue
            raise TypeError(
                f"{op.title}(): expected Tensor as element {position} in argument '{name}', but got {kind_of(tensor)}"
            )
    if not tensors:
        raise RuntimeError(f"{op.title} expects a non-empty TensorList")
    return tensors


def sizes_of(tensor: Any) -> tuple[int, ...]:
    """Return a tensor's sizes: its payload's, or those that the class of a subclass says."""
    sizes: tuple[int, ...] = tensor.shape if tensor._keys & OVERRIDE else tensor._payload.shape
    return sizes


def as_joined_tensors(op: Operator[..., Any], name: str, value: Any) -> Sequence[Tensor]:
    """Return the tensors to join along a dim, without empty vectors. Raise ``ValueError`` for no tensors.

    As in PyTorch, an empty vector takes part in promotion but fits any shape.
    """
    if isinstance(value, (tuple, list)) and not value:
        raise ValueError(f"{op.title}(): expected a non-empty list of Tensors")
    tensors = as_tensors(op, name, value)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            return tensors  # it handles the call
        shape = sizes_of(tensor)
        if len(shape) == 1 and not shape[0]:
            break
    else:
        return tensors
    kept = [t for t in tensors if len(sizes_of(t)) != 1 or sizes_of(t)[0]]
    if all(len(t._payload.shape) == 1 for t in kept):
        return tensors
    common = tensors[0].dtype
    for tensor in tensors:
        common = promote_types(common, tensor.dtype)
    return (kept[0].to(common), *kept[1:])


def as_index(op: Operator[..., Any], name: str, value: Any) -> Tensor:
    """Return an integer tensor as int64."""
    if not isinstance(value, Tensor):
        if participates(type(value)):
            return value  # type: ignore[no-any-return] # the entry finds no key and lets it handle the call
        raise TypeError(f"{op.title}(): argument '{name}' must be Tensor, not {kind_of(value)}")
    if value._keys & int64.bit:
        return value
    if value.dtype.category != 1:
        raise RuntimeError(f"{op.title}(): Expected dtype int64 for {name}, got {value.dtype}")
    return value.to(int64)


def as_mask(op: Operator[..., Any], name: str, value: Any) -> Tensor:
    """Return a bool tensor. As in PyTorch, uint8 is accepted as bool."""
    if isinstance(value, Tensor) and value.dtype.name == "uint8":
        return value.to(bool_)
    return as_bool_mask(op, name, value)


def as_bool_mask(op: Operator[..., Any], name: str, value: Any) -> Tensor:
    """Return a bool tensor, or an object that handles the call. Raise ``RuntimeError`` for another dtype."""
    if not isinstance(value, Tensor):
        if participates(type(value)):
            return value  # type: ignore[no-any-return] # the entry finds no key and lets it handle the call
        raise TypeError(f"{op.title}(): argument '{name}' must be Tensor, not {kind_of(value)}")
    if value._keys & bool_.bit:
        return value
    raise RuntimeError(
        f"{op.title}(): {name} expected to be a boolean tensor, but got a tensor with dtype {value.dtype}"
    )


def as_indices(op: Operator[..., Any], name: str, value: Any) -> tuple[Tensor | None, ...]:
    """Return index tensors, with None for each dim that is not indexed.

    A mask is replaced by the indices of its true elements, one tensor per dim.
    """
    if not isinstance(value, (tuple, list)):
        position = [p.name for p in op.schema.parameters].index(name) + 1
        raise TypeError(
            f"{op.title}(): argument '{name}' (position {position}) must be tuple of Tensors, not {kind_of(value)}"
        )
    indices: list[Tensor | None] = []
    for index in value:
        keys = getattr(index, "_keys", 0)
        if index is None or keys & int64.bit:
            indices.append(index)
        elif keys & bool_.bit:
            indices += index.nonzero().unbind(1)
        else:
            indices.append(as_index(op, name, index))
    return tuple(indices)


def as_dim(dim: Any, tensor: Any) -> int:
    """Return a dim as a non-negative int. A 0-d tensor accepts 0 and -1."""
    rank = len(tensor._payload.shape) if hasattr(tensor, "_payload") else 0
    return wrap_dim(dim, rank)


def as_dims(dim: Any, tensor: Any) -> tuple[int, ...] | None:
    """Return dims as a tuple of distinct non-negative ints, or None for all dims (None or an empty tuple)."""
    if dim is None:
        return None
    rank = len(tensor._payload.shape)
    if isinstance(dim, (tuple, list)):
        dims = tuple([wrap_dim(d, rank) for d in dim])
        if len(set(dims)) != len(dims):
            twice = next(d for i, d in enumerate(dims) if d in dims[:i])
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
        return (dims if rank else None) or None
    dims = (wrap_dim(dim, rank),)
    return dims if rank else None


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of non-negative ints (-1 is kept for the operators that infer it)."""
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int or size < 0:
                break
        else:
            return shape
    if isinstance(shape, (tuple, list)):
        return tuple([as_size(s) for s in shape])
    return (as_size(shape),)


def as_sizes(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a variadic parameter: ``f(2, 3)``, ``f((2, 3))`` and ``f([2, 3])`` are equivalent."""
    if len(sizes) == 1:
        value = sizes[0]
        if isinstance(value, (tuple, list)):
            sizes = tuple(value)
        elif not hasattr(value, "__index__"):
            if not isinstance(value, Iterable):
                raise TypeError(f"size must be an int or a tuple of ints, but found {kind_of(value)}: {value!r}")
            sizes = tuple(value)
    for value in sizes:
        if type(value) is not int:
            return tuple([as_size(value) for value in sizes])
    return sizes


def as_inserted_dim(dim: Any, tensor: Any) -> int:
    """Return the position of a new dim, as in ``unsqueeze``."""
    return wrap_dim(dim, len(tensor._payload.shape) + 1)


def as_distinct_dims(dims: Any, tensor: Any) -> tuple[int, ...]:
    """Return dims as a tuple of distinct non-negative ints. An empty tuple means no dim."""
    rank = len(tensor._payload.shape)
    if not isinstance(dims, (tuple, list)):
        dims = (wrap_dim(dims, rank),)
        return dims if rank else ()
    found = tuple([wrap_dim(d, rank) for d in dims])
    if len(set(found)) != len(found):
        twice = next(d for i, d in enumerate(found) if d in found[:i])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found if rank else ()


def as_permutation(dims: Any, tensor: Any) -> tuple[int, ...]:
    """Return a permutation of the tensor's dims as non-negative ints."""
    rank = len(tensor._payload.shape)
    order = tuple([wrap_dim(d, rank) for d in dims])
    if len(order) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(order)}"
        )
    if len(set(order)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return order


def as_unit_dims(dim: Any, tensor: Any) -> tuple[int, ...]:
    """Return those of the given dims that have size 1; for None, all dims of size 1."""
    shape = sizes_of(tensor)
    if dim is None:
        return tuple([d for d, size in enumerate(shape) if size == 1])
    named = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple([d for d in (wrap_dim(d, len(shape)) for d in named) if shape and shape[d] == 1])


def as_expanded_shape(size: tuple[int, ...], tensor: Any) -> tuple[int, ...]:
    """Return a shape to expand to, a tuple of ints, with each -1 replaced by the tensor's size."""
    have = sizes_of(tensor)
    lead = len(size) - len(have)
    kept = tuple([have[i - lead] if s == -1 and i >= lead >= 0 else s for i, s in enumerate(size)])
    if min(kept, default=0) < 0:
        raise RuntimeError(
            f"The expanded size of the tensor ({list(size)}) isn't allowed in a leading, non-existing dimension"
        )
    return kept


def as_inferred_shape(size: tuple[int, ...], tensor: Any) -> tuple[int, ...]:
    """Return a shape for the tensor's elements, a tuple of ints, with -1 replaced by the inferred size."""
    return infer_shape(size, tensor.numel())


def as_integer(value: Any, name: str) -> int:
    """Return an integer as an int: Python's, an array library's, or the value of a 0-d integer tensor."""
    if isinstance(value, Tensor) and (value.ndim or value.dtype.category != INTEGER):
        raise RuntimeError(f"{name} must be an 0-dim integral Tensor.")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"argument '{name}' must be int, not {kind_of(value)}")
    return int(value.__index__())


def as_storage_offset(offset: Any, tensor: Any) -> int:
    """Return the storage offset of a view, by default that of the tensor."""
    return tensor._layout()[1] if offset is None else as_size(offset)


def as_origin(origin: Any, tensor: Any) -> tuple[tuple[int, ...], int, int, int]:
    """Return strides and offset of a tensor, and the begin and end of the memory of its base."""
    strides, offset = tensor._layout()
    base = tensor._base if tensor._is_view() else tensor
    of_base, start = base._layout()
    return tuple(strides), offset, start, start + extent(tuple(base._payload.shape), of_base)


def as_correction(correction: Any, tensor: Any) -> float:
    """Return the correction of a variance, which is subtracted from the number of elements; 1 for None."""
    if correction is None:
        return 1
    if isinstance(correction, (int, float)):
        return correction
    if not hasattr(correction, "__index__"):
        raise TypeError(f"argument 'correction' must be Number, not {kind_of(correction)}")
    return int(correction)


def as_size(size: Any) -> int:
    """Return one size as an int."""
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"size must be an int or a tuple of ints, but found {kind_of(size)}: {size!r}")
    return int(size.__index__())


def as_dtype(value: Any) -> dtype:
    """Return a dtype. Python's ``bool``, ``int``, ``float``, ``complex`` mean their default dtypes, as in PyTorch."""
    if isinstance(value, dtype):
        return value
    if value in _PYTHON_TYPES:
        return BY_NAME[_PYTHON_TYPES[value]]
    raise TypeError(f"dtype must be a candelabra.dtype, not {kind_of(value)}: {value!r}")


_PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def as_device(value: Any) -> Instance:
    """Return the device instance that a value names."""
    return value if isinstance(value, Instance) else open_device(value)


def device_of(tensor: Tensor) -> Instance:
    """Return the device instance of a tensor."""
    return instance_of_key(tensor._keys)


def as_class_of(tensor: Any, result: Tensor) -> Tensor:
    """Return a new tensor as an instance of the subclass of another one, unless subclasses are disabled."""
    if state.bits & NO_OVERRIDE:
        return result
    made: Tensor = result.as_subclass(type(tensor))
    return made


def write_out(op: Operator[..., Any], out: Any, args: tuple[Any, ...]) -> Any:
    """Run the ``out=`` form; see ``candelabra._dispatch.out``."""
    return write(op, out, args)


__all__ = [
    "as_bool_mask", "as_bound", "as_class_of", "as_correction", "as_device", "as_dim", "as_dims", "as_distinct_dims",
    "as_dtype", "as_expanded_shape", "as_index", "as_indices", "as_inferred_shape", "as_inserted_dim", "as_integer",
    "as_joined_tensors", "as_mask", "as_operand", "as_origin", "as_permutation", "as_shape", "as_sizes",
    "as_storage_offset", "as_tensors", "as_unit_dims", "handle_arguments", "maybe_operand", "not_tensors", "write_out",
]  # fmt: skip
