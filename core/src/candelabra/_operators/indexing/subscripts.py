"""Subscripts: ``x[index]`` and ``x[index] = value``, for every index that PyTorch accepts.

An index is parsed into two parts. The *basic* part (ints, slices, None) becomes a single view; index tensors and masks
apply to dims of that view. An int combined with index tensors belongs to the basic part: it is applied first and does
not affect the order of the result's dims (NumPy treats it as an index array). A mask is equivalent to as many index
tensors as it has dims.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._keys import DEVICE_SHIFT, active, state
from candelabra._operators.conversion.copies import copied, filled
from candelabra._operators.conversion.dtype_and_device import cast
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import masked_fill
from candelabra._operators.indexing.advanced import index as advanced_index
from candelabra._operators.indexing.advanced import index_put
from candelabra._operators.indexing.basic import basic_index
from candelabra._operators.indexing.masks import masked_select
from candelabra._records.callables import public
from candelabra._records.lookup import public_function
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK, INTEGER, bool_, int64

if TYPE_CHECKING:
    from candelabra.typing import Number

_basic = basic_index.table


class Parsed(NamedTuple):
    """An index, parsed into its basic part and its index tensors."""

    basic: tuple[Any, ...]
    """The argument of the operator ``basic_index``."""
    whole: bool
    """Whether the basic part selects the whole tensor unchanged."""
    tensors: list[tuple[int, Tensor]]
    """Index tensors and masks in order, each with its (first) dim in the result of the basic part."""


# -- x[index] ---------------------------------------------------------------------------------------------------------
@public(is_function=False, guarded=False)
def __getitem__(input: Tensor, index: Any) -> Tensor:
    """``input[index]``: a view for ints, slices, None and Ellipsis; a copy for an index with a tensor, list or bool.

    Raises ``IndexError`` for ints out of bounds, too many indices and masks of another shape, ``ValueError`` for
    negative steps.
    """
    kind = type(index)
    if kind is int:
        if index < 0:
            index = _from_end(input, index)
        out: Tensor = _basic[input._keys | state.bits if active else input._keys](input, (index,))
        return out
    if kind is slice:
        shape = input._payload.shape
        index = (_canonical(index, shape[0]),) if shape else (slice(0, 1, 1),)
        out = _basic[input._keys | state.bits if active else input._keys](input, index)
        return out
    plain = _plain(index, input._payload.shape) if kind is tuple else None
    if plain is not None:
        out = _basic[input._keys | state.bits if active else input._keys](input, plain)
        return out
    parsed = parse(input, index)
    if not parsed.tensors:
        out = _basic[state.bits | input._keys](input, parsed.basic)
        return out
    if not parsed.whole:
        input = _basic[state.bits | input._keys](input, parsed.basic)
    first = parsed.tensors[0][1]
    if len(parsed.tensors) == 1 and first._keys & bool_.bit and first.ndim == input.ndim:
        out = masked_select.function(input, first)
        return out
    out = advanced_index.function(input, _per_dim(parsed.tensors))
    return out


def _plain(index: tuple[Any, ...], shape: Sequence[int]) -> tuple[Any, ...] | None:
    """Return the canonical form of a tuple of slices and of ints within bounds, or None for any other index."""
    if len(index) > len(shape):
        return None
    result: list[Any] = []
    for item, size in zip(index, shape):
        kind = type(item)
        if kind is int:
            if item < 0:
                item += size
            if not 0 <= item < size:
                return None
            result.append(item)
        elif kind is slice:
            result.append(_canonical(item, size))
        else:
            return None
    return tuple(result)


def _from_end(input: Tensor, index: int) -> int:
    shape = input._payload.shape
    if shape and index < -shape[0]:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {shape[0]}")
    return index + shape[0] if shape else index


def _canonical(part: slice, size: int) -> slice:
    start, stop, step = part.indices(size)
    if step < 0:
        raise ValueError("step must be greater than zero")
    return slice(start, stop, step)


def parse(input: Tensor, index: Any) -> Parsed:
    """Parse an index; see :class:`Parsed`."""
    shape = input._payload.shape
    items = [_item(i, input) for i in (index if _is_tuple(index) else (index,))]
    indexed = 0  # the number of dims that the items index
    for item in items:
        if isinstance(item, (int, slice)):
            indexed += not isinstance(item, bool)
        elif isinstance(item, Tensor):
            indexed += item.ndim if item._keys & bool_.bit else 1
    if indexed > len(shape):
        if not shape and len(items) == 1 and isinstance(items[0], (int, slice)):
            basic_index.rule(basic_index, (input, (items[0],)))  # raises the error for 0-d tensors
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list[Any] = []
    tensors: list[tuple[int, Tensor]] = []
    whole = True
    dim = result_dim = 0  # dims of the input and of the result of the basic part
    for item in items:
        if isinstance(item, Tensor):
            rank = item.ndim if item._keys & bool_.bit else 1
            if item._keys & bool_.bit:
                _check_mask(item, shape, dim)
            tensors.append((result_dim, item))
            basic += [slice(0, size, 1) for size in shape[dim : dim + rank]]
            dim, result_dim = dim + rank, result_dim + rank
        elif item is None or isinstance(item, bool):
            if item is not None:
                tensors.append(
                    (result_dim, new_full(input, (int(item),), 0, dtype=int64))
                )  # index 0 of the new dim for True, no index for False
            basic.append(None)
            result_dim += 1
            whole = False
        elif item is Ellipsis:
            skipped = len(shape) - indexed
            indexed = len(shape)  # a second Ellipsis skips nothing
            basic += [slice(0, size, 1) for size in shape[dim : dim + skipped]]
            dim, result_dim = dim + skipped, result_dim + skipped
        elif isinstance(item, slice):
            part = _canonical(item, shape[dim])
            whole = whole and part.start == 0 and part.stop == shape[dim] and part.step == 1
            basic.append(part)
            dim, result_dim = dim + 1, result_dim + 1
        else:
            size = shape[dim]
            if not -size <= item < size:
                raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {size}")
            basic.append(item + size if item < 0 else item)
            dim += 1
            whole = False
    return Parsed(tuple(basic), whole, tensors)


def _is_tuple(index: Any) -> bool:
    """Return whether a sequence is to be read as a tuple of indices: the heuristic of PyTorch and of old versions of
    NumPy.
    """
    if isinstance(index, tuple):
        return True
    if not isinstance(index, list) or len(index) >= 32:
        return False
    if any(isinstance(i, (Tensor, Sequence, slice)) or i is None or i is Ellipsis for i in index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of "
            "x[seq], or x[candelabra.tensor(seq)] for a tensor of indices",
            UserWarning,
            stacklevel=4,
        )
        return True
    return False


def _item(item: Any, input: Tensor) -> Any:
    """Return an item of an index as an int, a bool, a slice, None, Ellipsis, a mask, or an int64 tensor."""
    if item is None or item is Ellipsis or isinstance(item, (int, slice)):
        return item
    if isinstance(item, Tensor):
        return _tensor_item(item)
    if isinstance(item, (list, range, tuple)):
        if not len(item):
            return new_full(input, (0,), 0, dtype=int64)
        return _tensor_item(_as_tensor(list(item), input))
    if hasattr(item, "__array_interface__") or hasattr(item, "__dlpack__"):
        if item.shape != ():
            return _tensor_item(_as_tensor(item, input))
        if type(item).__name__ in ("bool", "bool_"):
            return bool(item)
        item = item.item() if hasattr(item, "item") else item
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(item).__name__})"
    )


def _as_tensor(data: Any, input: Tensor) -> Tensor:
    with input.device:
        result: Tensor = public_function("tensor")(data)
    return result


def _tensor_item(item: Tensor) -> Any:
    item._fresh()
    if item._keys & int64.bit and item._payload.shape:
        return item
    if item._keys & bool_.bit:
        return bool(item.item()) if not item._payload.shape else item
    if item.dtype.category == INTEGER:
        if item.dtype.name == "uint8":
            warnings.warn(
                "indexing with dtype uint8 is deprecated, please use a tensor of dtype bool instead.",
                UserWarning,
                stacklevel=5,
            )
            return _tensor_item(cast.function(item, dtype=bool_))
        if not item._payload.shape and not item._instance.depth:
            return int(item.item())
        if item._keys & int64.bit:  # in a function transform: a number per example, so no basic index
            return item
        if item.dtype.name == "int32":
            return cast.function(item, dtype=int64)
    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _check_mask(mask: Tensor, shape: Sequence[int], dim: int) -> None:
    for i, size in enumerate(mask._payload.shape):
        if size != shape[dim + i]:
            raise IndexError(
                f"The shape of the mask {list(mask._payload.shape)} at index {i} does not match the shape of the "
                f"indexed tensor {list(shape)} at index {dim + i}"
            )


def _per_dim(tensors: list[tuple[int, Tensor]]) -> list[Tensor | None]:
    """Return the index tensors and masks by dim, with None for dims without one."""
    result: list[Tensor | None] = []
    dim = 0
    for first, tensor in tensors:
        result += [None] * (first - dim)
        result.append(tensor)
        dim = first + (tensor.ndim if tensor._keys & bool_.bit else 1)
    return result


# -- x[index] = value -------------------------------------------------------------------------------------------------
@public(is_function=False, guarded=False)
def __setitem__(input: Tensor, index: Any, value: Tensor | Number) -> None:
    """``input[index] = value``: a number, or a tensor that broadcasts to ``input[index]``, cast to ``input``'s dtype.

    If an index selects an element several times, the last value is stored. Raises the errors of :func:`__getitem__`,
    ``TypeError`` for another value, ``RuntimeError`` for a number that the dtype cannot hold and for a tensor of
    another shape.
    """
    number = not isinstance(value, Tensor)
    source: Any = number_for(value, input.dtype) if number else value
    if type(index) is int:
        if index < 0:
            index = _from_end(input, index)
        target, tensors = _basic[state.bits | input._keys](input, (index,)), []
    else:
        parsed = parse(input, index)
        tensors = parsed.tensors
        target = input if parsed.whole else _basic[state.bits | input._keys](input, parsed.basic)
    if not tensors:
        if number:
            filled.form("inplace")(target, source)
        else:
            copied.form("inplace")(target, _source(source, target))
        return
    dim, first = tensors[0]
    if number and len(tensors) == 1 and first._keys & bool_.bit:
        masked_fill.form("inplace")(target, _aligned(first, target, dim), source)
        return
    source = new_full(input, (), source) if number else _source(source, target)
    index_put.form("inplace")(target, _per_dim(tensors), source, False)


@public(is_function=False)
def __delitem__(input: Tensor, index: Any) -> None:
    """Raise ``TypeError``: the size of a tensor cannot change."""
    raise TypeError("Tensor does not support deleting items")


def _aligned(mask: Tensor, target: Tensor, dim: int) -> Tensor:
    """Return a mask of the dims that start at ``dim``, with dims appended so that it broadcasts to the target."""
    after = target.ndim - dim - mask.ndim
    return mask.reshape((*mask._payload.shape, *(1,) * after)) if after else mask


def _source(value: Tensor, target: Tensor) -> Tensor:
    """Return a value without leading dims of size 1, in the dtype of the target and on its device."""
    shape = value._payload.shape
    if shape and shape[0] == 1:
        lead = next((d for d, size in enumerate(shape) if size != 1), len(shape))
        value = value.reshape(tuple(shape[lead:]))
    different = value._keys ^ target._keys
    if different & DTYPE_MASK:
        value = cast.function(value, dtype=target.dtype)
    if different >> DEVICE_SHIFT and value._instance is not target._instance and shape:
        moved: Tensor = value.to(target.device)
        return moved
    return value
