"""Fronts' tensor arguments, checked before anything is asked of them: records do that by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any, TypeVar
from candelabra._codegen.arguments import kind_of

F = TypeVar("F", bound=Callable[..., Any])


def takes_tensors(name: str) -> Callable[[F], F]:
    """Refuse with TypeError what is no tensor where parameters are annotated ``Tensor``, or ``Tensor | None``."""

    def decorate(function: F) -> F:
        code, kinds = function.__code__, function.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        wanted = ("Tensor", "Tensor | None")
        tensors = [(i, p, kinds[p] != "Tensor") for i, p in enumerate(names) if kinds.get(p) in wanted]

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for position, parameter, optional in tensors:
                value = args[position] if position < len(args) else kwargs.get(parameter, checked)
                if value is not checked and not hasattr(value, "_payload") and not (optional and value is None):
                    raise TypeError(
                        f"{name}(): argument '{parameter}' (position {position + 1}) must be Tensor, not "
                        f"{kind_of(value)}"
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate
