"""Declarations of expressions, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from candelabra_clike.language.types import holds
from candelabra_clike.language.values import Value, as_value


class ExpressionError(TypeError):
    """An expression with a wrong type or an unknown function. ``location`` is the line of its declaration."""

    def __init__(self, operator: str, location: str, reason: str) -> None:
        super().__init__(f"the expression of {operator} ({location}): {reason}")
        self.operator = operator
        self.location = location


def declared(
    operator: str, function: Callable[..., Any], arguments: Mapping[str, Any] | tuple[Any, ...], *results: str
) -> Value:
    """Return the value of an operator's function. ``arguments`` has those that it may ask for, by name or in order.

    Raises :class:`ExpressionError` if the function raises ``TypeError``, or if its value has none of the types
    ``results``.
    """
    return all_declared(operator, function, arguments, [results])[0]


def all_declared(
    operator: str,
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | tuple[Any, ...],
    results: Sequence[Sequence[str]],
) -> list[Value]:
    """Return the values of a function that returns as many as ``results`` has, a value or a tuple of values.

    ``results`` are the types that each may have. A named argument may be missing if the function has a default for it.
    Raises :class:`ExpressionError` as :func:`declared` does.
    """
    try:
        if isinstance(arguments, tuple):
            made = function(*arguments)
        else:
            names = parameters_of(function)
            optional = names[len(names) - len(function.__defaults__ or ()) :]
            made = function(**{name: arguments[name] for name in names if name in arguments or name not in optional})
        every = made if isinstance(made, tuple) else (made,)
        if len(every) != len(results):
            raise TypeError(f"expected {len(results)} values, got {len(every)}")
        values = [as_value(x, types[0], "the result") for x, types in zip(every, results)]
        for value, types in zip(values, results):
            if not any(holds(type, value.type) for type in types):
                raise TypeError(f"expected a value of type {' or '.join(dict.fromkeys(types))}, got {value.type}")
    except KeyError as error:
        raise ExpressionError(operator, _location(function), f"there is no parameter {error}") from None
    except TypeError as error:
        raise ExpressionError(operator, _location(function), str(error)) from error
    return values


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a function."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _location(function: Callable[..., Any]) -> str:
    code = function.__code__
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
