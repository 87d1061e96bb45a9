"""Keyword parameters that many fronts share, served in one place: ``out=``, and what every factory takes.

A decorated function does not declare them. ``also`` on the wrapper says them, for stubs and documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any, Final, TypeVar, cast
from candelabra.dispatch.out import store

F = TypeVar("F", bound=Callable[..., Any])

OUT: Final = ("out: Tensor | None = None",)
LIKE: Final = ("layout: Any = None", "pin_memory: bool = False", "memory_format: Any = None")
SERVED: Final = frozenset({"out", "layout", "pin_memory", "memory_format"})


def with_out(function: F) -> F:
    """The front with ``out=``: the result is written into that tensor, as records do it."""

    @wraps(function)
    def form(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        return store(function.__name__, function(*args, **kwargs), out)

    form.also = OUT  # type: ignore[attr-defined]
    return cast("F", form)


def factory(function: F) -> F:
    """The factory with ``out=``, whose dtype and device it takes, and ``layout``, ``pin_memory``, ``memory_format``.

    The only layout is ``strided``; pinning is a hint that has no effect, and so is the memory format of what is filled.
    """

    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        if not kwargs or SERVED.isdisjoint(kwargs):
            return function(*args, **kwargs)
        check_layout(function.__name__, kwargs.pop("layout", None))
        kwargs.pop("pin_memory", None)
        kwargs.pop("memory_format", None)
        out = kwargs.pop("out", None)
        if out is None:
            return function(*args, **kwargs)
        wanted = kwargs.setdefault("dtype", getattr(out, "dtype", None))
        if wanted is None:
            kwargs["dtype"] = out.dtype
        elif wanted is not out.dtype:
            raise RuntimeError(
                f"{function.__name__}(): dtype {wanted} does not match dtype of out parameter ({out.dtype})"
            )
        kwargs["device"] = kwargs.get("device") or getattr(out, "device", None)
        return store(function.__name__, function(*args, **kwargs), out)

    made.also = (*OUT, *LIKE)  # type: ignore[attr-defined]
    return cast("F", made)


def check_layout(name: str, layout: Any) -> None:
    """Refuse layouts other than ``strided``."""
    from candelabra.layout import strided

    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name}(): layout {layout!r} is not supported, the only one is candelabra.strided")
