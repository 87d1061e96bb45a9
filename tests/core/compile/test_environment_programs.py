"""Programs whose results depend on more than their arguments: attributes of classes, defaults, iterators."""

from __future__ import annotations

import collections
import functools
import itertools
import random
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import candelabra as cd
import numpy as np
import pytest

from tests.compiled_programs import Compile, Program, compare, ones


class Base:
    factor = 2.0
    log: ClassVar[list[int]] = []

    def apply(self, x: cd.Tensor) -> cd.Tensor:
        return x * self.factor


class Derived(Base):
    calls = 0


class Slots:
    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor


def class_attribute(compile: Compile) -> Iterator[Any]:
    """An attribute of a class that the user's class extends."""
    compiled = compile(Derived().apply)
    yield compiled(ones())
    Base.factor = 5.0
    yield compiled(ones())
    Base.factor = 2.0
    yield compiled(ones())


def class_attribute_of_a_global(compile: Compile) -> Iterator[Any]:
    """An attribute of a class that the function names."""
    compiled = compile(lambda x: x * Derived.factor)
    yield compiled(ones())
    Derived.factor = 7.0
    yield compiled(ones())
    del Derived.factor
    yield compiled(ones())


def method_of_a_class(compile: Compile) -> Iterator[Any]:
    """A method that is replaced in the class."""
    method, derived = Base.apply, Derived()
    compiled = compile(lambda x: derived.apply(x))
    yield compiled(ones())
    Base.apply = lambda self, x: x * 0  # type: ignore[method-assign]
    yield compiled(ones())
    Base.apply = method  # type: ignore[method-assign]
    yield compiled(ones())


def class_counter(compile: Compile) -> Iterator[Any]:
    """A class attribute that the function advances."""

    def f(x: cd.Tensor) -> cd.Tensor:
        Derived.calls += 1
        return x * Derived.calls

    Derived.calls = 0
    compiled = compile(f)
    for _ in range(4):
        yield compiled(ones())


def class_list(compile: Compile) -> Iterator[Any]:
    """A list of a class to which the function appends."""
    Base.log.clear()

    def f(x: cd.Tensor) -> cd.Tensor:
        Base.log.append(1)
        return x * len(Base.log)

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones())


def function_attribute(compile: Compile) -> Iterator[Any]:
    """An attribute of a function, of the user's decorator."""

    def scaled(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args) * call.factor  # type: ignore[attr-defined]

        call.factor = 2.0  # type: ignore[attr-defined]
        return call

    f = scaled(lambda x: x + 1)
    compiled = compile(f)
    yield compiled(ones())
    f.factor = 5.0
    yield compiled(ones())


def keyword_default(compile: Compile) -> Iterator[Any]:
    """A default of a keyword-only parameter."""

    def f(x: cd.Tensor, *, factor: float = 2.0) -> cd.Tensor:
        return x * factor

    compiled = compile(f)
    yield compiled(ones())
    f.__kwdefaults__["factor"] = 7.0
    yield compiled(ones())


def slots(compile: Compile) -> Iterator[Any]:
    """An attribute in a slot."""
    settings = Slots(1.0)
    compiled = compile(lambda x: x * settings.factor)
    yield compiled(ones())
    settings.factor = 4.0
    yield compiled(ones())


def namespaces(compile: Compile) -> Iterator[Any]:
    """An attribute of a SimpleNamespace, and one inside it."""
    settings = types.SimpleNamespace(factor=1.0, inner=types.SimpleNamespace(shift=2.0))
    compiled = compile(lambda x: x * settings.factor + settings.inner.shift)
    yield compiled(ones())
    settings.factor = 3.0
    yield compiled(ones())
    settings.inner.shift = 0.0
    yield compiled(ones())


def sets_and_deques(compile: Compile) -> Iterator[Any]:
    """The elements of a set and of a deque."""
    names, last = {1, 2}, collections.deque([1.0], maxlen=2)
    compiled = compile(lambda x: x * len(names) + sum(last))
    yield compiled(ones())
    names.add(3)
    yield compiled(ones())
    last.extend([5.0, 6.0])
    yield compiled(ones())


def full_deque(compile: Compile) -> Iterator[Any]:
    """A deque of constant length that the function advances."""
    last: collections.deque[Any] = collections.deque([ones()] * 2, maxlen=2)

    def f(x: cd.Tensor) -> Any:
        last.append(x)
        return sum(last)

    compiled = compile(f)
    for i in range(4):
        yield compiled(ones() * i)


def iterator(compile: Compile) -> Iterator[Any]:
    """An iterator over the data, which the function advances."""
    batches = iter([ones() * i for i in range(5)])
    compiled = compile(lambda: next(batches) * 2)
    for _ in range(4):
        yield compiled()


def iterator_as_an_argument(compile: Compile) -> Iterator[Any]:
    """One iterator in several calls."""
    compiled, numbers = compile(lambda it: ones() * next(it)), itertools.count()
    for _ in range(4):
        yield compiled(numbers)


def python_numbers(compile: Compile) -> Iterator[Any]:
    """Random numbers of Python's and NumPy's generators, the global ones and others."""
    for seed in (random.seed, np.random.seed):
        seed(0)
    for draw in (random.random, np.random.random_sample, np.random.default_rng(0).random, random.Random(0).random):
        compiled = compile(lambda x, draw=draw: x * float(draw()))
        for _ in range(3):
            yield compiled(ones())


PROGRAMS = [
    class_attribute, class_attribute_of_a_global, method_of_a_class, class_counter, class_list, function_attribute,
    keyword_default, slots, namespaces, sets_and_deques, full_deque, iterator, iterator_as_an_argument,
    python_numbers,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Program) -> None:
    """The compiled form has the results and the effects of the function."""
    compare(program)
