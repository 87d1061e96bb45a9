"""The ``out=`` forms of functions that are computed from several operators, or return several tensors."""

from __future__ import annotations

from candelabra._annotations import Any, TypeVar
from candelabra._dispatch.out import store

T = TypeVar("T")


def delivered(name: str, value: T, out: Any) -> T:
    """``value``, written into ``out`` where one was given: a tensor, or for a named tuple a tuple of tensors."""
    if out is None:
        return value
    if not isinstance(value, tuple):
        stored: T = store(name, value, out)
        return stored
    if not isinstance(out, (tuple, list)) or len(out) != len(value):
        raise TypeError(f"{name}(): argument 'out' must be tuple of {len(value)} Tensors, not {type(out).__name__}")
    written = [store(name, v, o) for o, v in zip(out, value, strict=True)]
    return type(value)(*written)
