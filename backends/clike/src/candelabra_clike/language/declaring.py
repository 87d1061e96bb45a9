"""Declarations of expressions, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    operator: str, function: Callable[..., Any], arguments: Mapping[str, Any] | tuple[Any, ...], result: str
) -> Value:
    """Return the value of an operator's function. ``arguments`` has those that it may ask for, by name or in order.

    Raises :class:`ExpressionError` if the function raises ``TypeError``, or if its value does not have type ``result``.
    """
    code = function.__code__
    try:
        if isinstance(arguments, tuple):
            made = function(*arguments)
        else:
            made = function(*[arguments[name] for name in code.co_varnames[: code.co_argcount]])
        value = as_value(made, result, "the result")
        if not holds(result, value.type):
            raise TypeError(f"expected a value of type {result}, got {value.type}")
    except KeyError as error:
        raise ExpressionError(operator, _location(function), f"there is no parameter {error}") from None
    except TypeError as error:
        raise ExpressionError(operator, _location(function), str(error)) from error
    return value


def _location(function: Callable[..., Any]) -> str:
    code = function.__code__
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
