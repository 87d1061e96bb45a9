"""What a graph cannot repeat: such functions run eagerly with one warning, or raise with fullgraph=True."""

from __future__ import annotations

import itertools
import random
import weakref
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

from tests.compiled_programs import breaking, ones


def branch(x: cd.Tensor) -> cd.Tensor:
    """Read a value."""
    return x * 2 if x.sum() > 0 else x - 1


BREAKS: dict[str, tuple[Callable[[cd.Tensor], Any], str]] = {
    "bool": (branch, "the value of a tensor is read"),
    "item": (lambda x: x * x[0].item(), "the value of a tensor is read"),
    "float": (lambda x: x * float(x[0]), "the value of a tensor is read"),
    "tolist": (lambda x: x.tolist(), "the elements of a tensor are read"),
    "repr": (lambda x: repr(x), "the elements of a tensor are read"),
    "numpy": (lambda x: cd.from_numpy(x.numpy() * 2), "the memory of a tensor is shared with NumPy"),
    "dlpack": (lambda x: cd.from_dlpack(x), "exported by DLPack"),
    "nonzero": (lambda x: x.nonzero(), "the shape of a result of nonzero depends on values"),
    "other memory": (lambda x: setattr(x, "data", x * 2), "a tensor gets other memory"),
    "requires_grad": (lambda x: x.requires_grad_().sum(), "its requires_grad changes"),
    "shape in place": (lambda x: x.unsqueeze_(0), "gets other memory or another shape"),
    "subclass": (lambda x: cd.nn.Parameter(x * 2), "returns a Parameter"),
    "seed": (lambda x: (cd.manual_seed(3), x + cd.rand(2))[1], "a generator is created, seeded, read or set"),
    "generator": (lambda x: x + cd.rand(2, generator=cd.Generator()), "a generator is created, seeded, read or set"),
    "device": (lambda x: x.to("meta"), "moves to another device"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_break(name: str) -> None:
    """A break is a warning that names the line, and an error of a full graph; results are right."""
    function, reason = BREAKS[name]
    compiled = cd.compile(function)
    with pytest.warns(UserWarning, match=rf"runs in segments: .*{reason}.*test_breaks\.py:\d+"):
        first = compiled(cd.tensor([1.0, 2.0]))
    for found in (first, compiled(cd.tensor([1.0, 2.0]))):
        assert repr(found) == repr(function(cd.tensor([1.0, 2.0])))
    with pytest.raises(RuntimeError, match=reason):
        cd.compile(function, fullgraph=True)(cd.tensor([1.0, 2.0]))


def test_branches_on_values() -> None:
    """A function that branches on values takes the right branch at each call."""
    compiled = cd.compile(branch)
    with pytest.warns(UserWarning, match="runs in segments"):
        assert compiled(cd.ones(1)).item() == 2
    assert compiled(-cd.ones(1)).item() == -2


def test_known_shapes_are_no_break() -> None:
    """Shapes, dtypes and devices may be read."""
    compiled = cd.compile(lambda x: x.view(x.size(0) // 2, -1) if x.is_floating_point() else x, fullgraph=True)
    assert [compiled(cd.ones(4)).shape for _ in range(2)] == [(2, 2)] * 2


def test_exception() -> None:
    """An exception of the function is raised at every call, and nothing is compiled."""

    def f(x: cd.Tensor) -> cd.Tensor:
        raise KeyError("missing")

    compiled = cd.compile(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="missing"):
            compiled(cd.ones(1))
    assert not cd.compiler.is_compiling()


def test_exception_of_a_kernel() -> None:
    """An error that depends on values is the eager one, in a compiled call too."""
    compiled = cd.compile(lambda table, index: table[index] * 2, fullgraph=True)
    table = cd.ones(3)
    assert compiled(table, cd.tensor([0, 2])).tolist() == [2, 2]
    for _ in range(2):
        with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
            compiled(table, cd.tensor([0, 7]))


def test_hooks() -> None:
    """A hook of a leaf is part of the graph if it is made of operators; one that reads values runs at every call."""
    seen = []
    w = cd.ones(2, requires_grad=True)
    handle = w.register_hook(lambda g: seen.append(g.tolist()))

    def f(x: cd.Tensor) -> None:
        (w * x).sum().backward()

    compiled = cd.compile(f)
    with pytest.warns(UserWarning, match="the elements of a tensor are read"):
        compiled(cd.ones(2))
    compiled(cd.ones(2))
    assert seen == [[1, 1]] * 2
    handle.remove()
    w.register_hook(lambda g: g * 3)
    whole = cd.compile(f, fullgraph=True)
    for _ in range(3):
        w.grad = None
        whole(cd.ones(2))
        assert w.grad is not None
        assert w.grad.tolist() == [3, 3]
    assert len(whole.programs) == 1


def test_backward_into_an_outer_graph() -> None:
    """A backward pass of a graph that no tensor leads to which the function refers to is eager."""
    leaf = cd.ones(2, requires_grad=True)
    losses = [leaf.sum() * 2, leaf.sum() * 2]
    hidden = weakref.WeakSet(losses)  # no guard sees what is in it
    compiled = cd.compile(lambda: hidden.pop().backward())
    with pytest.warns(UserWarning, match="a backward pass leads to a tensor that the function does not refer to"):
        compiled()
    compiled()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [4, 4]


def test_disabled_function() -> None:
    """A function under ``compiler.disable`` runs as Python at every call, between two graphs."""
    seen = []
    total = cd.zeros(1)

    @cd.compiler.disable
    def note() -> None:
        seen.append(total.item())

    def f(x: cd.Tensor) -> cd.Tensor:
        total.add_(x)
        note()
        return total * 2

    compiled = cd.compile(f, fullgraph=True)
    assert [compiled(cd.ones(1)).item() for _ in range(3)] == [2, 4, 6]
    assert seen == [1, 2, 3]
    assert len(compiled.programs) == 1
    note()
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("call", "reason"),
    [(lambda f, x: f(x), "takes a tensor"), (lambda f, x: x * f(2.0), "returns a value")],
)
def test_disabled_function_of_tensors(call: Any, reason: str) -> None:
    """A disabled function that takes tensors or returns something makes its caller run eagerly."""
    disabled = cd.compiler.disable(lambda value: value)
    compiled = cd.compile(lambda x: call(disabled, x))
    with pytest.warns(UserWarning, match=f"a function outside of the graph {reason}"):
        compiled(cd.ones(2))
    assert cd.equal(compiled(cd.ones(2)), compiled.function(cd.ones(2)))


def test_checks_of_values(rng: Any) -> None:
    """A check of values that raises an error is a node of the graph, and raises it at each run that fails."""

    def f(x: cd.Tensor) -> cd.Tensor:
        return cd.linalg.inv(x) @ x

    compiled = cd.compile(f, fullgraph=True)
    x = cd.tensor(rng.random((3, 3))) + cd.eye(3) * 3
    for _ in range(2):
        assert cd.equal(compiled(x), f(x))
    assert len(compiled.programs) == 1
    with pytest.raises(cd.linalg.LinAlgError, match="singular"):
        compiled(cd.zeros(3, 3, dtype=cd.float64))


def test_views_in_another_dtype(rng: Any) -> None:
    """Views as complex numbers, or in another dtype, are views of a graph."""
    compiled = cd.compile(lambda x: (cd.view_as_complex(x) * 2, x.view(cd.int32) + 1), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((3, 2)).astype("float32"))
        assert all(cd.equal(a, b) for a, b in zip(compiled(x), compiled.function(x), strict=True))


def test_error_of_a_call_that_has_written() -> None:
    """An error of a compiled call that has written a tensor from outside is raised as it is."""

    def f(x: cd.Tensor, index: cd.Tensor) -> cd.Tensor:
        x.add_(1)
        return x[index]

    compiled = cd.compile(f, fullgraph=True)
    x = cd.zeros(2)
    for _ in range(2):
        compiled(x, cd.tensor([1]))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x, cd.tensor([5]))
    assert x.tolist() == [3, 3]


def test_too_many_guards() -> None:
    """A function that depends on too many values runs eagerly."""
    table = [[float(i + j) for i in range(200)] for j in range(120)]
    compiled = cd.compile(lambda x: x * table[3][4])
    with pytest.warns(UserWarning, match="runs in segments: it depends on more than 20000 values"):
        assert compiled(cd.ones(1)).item() == 7


def next_hooks(x: cd.Tensor) -> cd.Tensor:
    """Return the double of a tensor, which has a hook."""
    y = x * 2
    y.register_hook(lambda g: g * 2)
    return y


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
