"""Keyword parameters that many fronts share, served in one place: ``out=``, and what every factory takes.

A decorated function does not declare them. ``also`` on the wrapper says them, for stubs and documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any, Final, TypeVar, cast
from candelabra._codegen.arguments import as_dtype
from candelabra._dispatch.out import store
from candelabra._dispatch.promote import title
from candelabra._layout import layout as Layout
from candelabra._layout import physical_order, strided

F = TypeVar("F", bound=Callable[..., Any])

OUT: Final = ("out: Tensor | None = None",)
LIKE: Final = ("layout: Any = None", "pin_memory: bool = False", "memory_format: Any = None")
SERVED: Final = frozenset({"out", "layout", "pin_memory", "memory_format"})


def with_out(function: F) -> F:
    """The front with ``out=``: the result is written into that tensor, as records do it."""
    return _with_out(function, False)


def with_exact_out(function: F) -> F:
    """The front with ``out=``, which must have the result's dtype."""
    return _with_out(function, True)


def _with_out(function: F, exact: bool) -> F:
    @wraps(function)
    def form(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:  # NumPy's name, as records take it too
            kwargs["dim"] = kwargs.pop("axis")
        if "out" not in kwargs:
            return function(*args, **kwargs)
        out: Any = kwargs.pop("out")
        made = function(*args, **kwargs)
        if hasattr(out, "_payload"):
            for given in args:
                check_apart(out, given)
            if exact and out.dtype is not made.dtype:
                name = function.__name__
                raise RuntimeError(
                    f"{name}(): Expected out tensor to have dtype {made.dtype}, but got {out.dtype} instead"
                )
        return store(function.__name__, made, out)

    form.also = OUT  # type: ignore[attr-defined]
    return cast("F", form)


def check_apart(out: Any, given: Any) -> None:
    """Refuse to write into the memory of an argument, or of one in a list, as far as contiguous tensors show it."""
    if isinstance(given, (tuple, list)):
        for part in given:
            check_apart(out, part)
    elif getattr(given, "_version", None) is out._version and out.is_contiguous() and given.is_contiguous():
        starts = out.storage_offset(), given.storage_offset()
        if max(starts) < min(starts[0] + out.numel(), starts[1] + given.numel()):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def factory(function: F) -> F:
    """The factory with ``out=``, whose dtype and device it takes, and ``layout``, ``pin_memory``, ``memory_format``.

    The only layout is ``strided``; pinning is a hint that has no effect. A channels-last format is kept to.
    """

    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        if not kwargs or SERVED.isdisjoint(kwargs):
            return function(*args, **kwargs)
        check_layout(function.__name__, kwargs.pop("layout", None))
        kwargs.pop("pin_memory", None)
        format, out = kwargs.pop("memory_format", None), kwargs.pop("out", None)
        if out is None:
            return in_format(function(*args, **kwargs), format)
        wanted = kwargs.setdefault("dtype", getattr(out, "dtype", None))
        if wanted is None:
            kwargs["dtype"] = out.dtype
        elif as_dtype(wanted) is not out.dtype:
            raise RuntimeError(
                f"dtype {title(as_dtype(wanted))} does not match dtype of out parameter ({title(out.dtype)})"
            )
        kwargs["device"] = kwargs.get("device") or getattr(out, "device", None)
        return store(function.__name__, function(*args, **kwargs), out)

    made.also = (*OUT, *LIKE)  # type: ignore[attr-defined]
    return cast("F", made)


def in_format(made: Any, format: Any) -> Any:
    """A new tensor, a leaf, in a memory format."""
    if physical_order(made.ndim, format) is None:
        return made
    from candelabra._operators.fronts.shaping import laid_out

    return laid_out(made.detach(), format).detach().requires_grad_(made.requires_grad)


def check_layout(name: str, layout: Any) -> None:
    """Refuse layouts other than ``strided``, and what is no layout."""
    if layout is None or layout is strided:
        return
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}(): argument 'layout' must be candelabra.layout, not {type(layout).__name__}")
    raise RuntimeError(f"{name}(): layout {layout!r} is not supported, the only one is candelabra.strided")
