"""A batch out of items: tensors stacked, numbers made tensors, containers kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from candelabra import Tensor, stack
from candelabra.dtypes import float64
from candelabra.library import open_device, public_function

__all__ = ["default_collate", "default_convert"]


def default_convert(data: Any) -> Any:
    """Arrays in a nested container as tensors; everything else as it is."""
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
    """The items of a batch as one: a new first dim for tensors, arrays and numbers; containers element by element.

    Python floats become float64 (where the device holds it), ints int64; strings stay a list. Raises ``RuntimeError``
    when sequences differ in length, and ``TypeError`` for what cannot be put together.
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
    """A tensor over an array's memory, or of a scalar of an array library."""
    if getattr(array, "dtype", None) is not None and array.dtype.kind in "SUOV":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found an array of "
            f"{array.dtype}"
        )
    return public_function("asarray")(array)


def _like(original: Any, content: dict[Any, Any]) -> Any:
    """The content in the mapping's own type, where that can be made."""
    make: Callable[[Any], Any] = type(original)
    try:
        return make(content)
    except TypeError:
        return content


def __dir__() -> list[str]:
    return sorted(__all__)
