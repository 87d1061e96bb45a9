"""Programs as users write them: the compiled form does what the function does, on every call."""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import random
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import candelabra as cd
import numpy as np
import pytest

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


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


@dataclass
class Pair:
    a: Any
    b: Any
    scale: float = 2.0


@dataclass(frozen=True, slots=True)
class Fixed:
    x: cd.Tensor
    pair: Pair


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


def ones(*shape: int, requires_grad: bool = False) -> cd.Tensor:
    """Return ones, two of them by default."""
    return cd.ones(*(shape or (2,)), requires_grad=requires_grad)


# -- what a call depends on -------------------------------------------------------------------------------------------
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


def kinds_of_attributes(compile: Compile) -> Iterator[Any]:
    """``is_leaf`` and ``grad`` of an argument."""
    compiled = compile(lambda x: (x * 2, x.is_leaf, x.grad is None))
    x = ones(requires_grad=True)
    yield compiled(x)
    x.grad = ones()
    yield compiled(x)
    yield compiled(x * 1)


# -- results ----------------------------------------------------------------------------------------------------------
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


def view_without_gradient(compile: Compile) -> Iterator[Any]:
    """A view of a result that is made without recording."""

    def f(x: cd.Tensor) -> Any:
        y = x * 2
        with cd.no_grad():
            return y, y[0]

    compiled = compile(f)
    for _ in range(3):
        yield compiled(ones(requires_grad=True))


# -- modes, hooks, writes ---------------------------------------------------------------------------------------------
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


PROGRAMS = [
    class_attribute, class_attribute_of_a_global, method_of_a_class, class_counter, class_list, function_attribute,
    keyword_default, slots, namespaces, sets_and_deques, full_deque, iterator, iterator_as_an_argument, python_numbers,
    kinds_of_attributes, dataclasses, changed_dataclass, changed_arguments, functions_and_generators,
    containers_from_outside, one_result_twice, views_of_results, view_without_gradient, grad_mode_that_stays,
    hooks_of_results, failing_backward, parameter_that_is_written, results_in_given_tensors,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Callable[[Compile], Iterator[Any]]) -> None:
    """The compiled form has the results and the effects of the function."""
    eager = [observed(value) for value in program(lambda function: function)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
        assert [observed(value) for value in program(cd.compile)] == eager


def test_dataclasses_are_one_kind() -> None:
    """New objects of a dataclass, whose numbers are equal, are calls of one kind."""
    compiled = cd.compile(lambda pair: Pair(pair.a * pair.scale, pair.b), fullgraph=True)
    for i in range(3):
        pair = compiled(Pair(ones() * i, "b"))
        assert (type(pair), pair.a.tolist(), pair.b, pair.scale) == (Pair, [2 * i] * 2, "b", 2.0)
    assert len(compiled.programs) == 1


def breaking(function: Callable[..., Any], *args: Any) -> str:
    """Return the error of a function that is no graph."""
    with pytest.raises(RuntimeError, match="fullgraph=True") as caught:
        cd.compile(function, fullgraph=True)(*args)
    return str(caught.value)


def test_breaks_are_named() -> None:
    """``fullgraph=True`` names what a graph cannot repeat."""
    numbers = itertools.count()
    assert "depends on 'numbers' of <lambda>, an iterator, whose position no guard sees" in breaking(
        lambda: ones() * next(numbers)
    )
    draw = random.random
    assert "draws random numbers from a generator of Python or NumPy" in breaking(lambda: ones() * draw())
    assert "returns a function, which each call creates anew" in breaking(lambda x: lambda: x, ones())
    assert "a hook runs in the backward pass" in breaking(next_hooks, ones(requires_grad=True))
    assert "the backward pass raises VersionMismatch" in breaking(
        lambda x: x.exp().mul_(2) * 1, ones(requires_grad=True)
    )
    with cd.enable_grad():
        assert "changes the grad mode" in breaking(lambda: cd.set_grad_enabled(False))
    cd.set_grad_enabled(True)


def next_hooks(x: cd.Tensor) -> cd.Tensor:
    """Return the double of a tensor, which has a hook."""
    y = x * 2
    y.register_hook(lambda g: g * 2)
    return y


def test_overlapping_results_refuse_writes() -> None:
    """Two parts of a tensor inside share memory; a write whose derivative would be wrong is an error."""

    def f(x: cd.Tensor) -> Any:
        y = x * 2
        return y[:2], y[1:]

    compiled = cd.compile(f, fullgraph=True)
    for _ in range(2):
        a, b = compiled(ones(3, requires_grad=True))
    for part in (a, b):
        with pytest.raises(RuntimeError, match="shares its memory with another result cannot be modified inplace"):
            part.mul_(2)
    (a.clone().mul_(2) * b).sum().backward()


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
