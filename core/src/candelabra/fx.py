"""PyTorch's graphs of Python functions. ``wrap`` returns its argument; tracing is not supported, and raises."""

from __future__ import annotations

from candelabra._absent import missing
from candelabra._annotations import Any, Final

_REASON: Final = (
    "candelabra does not trace Python functions yet; candelabra.autograd.make_dot draws the graph of a call"
)
_NAMES: Final = "Graph GraphModule Interpreter Node Proxy Tracer Transformer replace_pattern symbolic_trace"


def wrap(fn_or_name: Any) -> Any:
    """Return the function, or the name: in PyTorch, keep a function whole while tracing."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = missing("fx", name, _REASON)
    return found


__all__ = ["wrap", *_NAMES.split()]


def __dir__() -> list[str]:
    return sorted(__all__)
