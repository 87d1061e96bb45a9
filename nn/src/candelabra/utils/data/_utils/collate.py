"""Collation of items into a batch: tensors are stacked, numbers become tensors, containers keep their types."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Final

from candelabra import Tensor, stack
from candelabra.dtypes import float64
from candelabra.library import open_device, public_function

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn", "collate_numpy_scalar_fn",
    "collate_str_fn", "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert",
]  # fmt: skip

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

UNSUPPORTED: Final = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays and scalars in a nested container to tensors, and keep everything else.

    Mappings and mutable sequences keep their types, tuples become lists, and named tuples stay.
    """
    if isinstance(data, Tensor):
        return data
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        is_text = data.dtype.kind in "SUO" and type(data) in (numpy.ndarray, numpy.str_, numpy.bytes_)
        return data if is_text else public_function("as_tensor")(data)
    if isinstance(data, Mapping):
        return _same_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _same_sequence(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate a list of items into a batch, as the ``collate_fn`` of a :class:`DataLoader`.

    Tensors, NumPy arrays and NumPy scalars are stacked along a new first dim. Python floats become a float64 tensor
    (the default dtype where the device has no float64), ints an int64 tensor. Strings and bytes stay a list. Mappings,
    named tuples and sequences are collated elementwise and keep their types; tuples become lists.

    Raises:
        RuntimeError: sequences or tensors differ in length or shape.
        TypeError: an item has another type. ``default_collate_fn_map`` can be extended by further types.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collate a list of items with a map ``{type or tuple of types: function}``.

    A function of the map is called as ``function(batch, collate_fn_map=collate_fn_map)``. The exact type of the first
    item has precedence; then the first entry counts of which the item is an instance. Containers that are not in the
    map are collated elementwise. Errors are those of :func:`default_collate`.
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if collate_fn_map is default_collate_fn_map:
            _add_numpy_types()
        chosen = collate_fn_map.get(kind)
        if chosen is None:
            chosen = next((f for types, f in collate_fn_map.items() if isinstance(first, types)), None)
        if chosen is not None:
            return chosen(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: collate([item[key] for item in batch], collate_fn_map=collate_fn_map) for key in first}
        return _same_mapping(first, columns)
    is_named = isinstance(first, tuple) and hasattr(first, "_fields")
    if not is_named and (not isinstance(first, Sequence) or isinstance(first, (str, bytes))):
        raise TypeError(UNSUPPORTED.format(kind))
    if any(len(item) != len(first) for item in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    parts = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
    return kind(*parts) if is_named else _same_sequence(first, parts)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack tensors of one shape along a new first dim."""
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack NumPy arrays of one shape. ``TypeError`` for arrays of strings and objects."""
    if batch[0].dtype.kind in "SUOV":
        raise TypeError(UNSUPPORTED.format(batch[0].dtype))
    as_tensor = public_function("as_tensor")
    same = all(array.shape == batch[0].shape and array.dtype == batch[0].dtype for array in batch)
    if same and collate_fn_map is default_collate_fn_map and stacks_tensors():
        return as_tensor(sys.modules["numpy"].stack(batch))  # one tensor to make instead of one of each array
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A 1-D tensor of NumPy scalars, in the dtype of the first."""
    numpy = sys.modules["numpy"]
    return public_function("as_tensor")(numpy.asarray(batch, dtype=batch[0].dtype))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A 1-D float64 tensor of floats, or one of the default dtype where the default device has no float64."""
    return public_function("tensor")(list(batch), dtype=float64 if float64 in open_device().keys else None)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """A 1-D tensor of ints (int64) or of booleans."""
    return public_function("tensor")(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Strings and bytes stay as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""The map of :func:`default_collate`. Programs add types to it. NumPy's types join it once NumPy is imported."""


def stacks_tensors() -> bool:
    """Whether the program has left it to :func:`collate_tensor_fn` to collate tensors."""
    return default_collate_fn_map.get(Tensor) is collate_tensor_fn


_numpy_types: list[Any] = []


def _add_numpy_types() -> None:
    # NumPy is not imported for this: where no module has imported it, no item is an array. NumPy's types stand before
    # float, of which numpy.float64 is a subclass; an entry that a program has set for one of them is kept.
    numpy = sys.modules.get("numpy")
    if numpy is None or _numpy_types:
        return
    _numpy_types.append(numpy)
    given = dict(default_collate_fn_map)
    default_collate_fn_map.clear()
    default_collate_fn_map.update(
        {
            Tensor: given.pop(Tensor, collate_tensor_fn),
            numpy.ndarray: given.pop(numpy.ndarray, collate_numpy_array_fn),
            (numpy.bool_, numpy.number, numpy.object_): collate_numpy_scalar_fn,
            **given,
        }
    )


def _same_mapping(original: Any, content: dict[Any, Any]) -> Any:
    """Return the content in the mapping's own type if that can be made, else as a dict."""
    try:
        if isinstance(original, MutableMapping):
            clone = copy.copy(original)  # keeps what the constructor would not, such as a default factory
            clone.update(content)
            return clone
        return type(original)(content)
    except TypeError:
        return content


def _same_sequence(original: Any, content: list[Any]) -> Any:
    """Return the content in the sequence's own type if that can be made, else as a list; tuples become lists."""
    if type(original) in (list, tuple, range):
        return content
    try:
        if isinstance(original, MutableSequence):
            clone = copy.copy(original)
            for place, value in enumerate(content):
                clone[place] = value
            return clone
        return content if isinstance(original, tuple) else type(original)(content)
    except TypeError:
        return content


def __dir__() -> list[str]:
    return sorted(__all__)
