"""NumPy's argument names, ``axis`` and ``keepdims``, for fronts: records accept them by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def numpy_names(function: F) -> F:
    """Accept ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``, by keyword."""

    @wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    return named  # type: ignore[return-value]
