"""Divide tensors among devices, and join them again. Both are differentiable."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.nn.parallel._devices import resolved

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return one part of the inputs per device, with tensors divided along ``dim``.

    Tensors inside tuples, lists and dictionaries are divided too; other objects are shared. There are fewer parts than
    devices if a tensor is too small.
    """
    devices = [resolved(target) for target in target_gpus]

    def divided(value: Any) -> Any:
        if isinstance(value, Tensor):
            chunks = cd.chunk(value, len(devices), dim)
            return tuple(chunk.to(where) for chunk, where in zip(chunks, devices, strict=False))
        if not isinstance(value, (tuple, list, dict)) or len(value) == 0:
            return [value for _ in devices]
        items = value.items() if isinstance(value, dict) else value
        rows = zip(*map(divided, items), strict=False)
        if _is_named(value):
            return [type(value)(*part) for part in rows]
        return list(rows) if isinstance(value, tuple) else [type(value)(part) for part in rows]

    return divided(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Return the positional and the keyword arguments for each device."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    return tuple(args + [()] * (count - len(args))), tuple(named + [{} for _ in range(count - len(named))])


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Return the outputs of several devices as one, on a device: tensors are concatenated along ``dim``.

    Tensors inside tuples, lists and dictionaries are joined too. Scalars become a vector, with a warning. Raises
    ``ValueError`` for dictionaries of different lengths.
    """
    where = resolved(target_device)

    def joined(values: Sequence[Any]) -> Any:
        first = values[0]
        if isinstance(first, Tensor):
            return _concatenated([value.to(where) for value in values], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(value) != len(first) for value in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, joined([value[key] for value in values])) for key in first)
        members = map(joined, zip(*values, strict=True))
        return type(first)(*members) if _is_named(first) else type(first)(members)

    return joined(outputs)


def _concatenated(tensors: list[Any], dim: int) -> Any:
    if dim == 0 and all(tensor.dim() == 0 for tensor in tensors):
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
            "return a vector.",
            stacklevel=2,
        )
        tensors = [tensor.unsqueeze(0) for tensor in tensors]
    return cd.cat(tensors, dim)


def __dir__() -> list[str]:
    return sorted(__all__)
