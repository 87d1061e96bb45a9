"""Collation of items into a batch: tensors are stacked, numbers become tensors, containers are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from candelabra import Tensor, stack
from candelabra.dtypes import float64
from candelabra.library import open_device, public_function

__all__ = ["default_collate", "default_convert"]


def default_convert(data: Any) -> Any:
    """Convert the arrays in a nested container to tensors, and keep everything else."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if hasattr(data, "__array__"):
        return _from_array(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, Sequence):
        return [default_convert(value) for value in data]
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate items: tensors, arrays and numbers are stacked along a new first dim, containers elementwise.

    Python floats become float64 if the device has it, ints int64; strings stay a list. Raises ``RuntimeError`` if
    sequences differ in length, and ``TypeError`` for items of other types.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if hasattr(first, "__array__") and hasattr(first, "shape"):
        return stack([_from_array(item) for item in batch], 0)
    if isinstance(first, float):
        return public_function("tensor")(list(batch), dtype=float64 if float64 in open_device().keys else None)
    if isinstance(first, (int, complex)):
        return public_function("tensor")(list(batch))
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, Sequence):
        return _columns(first, batch)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def _columns(first: Any, batch: Sequence[Any]) -> Any:
    if any(len(item) != len(first) for item in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [default_collate(column) for column in zip(*batch)]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*columns)
    return columns


def _from_array(array: Any) -> Any:
    """Return a tensor over an array's memory, or of a scalar of an array library."""
    if getattr(array, "dtype", None) is not None and array.dtype.kind in "SUOV":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found an array of "
            f"{array.dtype}"
        )
    return public_function("asarray")(array)


def _like(original: Any, content: dict[Any, Any]) -> Any:
    """Return the content in the mapping's own type if possible, else as a dict."""
    make: Callable[[Any], Any] = type(original)
    try:
        return make(content)
    except TypeError:
        return content


def __dir__() -> list[str]:
    return sorted(__all__)
