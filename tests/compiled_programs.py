"""Programs as users write them, run eagerly and compiled: a program yields what is compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import candelabra as cd
import pytest

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Program = Callable[[Compile], Iterator[Any]]


def observed(value: Any) -> Any:
    """Return a value with Python's numbers in place of tensors: dtype, requires_grad, elements, gradient."""
    if isinstance(value, cd.Tensor):
        gradient = None if not value.is_leaf or value.grad is None else value.grad.tolist()
        return str(value.dtype), value.requires_grad, value.tolist(), gradient
    if isinstance(value, dict):
        return {key: observed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [observed(item) for item in value]
    if is_dataclass(value):
        return type(value).__name__, {field.name: observed(getattr(value, field.name)) for field in fields(value)}
    return value


def compare(program: Program) -> None:
    """Compare the results and the effects of the compiled form with those of the function."""
    eager = [observed(value) for value in program(lambda function: function)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
        assert [observed(value) for value in program(cd.compile)] == eager


def breaking(function: Callable[..., Any], *args: Any) -> str:
    """Return the error of a function that is no graph."""
    with pytest.raises(RuntimeError, match="fullgraph=True") as caught:
        cd.compile(function, fullgraph=True)(*args)
    return str(caught.value)


def ones(*shape: int, requires_grad: bool = False) -> cd.Tensor:
    """Return ones, two of them by default."""
    return cd.ones(*(shape or (2,)), requires_grad=requires_grad)


@dataclass
class Pair:
    a: Any
    b: Any
    scale: float = 2.0
