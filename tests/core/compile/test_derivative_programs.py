"""Programs that use autograd around and inside a compiled function."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest

from tests.compiled_programs import Compile, Program, breaking, compare, ones


def view_without_gradient(compile: Compile) -> Iterator[Any]:
    """A view of a result that is made without recording."""

    def f(x: cd.Tensor) -> Any:
        y = x * 2
        with cd.no_grad():
            return y, y[0]

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones(requires_grad=True))


def grad_mode_that_stays(compile: Compile) -> Iterator[Any]:
    """The grad mode that a function leaves is that of the code after it."""

    def f(x: cd.Tensor) -> cd.Tensor:
        cd.set_grad_enabled(False)
        return x * 2

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones(requires_grad=True))
        yield cd.is_grad_enabled()
        cd.set_grad_enabled(True)


def hooks_of_results(compile: Compile) -> Iterator[Any]:
    """A hook on a tensor inside runs once for each backward pass, and kept gradients are filled."""
    seen: list[Any] = []
    kept: dict[str, cd.Tensor] = {}

    def f(x: cd.Tensor) -> cd.Tensor:
        kept["y"] = y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: seen.append(g.tolist()))
        return (y * y).sum()

    compiled = compile(f)
    for _ in range(3):
        x = ones(requires_grad=True)
        compiled(x).backward()
        yield x, list(seen)
        assert kept["y"].grad is not None
        yield kept["y"].grad


def failing_backward(compile: Compile) -> Iterator[Any]:
    """A function whose derivative cannot be computed gives its result all the same."""

    def f(x: cd.Tensor) -> cd.Tensor:
        y = x.exp()
        y.view(-1).mul_(2)
        return y

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones(requires_grad=True))


def parameter_that_is_written(compile: Compile) -> Iterator[Any]:
    """A leaf that is written without recording and then used."""
    w = ones(requires_grad=True)

    def f(x: cd.Tensor) -> cd.Tensor:
        with cd.no_grad():
            w.sub_(0.5 * x)
        return w * x

    compiled = compile(f)
    for _ in range(3):
        compiled(ones()).sum().backward()
        yield w, w._version


def leaves_inside(compile: Compile) -> Iterator[Any]:
    """Leaves that the function creates, as gradients with respect to an input need them."""

    def gradient(x: cd.Tensor) -> Any:
        w = cd.ones(2, requires_grad=True)
        w.register_hook(lambda g: g * 3)
        (w * w * x).sum().backward()
        return w.grad

    def returned(x: cd.Tensor) -> Any:
        w = (x * 2).requires_grad_()
        loss = (w * w).sum()
        loss.backward()
        return w, w.grad, loss

    def detached(x: cd.Tensor) -> Any:
        y = x.detach().requires_grad_()
        (y * y * y).sum().backward()
        return y

    def attack(x: cd.Tensor) -> cd.Tensor:
        delta = cd.zeros_like(x, requires_grad=True)
        for _ in range(3):
            ((x + delta) ** 2).sum().backward()
            with cd.no_grad():
                delta -= 0.25 * delta.grad  # type: ignore[operator]  # backward() has set it
            delta.grad = None
        return delta.detach()

    for function in (gradient, returned, detached, attack):
        compiled = compile(function)
        for i in range(3):
            yield compiled(ones() * (i + 1))
    [w, g, loss] = compile(returned)(ones())
    yield w.grad is g, w.is_leaf
    try:
        loss.backward()
    except cd.errors.GraphFreed as error:
        yield str(error)


def passes_of_some_results(compile: Compile) -> Iterator[Any]:
    """Backward passes of one result after another free, reach and check what those of eager calls do."""
    functions = [
        lambda x, w: (x * w, (x * 3).sin()),
        lambda x, w: ((y := x * w) * 2, y.sin()),
        lambda x, w: (x + w, x.sum()),
    ]
    for function in functions:
        compiled = compile(function)
        for _ in range(2):
            x, w = ones(requires_grad=True), ones(requires_grad=True)
            a, b = compiled(x, w)
            for result in (b, a, b):
                try:
                    result.sum().backward()
                except cd.errors.GraphFreed:
                    yield "freed"
                yield x, w
    compiled = compile(functions[0])
    for _ in range(2):
        x, w = ones(requires_grad=True), ones(requires_grad=True)
        a, b = compiled(x, w)
        with cd.no_grad():
            w.add_(1)
        b.sum().backward()  # does not read w
        try:
            a.sum().backward()
        except cd.errors.VersionMismatch:
            yield "version"
        yield x, w


def zero_grad_alone(compile: Compile) -> Iterator[Any]:
    """An optimizer's gradients are removed, or set to zero, at every call."""
    w = ones(requires_grad=True)
    optimizer = cd.optim.SGD([w])
    for to_none in (True, False):
        compiled = compile(functools.partial(optimizer.zero_grad, to_none))
        for _ in range(3):
            (w * 2).sum().backward()
            compiled()
            yield w


PROGRAMS = [
    view_without_gradient, grad_mode_that_stays, hooks_of_results, failing_backward, parameter_that_is_written,
    leaves_inside, passes_of_some_results, zero_grad_alone,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Program) -> None:
    """The compiled form has the results and the effects of the function."""
    compare(program)


def test_a_leaf_and_what_depends_on_it() -> None:
    """A function cannot return a leaf that it creates, with a result whose backward pass is to come."""

    def f(x: cd.Tensor) -> Any:
        w = x.clone().requires_grad_()
        return w, (w * x).sum()

    assert "the function returns a leaf that it creates, and a tensor that depends on it" in breaking(f, ones())


def test_leaves_inside_are_one_graph() -> None:
    """A backward pass into leaves that the function creates is part of its graph."""

    def f(x: cd.Tensor) -> Any:
        w = cd.ones(2, requires_grad=True)
        (w * x).sum().backward()
        return w.grad

    compiled = cd.compile(f, fullgraph=True)
    for i in range(3):
        assert compiled(ones() * i).tolist() == [i, i]
    assert len(compiled.programs) == 1
