"""Results and effects of compiled functions are those of the function itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import numpy.random  # loads the generator behind numpy.random.rand()
import pytest
from candelabra.utils._pytree import tree_flatten, tree_map


def copies(value: Any) -> Any:
    """Return arguments with copies of the tensors, leaves that require grad where the originals do."""
    return tree_map(
        lambda t: t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, cd.Tensor) else t, value
    )


def check(function: Callable[..., Any], *args: Any, calls: int = 3, **kwargs: Any) -> Any:
    """Call a function and its compiled form with equal arguments; compare results, arguments and random states."""
    compiled = cd.compile(function, fullgraph=True)
    for _ in range(calls):
        a, b = copies((args, kwargs)), copies((args, kwargs))
        state = cd.get_rng_state()
        expected = function(*a[0], **a[1])
        after = cd.get_rng_state()
        cd.set_rng_state(state)
        found = compiled(*b[0], **b[1])
        assert cd.equal(cd.get_rng_state(), after)
        same(found, expected)
        same(b, a)
    assert len(compiled.programs) == 1
    return compiled


def same(results: Any, expected: Any) -> None:
    """Compare two trees of tensors bit by bit, with what PyTorch's users can see of each tensor."""
    left, shape = tree_flatten(results)
    right, expected_shape = tree_flatten(expected)
    assert shape == expected_shape
    for a, b in zip(left, right, strict=True):
        if not isinstance(b, cd.Tensor):
            assert a == b
            continue
        assert (a.shape, a.dtype, a.stride(), a.requires_grad) == (b.shape, b.dtype, b.stride(), b.requires_grad)
        assert a._version == b._version
        assert cd.equal(a, b) or cd.equal(a.isnan(), b.isnan())


def test_chain(rng: Any) -> None:
    """A chain of operators gives the same bits."""
    check(lambda x, y: (x @ y).relu().sum(1) / 2, cd.tensor(rng.random((3, 4))), cd.tensor(rng.random((4, 2))))


def test_containers_and_keywords(rng: Any) -> None:
    """Arguments and results may be nested, and passed by keyword."""

    def f(pair: Any, *, scale: float = 1.0, other: Any = None) -> Any:
        return {"sum": pair[0] + pair[1]["x"], "list": [pair[0] * scale, (other, None, "text")]}

    x = cd.tensor(rng.random(3))
    check(f, (x, {"x": x + 1}), scale=2.5, other=x)


def test_shapes_are_arguments(rng: Any) -> None:
    """A shape is guarded by its value: equal ones are one kind of call."""
    compiled = cd.compile(lambda x, size: x.reshape(size) * 2, fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((2, 3)))
        assert compiled(x, cd.Size([3, 2])).tolist() == (x.reshape(3, 2) * 2).tolist()
    assert len(compiled.programs) == 1
    assert compiled(x, cd.Size([6])).shape == (6,)


def test_numbers() -> None:
    """A function without tensors among its arguments returns new tensors at each call."""
    compiled = check(lambda n: cd.arange(n) * 2, 5)
    assert compiled(5) is not compiled(5)


def test_random_numbers() -> None:
    """Draws take the numbers from the generator that an eager call takes, and advance it alike."""
    check(lambda x: cd.nn.functional.dropout(x, 0.5) + cd.randn(3) * cd.rand(()), cd.ones(3))


def test_generator() -> None:
    """A generator that the function refers to is drawn from at each call."""
    generator = cd.Generator().manual_seed(3)
    compiled = cd.compile(lambda: cd.rand(2, generator=generator), fullgraph=True)
    found = [compiled().tolist() for _ in range(3)]
    generator.manual_seed(3)
    assert found == [cd.rand(2, generator=generator).tolist() for _ in range(3)]


def test_writes_to_arguments(rng: Any) -> None:
    """Writes to arguments, also through views, change the arguments and their versions."""

    def f(x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        x.add_(1)
        x[1:].mul_(y)
        x.t()[0] = 5
        return x.sum()

    check(f, cd.tensor(rng.random((3, 2))), cd.tensor(rng.random((2, 2))))


def test_reads_of_views_after_writes(rng: Any) -> None:
    """A view shows what is written to its base after the view was taken."""

    def f(x: cd.Tensor) -> Any:
        y = x * 2
        view = y[0]
        y.add_(1)
        early = view.clone()
        view.zero_()
        return early, y, view

    check(f, cd.tensor(rng.random((2, 3))))


def test_returned_argument(rng: Any) -> None:
    """A function that returns an argument returns that object."""
    compiled = cd.compile(lambda x, y: (x, x + y), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random(2))
        assert compiled(x, x)[0] is x


def test_returned_view(rng: Any) -> None:
    """A view of an argument that is returned shares its memory and its version."""
    compiled = cd.compile(lambda x: x[0], fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((2, 2)))
        row = compiled(x)
        row.zero_()
        assert x[0].tolist() == [0, 0]
        assert x._version == 1


def test_returned_view_of_a_view(rng: Any) -> None:
    """Views of an argument that itself is a view are views of that argument, at each call of another one."""
    compiled = cd.compile(lambda x: (x.mT, *x.unbind(1)), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((3, 2))).t()
        turned, first, *_ = compiled(x)
        first.zero_()
        assert x[:, 0].tolist() == [0, 0]
        assert turned.tolist() == x.t().tolist()
        assert turned._version == x._version == 1
    assert len(compiled.programs) == 1


def test_returned_view_of_one_of_two_arguments(rng: Any) -> None:
    """A result is a view of the argument from which the function creates it, also if that was a view of another one."""
    compiled = cd.compile(lambda base, x: (base * 2, x.t()), fullgraph=True)
    base = cd.tensor(rng.random((4, 3)))
    for x in (base[1:3], base[1:3], cd.tensor(rng.random((4, 3)))[1:3]):
        _, turned = compiled(base, x)
        assert turned.tolist() == x.t().tolist()
        turned.zero_()
        assert x.count_nonzero() == 0


def test_returned_detached(rng: Any) -> None:
    """``x.detach()`` shares memory and version, and requires no grad."""
    compiled = cd.compile(lambda x: x.detach(), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random(2), requires_grad=True)
        out = compiled(x)
        assert not out.requires_grad
        out.zero_()
        assert x.tolist() == [0, 0]
        assert x._version == 1


def test_returned_detached_part(rng: Any) -> None:
    """``x[0].detach()`` shares the memory and the version of a part of the argument, and is no view."""
    compiled = cd.compile(lambda x: (x[0].detach(), x.sum()), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((2, 2)), requires_grad=True)
        out, total = compiled(x)
        assert not out.requires_grad
        assert total.requires_grad
        assert not out._is_view()
        out.zero_()
        assert x[0].tolist() == [0, 0]
        assert x._version == 1


def test_two_results_of_one_memory(rng: Any) -> None:
    """Two results that share memory share it in compiled calls, too."""

    def f(x: cd.Tensor) -> Any:
        y = x + 1
        return y, y.t()

    compiled = cd.compile(f, fullgraph=True)
    for _ in range(3):
        y, transposed = compiled(cd.tensor(rng.random((2, 2))))
        y.zero_()
        assert transposed.sum() == 0


def test_equal_arguments(rng: Any) -> None:
    """One tensor as two arguments is written once for both."""

    def f(x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        x.add_(1)
        return x * y

    compiled = cd.compile(f, fullgraph=True)
    x, y = cd.tensor(rng.random(3)), cd.tensor(rng.random(3))
    for _ in range(2):
        for a, b in ((x, y), (x, x)):
            c = a.clone()
            d = c if b is a else b.clone()
            same(compiled(c, d), f(a.clone(), b) if b is not a else f(e := a.clone(), e))
    assert len(compiled.programs) == 2


def test_overlapping_arguments(rng: Any) -> None:
    """Arguments that share memory are another kind of call than separate ones, if one is written."""

    def f(x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        x.add_(1)
        return x + y

    compiled = cd.compile(f, fullgraph=True)
    base, other = cd.tensor(rng.random((2, 3))), cd.tensor(rng.random(3))
    for _ in range(2):
        same(compiled(base.clone()[0], other), f(base.clone()[0], other))
        one, two = base.clone(), base.clone()
        same(compiled(one[0], one[0]), f(two[0], two[0]))


def test_constants_made_inside() -> None:
    """A tensor that the function makes from data is new at each call, also if it is written."""

    def f(x: cd.Tensor) -> cd.Tensor:
        weights = cd.tensor([1.0, 2.0])
        weights.add_(x)
        return weights

    check(f, cd.ones(2))


@pytest.mark.parametrize("function", [cd.tensor, cd.as_tensor, cd.asarray, cd.from_numpy], ids=lambda f: f.__name__)
def test_arrays_that_are_written(function: Any) -> None:
    """Arrays of NumPy are read at each call, as arguments and from outside."""
    array = np.array([1.0, 2.0])
    given = cd.compile(lambda a: function(a) * 2, fullgraph=True)
    outside = cd.compile(lambda: function(array) * 2, fullgraph=True)
    for number in (3.0, 4.0, 5.0):
        array[0] = number
        assert given(array).tolist() == outside().tolist() == [2 * number, 4]
        assert given(np.array([number])).tolist() == [2 * number]


def test_arrays_with_negative_strides() -> None:
    """An array whose memory no tensor can show is copied while tracing."""
    array = np.arange(3.0)[::-1]
    compiled = cd.compile(lambda: cd.tensor(array) * 2, fullgraph=True)
    assert compiled().tolist() == compiled().tolist() == [4, 2, 0]


def test_generators_that_a_call_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that imports NumPy's generator is no break, and the next one is traced again."""
    module = sys.modules["numpy.random.mtrand"]

    def function(x: cd.Tensor) -> cd.Tensor:
        sys.modules["numpy.random.mtrand"] = module
        return x + 1

    compiled = cd.compile(function, fullgraph=True)
    monkeypatch.delitem(sys.modules, "numpy.random.mtrand")
    assert compiled(cd.zeros(2)).tolist() == [1, 1]
    assert not compiled.programs
    assert compiled(cd.zeros(2)).tolist() == [1, 1]
    assert len(compiled.programs) == 1


def test_uninitialized_memory() -> None:
    """Memory that the function allocates and fills is new at each call."""

    def f(x: cd.Tensor) -> cd.Tensor:
        out = cd.empty(3)
        out.copy_(x)
        return out

    compiled = check(f, cd.ones(3))
    assert compiled(cd.ones(3))._payload is not compiled(cd.ones(3))._payload


def test_gradients_inside(rng: Any) -> None:
    """``autograd.grad`` in a function is part of its graph."""

    def f(x: cd.Tensor) -> Any:
        y = (x.sin() * x).sum()
        return cd.autograd.grad(y, x)[0] * 2

    check(f, cd.tensor(rng.random(3), requires_grad=True))


def test_transforms_inside(rng: Any) -> None:
    """``vmap``, ``grad`` and ``jvp`` in a function are recorded as the operators that they run."""

    def f(x: cd.Tensor) -> Any:
        rows = cd.func.vmap(cd.func.grad(lambda t: (t**3).sum()))(x)
        return rows, cd.func.jvp(cd.sin, (x,), (x,))

    check(f, cd.tensor(rng.random((2, 3))))


def test_compiled_inside_a_transform(rng: Any) -> None:
    """A compiled function under ``vmap`` runs as the function itself."""
    compiled = cd.compile(lambda x: x * 2 + x.sum())
    x = cd.tensor(rng.random((2, 3)))
    same(cd.func.vmap(compiled)(x), cd.func.vmap(compiled.function)(x))


def test_compiled_inside_compiled(rng: Any) -> None:
    """A compiled function that another one calls becomes a part of its graph."""
    inner = cd.compile(lambda x: x * 2)
    compiled = check(lambda x: inner(x) + 1, cd.tensor(rng.random(3)))
    assert [node.name for node in compiled.programs[0].graphs[0]] == ["mul", "add"]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    """Tensors without dims, without elements and with one element are compiled like others."""
    check(lambda x: ((x + 1).exp().sum(), x.reshape(-1), x.clone()), cd.ones(shape))


def test_mixed_dtypes(rng: Any) -> None:
    """Promotion is part of the graph."""
    check(lambda a, b: (a + b, a * 2.5, b > 1), cd.tensor([1, 2, 3]), cd.tensor(rng.random(3)).half())


def test_methods(rng: Any) -> None:
    """``compile`` decorates methods."""

    class Scale:
        factor = 2.0

        @cd.compile(fullgraph=True)
        def apply(self, x: cd.Tensor) -> cd.Tensor:
            return x * self.factor

    scale = Scale()
    assert [scale.apply(cd.ones(1)).item() for _ in range(3)] == [2, 2, 2]
    scale.factor = 3.0
    assert [scale.apply(cd.ones(1)).item() for _ in range(2)] == [3, 3]
