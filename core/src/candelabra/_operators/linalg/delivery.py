"""The ``out=`` forms of functions that are computed from several operators, or return several tensors."""

from __future__ import annotations

from candelabra._annotations import Any, TypeVar
from candelabra._dispatch.out import write_out

T = TypeVar("T")


class _Computed:
    """What :func:`candelabra._dispatch.out.write_out` asks of an operator, of a value that is there already."""

    def __init__(self, name: str) -> None:
        self.name = name

    def function(self, value: Any) -> Any:
        return value


def delivered(name: str, value: T, out: Any) -> T:
    """``value``, written into ``out`` where one was given: a tensor, or for a named tuple a tuple of tensors."""
    if out is None:
        return value
    operator: Any = _Computed(name)
    if not isinstance(value, tuple):
        return write_out(operator, out, (value,), {})
    if not isinstance(out, (tuple, list)) or len(out) != len(value):
        raise TypeError(f"{name}(): argument 'out' must be tuple of {len(value)} Tensors, not {type(out).__name__}")
    written = [write_out(operator, o, (v,), {}) for o, v in zip(out, value, strict=True)]
    return type(value)(*written)
