"""PyTorch's functions over lists of tensors, ``_foreach_add_`` and similar, which optimizers of users call.

``_foreach_<method>(tensors, …)`` calls a method of each tensor. An argument that is a list or a tuple has one value for
each tensor; any other argument is passed to all. The functions are made from the methods, so each method has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any, Final
from candelabra._tensor import Tensor

PREFIX: Final = "_foreach_"
BOUNDS: Final = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""The methods for a bound that is a number: the named ones take tensors only."""
FACTORS: Final = ("addcdiv", "addcmul")
"""The methods whose last argument, a factor, is positional here and a keyword of the method."""


def foreach(name: str) -> Callable[..., Any] | None:
    """Return the function of this name, or None if tensors have no such method."""
    method = name.removeprefix(PREFIX)
    if not name.startswith(PREFIX) or not callable(getattr(Tensor, method, None)):
        return None

    def function(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if method == "pow" and not isinstance(tensors, (list, tuple)):  # one base, several exponents
            (exponents,) = args
            return tuple(exponent.__rpow__(tensors) for exponent in exponents)
        rows = _rows(name, tensors, args)
        results = [_called(method, t, rest, kwargs) for t, *rest in rows]
        return tensors if method.endswith("_") else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "candelabra"
    function.__doc__ = f"Call ``Tensor.{method}`` for each of ``tensors``; lists have one argument for each tensor."
    return function


def _rows(name: str, tensors: Any, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return a tensor and its arguments for each tensor."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {_kind(tensors)}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    count = len(tensors)
    columns: list[Sequence[Any]] = [tensors]
    for value in args:
        if isinstance(value, (list, tuple)):
            if len(value) != count:
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
            columns.append(value)
        elif isinstance(value, Tensor) and value.ndim == 1 and name.strip("_").endswith(FACTORS):
            columns.append(value.tolist())  # factors as one tensor
        else:
            columns.append((value,) * count)
    return list(zip(*columns, strict=True))


def _called(method: str, tensor: Tensor, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    plain = method.removesuffix("_")
    if plain in FACTORS and len(rest) == 3:
        return getattr(tensor, method)(*rest[:2], value=rest[2], **kwargs)
    if plain in BOUNDS and not isinstance(rest[0], Tensor):
        return getattr(tensor, BOUNDS[plain] + method[len(plain) :])(*rest, **kwargs)
    return getattr(tensor, method)(*rest, **kwargs)


def _kind(value: object) -> str:
    return type(value).__name__
