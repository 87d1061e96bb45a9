"""Fronts' tensor arguments, checked before anything is asked of them: records do that by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from candelabra._annotations import Any, TypeVar
from candelabra.operator.arguments import kind_of

F = TypeVar("F", bound=Callable[..., Any])


def takes_tensors(name: str) -> Callable[[F], F]:
    """Refuse with TypeError what is no tensor where the leading parameters are annotated ``Tensor``."""

    def decorate(function: F) -> F:
        tensors = [p for p, annotation in function.__annotations__.items() if annotation == "Tensor" and p != "return"]

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for position, parameter in enumerate(tensors):
                value = args[position] if position < len(args) else kwargs.get(parameter, checked)
                if value is not checked and not hasattr(value, "_payload"):
                    raise TypeError(
                        f"{name}(): argument '{parameter}' (position {position + 1}) must be Tensor, not "
                        f"{kind_of(value)}"
                    )
            return function(*args, **kwargs)

        return checked  # type: ignore[return-value]

    return decorate
