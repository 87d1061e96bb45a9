"""Programs with containers and objects as arguments and results."""

from __future__ import annotations

import collections
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import candelabra as cd
import pytest

from tests.compiled_programs import Compile, Pair, Program, compare, ones


@dataclass(frozen=True, slots=True)
class Fixed:
    x: cd.Tensor
    pair: Pair


def kinds_of_attributes(compile: Compile) -> Iterator[Any]:
    """``is_leaf`` and ``grad`` of an argument."""
    compiled = compile(lambda x: (x * 2, x.is_leaf, x.grad is None))
    x = ones(requires_grad=True)
    yield compiled(x)
    x.grad = ones()
    yield compiled(x)
    yield compiled(x * 1)


def dataclasses(compile: Compile) -> Iterator[Any]:
    """Objects of dataclasses as arguments and results, nested, frozen and with slots."""

    def f(fixed: Fixed, pair: Pair) -> Fixed:
        return Fixed(fixed.x * pair.scale, Pair(pair.a + fixed.pair.a, [{"b": pair.b}], 3.0))

    compiled = compile(f)
    for i in range(4):
        yield compiled(Fixed(ones() * i, Pair(ones(), None)), Pair(ones() * i, ones(), float(i % 2)))


def changed_dataclass(compile: Compile) -> Iterator[Any]:
    """An attribute of a dataclass that the function sets."""

    def f(pair: Pair) -> cd.Tensor:
        pair.a = pair.a + pair.b
        return pair.a * 2

    compiled, pair = compile(f), Pair(ones(), ones())
    for _ in range(4):
        yield compiled(pair)
        yield pair


def changed_arguments(compile: Compile) -> Iterator[Any]:
    """Containers among the arguments that the function fills."""

    def f(x: cd.Tensor, table: dict[str, Any], log: list[Any]) -> cd.Tensor:
        table["y"] = x * 2
        log[:] = [x + 1]
        return x

    compiled = compile(f)
    for i in range(4):
        table: dict[str, Any] = {}
        log: list[Any] = []
        yield compiled(ones() * i, table, log)
        yield table, log


def functions_and_generators(compile: Compile) -> Iterator[Any]:
    """Results that are new objects at each call."""
    function = compile(lambda x: lambda y: x + y)

    def several(x: cd.Tensor) -> Iterator[cd.Tensor]:
        yield from (x * i for i in range(3))

    generator = compile(several)
    for i in range(3):
        yield function(ones() * i)(ones())
        yield list(generator(ones() * i))


def containers_from_outside(compile: Compile) -> Iterator[Any]:
    """A container that the function refers to is the result itself."""
    cache = [ones()]

    def f(x: cd.Tensor) -> Any:
        cache[0].add_(x)
        return cache

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones()) is cache
        yield cache


def one_result_twice(compile: Compile) -> Iterator[Any]:
    """The same tensor at two places of the result."""

    def f(x: cd.Tensor) -> Any:
        y = x + 1
        return y, {"y": y}

    compiled = compile(f)
    for grad in (False, True, False, True):
        first, second = compiled(ones(requires_grad=grad))
        yield first is second["y"]
        yield first


def views_of_results(compile: Compile) -> Iterator[Any]:
    """A result and a view of it: a write to one changes the other, and its derivative."""

    def f(x: cd.Tensor) -> Any:
        y = x * 2
        return y[1:], y, y.detach()

    compiled = compile(f)
    for grad in (False, True, False, True):
        x = ones(3, requires_grad=grad)
        view, y, detached = compiled(x)
        view.mul_(5)
        y.sub_(1)
        yield view._base is y
        yield view._version, detached._version
        if grad:
            y.sum().backward()
        yield view, y, detached, x


def results_in_given_tensors(compile: Compile) -> Iterator[Any]:
    """``out=`` of the shape of the result, and of another one."""
    target = cd.zeros(2)

    def f(x: cd.Tensor) -> Any:
        grown = cd.empty(0)
        cd.mul(x, 3, out=grown)
        return cd.add(x, 1, out=target) is target, grown

    compiled, same = compile(f), compile(lambda x: cd.add(x, 1, out=target))
    for i in range(3):
        yield compiled(ones() * i)
        yield list(target)
        yield same(ones() * i) is target
        yield target.clone()


def returned_arguments(compile: Compile) -> Iterator[Any]:
    """A container among the arguments that the function fills and returns is the result itself, in a container too."""

    def f(log: list[Any], table: dict[str, Any], pair: Pair, queue: collections.deque[Any]) -> Any:
        log.append(log[0] * 2)
        table["y"] = table.pop("x") + 1
        pair.a, pair.b = [pair.b], pair.a
        queue.rotate()
        return log, {"table": table, "pair": pair}, queue

    compiled = compile(f)
    for i in range(3):
        log, table, pair = [ones() * i], {"x": ones() + i}, Pair(ones(), ones() * i)
        queue = collections.deque([ones(), ones() * 2])
        found = compiled(log, table, pair, queue)
        yield found[0] is log, found[1]["table"] is table, found[1]["pair"] is pair, found[2] is queue
        yield log, table, pair, list(queue)


def one_container_twice(compile: Compile) -> Iterator[Any]:
    """Two arguments that are one list, or two equal ones."""

    def f(first: list[Any], second: list[Any]) -> Any:
        first[0] = second[0] + 1
        return first is second, second

    compiled = compile(f)
    for i in range(4):
        first = [ones() * i]
        second = first if i % 2 else [ones() * i]
        yield compiled(first, second)
        yield first


def overlapping_results(compile: Compile) -> Iterator[Any]:
    """A write to one of two results that show one tensor changes the other, and its derivative."""
    compiled = compile(lambda x: (x * 2).split(2)), compile(lambda x: ((y := x * 2)[:3], y[1:]))
    for parts in compiled:
        for _ in range(3):
            x = ones(4, requires_grad=True)
            a, b = parts(x)
            try:
                a.mul_(3)
            except RuntimeError as error:
                yield str(error)
            (a * b.sum()).sum().backward()
            yield x, a, b


class Halves(cd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: cd.Tensor) -> Any:
        y = x * 2
        return y[:1], y[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return cd.cat(gradients) * 2


def refused_writes(compile: Compile) -> Iterator[Any]:
    """Writes to views that a custom operator returns are errors."""
    compiled = compile(lambda x: Halves.apply(x))
    for _ in range(2):
        a, _ = compiled(ones(requires_grad=True))
        try:
            a.mul_(2)
        except RuntimeError as error:
            yield str(error)


def names_of_attributes(compile: Compile) -> Iterator[Any]:
    """Attributes whose names are those of globals that the function does not read."""
    compiled = compile(lambda pair: pair.a * pair.Pair if hasattr(pair, "Pair") else pair.a)
    for i in range(3):
        yield compiled(Pair(ones() * i, None))


PROGRAMS = [
    kinds_of_attributes, dataclasses, changed_dataclass, changed_arguments, functions_and_generators,
    containers_from_outside, one_result_twice, views_of_results, results_in_given_tensors, returned_arguments,
    one_container_twice, overlapping_results, refused_writes, names_of_attributes,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Program) -> None:
    """The compiled form has the results and the effects of the function."""
    compare(program)


def test_dataclasses_are_one_kind() -> None:
    """New objects of a dataclass, whose numbers are equal, are calls of one kind."""
    compiled = cd.compile(lambda pair: Pair(pair.a * pair.scale, pair.b), fullgraph=True)
    for i in range(3):
        pair = compiled(Pair(ones() * i, "b"))
        assert (type(pair), pair.a.tolist(), pair.b, pair.scale) == (Pair, [2 * i] * 2, "b", 2.0)
    assert len(compiled.programs) == 1


@cd.compile
def named(x: cd.Tensor) -> cd.Tensor:
    """Return the double of a tensor."""
    return x * 2


def test_copies() -> None:
    """Compiled functions can be copied: by name, as pickled ones, or with the function."""
    assert named(ones()).tolist() == [2, 2]
    assert copy.deepcopy(named) is named
    assert named.__reduce__() == "named"
    partial = cd.compile(functools.partial(cd.mul, 3.0), fullgraph=True)
    copied = copy.deepcopy(partial)
    assert copied is not partial
    assert copied(ones()).tolist() == [3, 3]
    assert copied.fullgraph
