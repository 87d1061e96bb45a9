"""Compiled functions run backward passes of graphs that were recorded before the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest

Made = tuple[tuple[Any, ...], list[cd.Tensor]]
"""The arguments of a call, and the leaves whose gradients are compared."""


def backward(loss: cd.Tensor) -> None:
    """Run the pass of a loss."""
    loss.backward()


def leaf(k: int, *shape: int) -> cd.Tensor:
    """Return a leaf whose elements depend on the number of the call."""
    return cd.full(shape or (3,), 1.0 + k, requires_grad=True)


def gradients(make: Callable[[int], Made], function: Callable[..., Any], calls: int = 4) -> list[Any]:
    """Return the gradients after each call of a function."""
    found = []
    for k in range(calls):
        args, leaves = make(k)
        function(*args)
        found.append([None if x.grad is None else x.grad.tolist() for x in leaves])
    return found


def compared(make: Callable[[int], Made], function: Callable[..., Any] = backward, calls: int = 4) -> int:
    """Compare the compiled function with the function itself, and return the number of its programs."""
    compiled = cd.compile(function, fullgraph=True)
    assert gradients(make, compiled, calls) == gradients(make, function, calls)
    return len(compiled.programs)


def twice(g: cd.Tensor) -> cd.Tensor:
    """A hook."""
    return g * 2


def triple_gradient(x: cd.Tensor) -> None:
    """A hook of a leaf."""
    assert x.grad is not None
    x.grad.mul_(3)


class Cube(cd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: cd.Tensor, factor: float) -> cd.Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx: Any, g: cd.Tensor) -> Any:
        [x] = ctx.saved_tensors
        return g * 3 * x * x * ctx.factor, None


def products(k: int) -> Made:
    """Saved inputs and outputs."""
    x = leaf(k)
    return ((x.exp() * x).sum(),), [x]


def written_views(k: int) -> Made:
    """Writes to views."""
    x = leaf(k, 4)
    y = x * 2
    y[1:3].mul_(3)
    y.add_(1)
    return ((y * y).sum(),), [x]


def several_outputs(k: int) -> Made:
    """Operators with several outputs."""
    x = leaf(k, 4, 2)
    a, b = x.unbind(1)
    return ((a * b).sum() + (x + cd.eye(4, 2)).sort(0).values[0].sum(),), [x]


def indices(k: int) -> Made:
    """Indices, and a mask of the maximum."""
    x = leaf(k, 4, 2)
    return ((x[cd.tensor([0, 1, 1])] * 2).sum() + x[:, 1:].amax(0).sum(),), [x]


def custom(k: int) -> Made:
    """A custom operator."""
    x = leaf(k)
    return (Cube.apply(x, 0.5).sum(),), [x]


def hook_of_a_leaf(k: int) -> Made:
    """A hook of a leaf."""
    x = leaf(k)
    x.register_hook(twice)
    return ((x * x).sum(),), [x]


def hook_of_a_result(k: int) -> Made:
    """A hook of a result."""
    x = leaf(k)
    y = x.exp()
    y.register_hook(twice)
    return ((y * x).sum(),), [x]


def hook_after_accumulation(k: int) -> Made:
    """A hook after accumulation."""
    x = leaf(k)
    x.register_post_accumulate_grad_hook(triple_gradient)
    return ((x * x).sum(),), [x]


PROGRAMS = [products, written_views, several_outputs, indices, custom, hook_of_a_leaf, hook_of_a_result,
            hook_after_accumulation]  # fmt: skip


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_a_loss_of_another_graph_is_one_program(make: Callable[[int], Made]) -> None:
    """Losses whose graphs have one structure share a program: what the nodes have saved is an input of it."""
    assert compared(make) == 1


def test_structures_are_kinds() -> None:
    """Other operators, other shapes, other numbers and other hooks are other kinds of calls."""

    def operators(k: int) -> Made:
        x = leaf(k)
        return ([cd.add, cd.sub, cd.mul, cd.div][k % 4](x, x).sum(),), [x]

    def shapes(k: int) -> Made:
        x = leaf(k, 3 + k % 2)
        return (x.exp().sum(),), [x]

    def numbers(k: int) -> Made:
        x = leaf(k)
        return ((x * (k % 2 + 2)).sum(),), [x]

    def hooks(k: int) -> Made:
        x = leaf(k)
        x.register_hook(lambda g: g + 10)
        return ((x * x).sum(),), [x]

    def same_tensors(k: int) -> Made:
        x, y = leaf(k), leaf(2 * k)
        return ((x * (x if k % 2 else y)).sum(),), [x, y]

    assert compared(operators, calls=8) == 4
    assert compared(shapes) == 2
    assert compared(numbers) == 2
    assert compared(hooks, calls=3) == 3
    assert compared(same_tensors) == 2


def test_gradients_accumulate() -> None:
    """Gradients are added to those of earlier passes, and a graph that is kept serves twice."""
    w = cd.ones(3, requires_grad=True)

    def make(k: int) -> Made:
        if k == 0:
            w.grad = None
        return ((w * w.exp()).sum(),), [w]

    def two_passes(loss: cd.Tensor) -> None:
        loss.backward(retain_graph=True)
        loss.backward()

    assert compared(make) == 2
    assert compared(make, two_passes) == 2


def test_parts_of_a_pass() -> None:
    """A pass goes from operators of the function to those before the call; gradients can be given and asked for."""
    w = cd.ones(3, 2, requires_grad=True)

    def features(k: int) -> Made:
        if k == 0:
            w.grad = None
        x = leaf(k, 4, 3)
        return (x.tanh(),), [x, w]

    def pair(k: int) -> Made:
        x = leaf(k)
        return (x.exp(), x), [x]

    def head(features: cd.Tensor) -> None:
        (features @ w).sum().backward()

    def with_gradient(y: cd.Tensor, x: cd.Tensor) -> None:
        y.backward(cd.ones_like(y) * 2, inputs=[x])

    def asked(y: cd.Tensor, x: cd.Tensor) -> None:
        [x.grad] = cd.autograd.grad(y.sum(), x)

    assert compared(features, head) == 2
    assert compared(pair, with_gradient) == 1
    assert compared(pair, asked) == 1


def test_the_loss_of_a_closure_is_read_at_each_call() -> None:
    """A function that names a loss is compiled once, although each call has another one."""
    compiled = cd.compile(lambda: loss.backward(), fullgraph=True)
    for k in range(3):
        x = leaf(k)
        loss = (x * x).sum()
        compiled()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0 + 2 * k] * 3
    assert len(compiled.programs) == 1


def test_tensors_that_are_replaced_become_inputs() -> None:
    """The second time that a name refers to another tensor, the tensor becomes an input of the program."""
    compiled = cd.compile(lambda: x * 2, fullgraph=True)
    for k in range(12):
        x = cd.full((2,), float(k))
        assert compiled().tolist() == [2.0 * k] * 2
    assert len(compiled.programs) == 2


def test_an_argument_that_the_function_also_refers_to() -> None:
    """A tensor that was an argument and a global in the traced call may be two tensors in the next one."""
    w = cd.full((2,), 3.0)
    compiled = cd.compile(lambda x: x * w, fullgraph=True)
    assert compiled(w).tolist() == [9, 9]
    assert compiled(cd.ones(2)).tolist() == [3, 3]
    assert compiled(w).tolist() == [9, 9]


def test_nodes_are_released() -> None:
    """A pass releases the graph, unless it is kept, and reports what an eager pass reports."""
    compiled = cd.compile(backward, fullgraph=True)
    for _ in range(2):
        [loss], _ = products(1)
        compiled(loss)
        with pytest.raises(cd.errors.GraphFreed, match="backward through the graph a second time"):
            compiled(loss)
        with pytest.raises(cd.errors.GraphFreed, match="backward through the graph a second time"):
            loss.backward()
        x = leaf(1)
        y = x.exp()
        loss = (y * x).sum()
        y.mul_(2)
        with pytest.raises(cd.errors.VersionMismatch, match="modified by an inplace operation"):
            compiled(loss)


def test_compiled_nodes_are_traced() -> None:
    """The backward graph of a compiled call becomes part of the graph of the pass."""
    forward = cd.compile(lambda x: (x.exp() * x).sum(), fullgraph=True)

    def make(k: int) -> Made:
        x = leaf(k)
        return (forward(x) * 2 + x.sum(),), [x]

    assert compared(make) == 2  # the first call of the forward function is traced, and has nodes of its operators
    compiled = cd.compile(backward, fullgraph=True)
    compiled(*make(1)[0])
    [graph] = compiled.programs[0].graphs
    assert "mul" in [node.name for node in graph]


def test_what_no_program_repeats_is_named() -> None:
    """Packed values, retained gradients and unknown nodes are breaks."""

    def broken(loss: cd.Tensor) -> str:
        with pytest.raises(RuntimeError, match="fullgraph=True") as caught:
            cd.compile(backward, fullgraph=True)(loss)
        return str(caught.value)

    x = leaf(1)
    with cd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        loss = x.exp().sum()
    assert "a backward pass depends on values that saved_tensors_hooks have packed" in broken(loss)
    y = x * 2
    y.retain_grad()
    assert "a backward pass depends on a tensor that retains its gradient" in broken(y.sum())

    class Keeping(Cube):
        @staticmethod
        def forward(ctx: Any, x: cd.Tensor, factor: float) -> cd.Tensor:
            ctx.options = {"factor": factor}
            return Cube.forward(ctx, x, factor)

    assert "a backward pass depends on an operator that keeps a dict" in broken(Keeping.apply(x, 1.0).sum())
    items = iter([1])
    x.register_hook(lambda g: g * next(items))
    assert "a backward pass depends on 'items' of <lambda>, an iterator" in broken((x * x).sum())

    def inside(x: cd.Tensor) -> None:
        (x * x).sum().backward()

    with pytest.raises(RuntimeError, match="hook runs in the backward pass that depends on 'items' of <lambda>"):
        cd.compile(inside, fullgraph=True)(x)


def test_blocks_compile_the_passes_inside() -> None:
    """In a block of ``compiled_autograd``, ``backward()`` of any code is compiled; other passes are not."""
    made: list[Any] = []

    def compiler(function: Callable[..., Any]) -> Any:
        made.append(cd.compile(function, fullgraph=True))
        return made[-1]

    with cd.compiler.compiled_autograd(compiler):
        found = gradients(products, backward)
        x = leaf(1)
        [g] = cd.autograd.grad((x * x).sum(), x, create_graph=True)
    assert found == gradients(products, backward)
    assert len(made[0].programs) == 1
    assert g.requires_grad
    with cd.compiler.compiled_autograd():
        assert gradients(products, backward) == found
    backward(*products(1)[0])  # outside of the block
    assert len(made[0].programs) == 1


def steps(function: Callable[..., Any], compile: Callable[[Callable[..., Any]], Any]) -> list[Any]:
    """Return the parameters after steps of a function of the optimizer and the loss."""
    w = cd.full((3,), 0.5, requires_grad=True)
    optimizer = cd.optim.SGD([w], lr=0.1, momentum=0.9)
    step, found = compile(lambda loss: function(optimizer, w, loss)), []
    for _ in range(4):
        step((w.exp() * w).sum())
        found.append(w.tolist())
    return found


def whole_step(optimizer: Any, w: cd.Tensor, loss: cd.Tensor) -> None:
    """Run a step of the optimizer."""
    optimizer.zero_grad()
    loss.backward()
    cd.nn.utils.clip_grad_norm_([w], 0.5)
    optimizer.step()


def step_by_hand(optimizer: Any, w: cd.Tensor, loss: cd.Tensor) -> None:
    """Write the parameter."""
    [g] = cd.autograd.grad(loss, w)
    with cd.no_grad():
        w -= 0.1 * g


@pytest.mark.parametrize("function", [whole_step, step_by_hand])
def test_steps_of_optimizers_that_get_a_loss(function: Callable[..., Any]) -> None:
    """The pass and the writes to the parameters that it leads to are one program."""
    made: list[Any] = []

    def compile(function: Callable[..., Any]) -> Any:
        made.append(cd.compile(function, fullgraph=True))
        return made[-1]

    for found, expected in zip(steps(function, compile), steps(function, lambda function: function), strict=True):
        assert found == pytest.approx(expected, rel=1e-6)
    assert len(made[0].programs) == 1


def test_stale_views_as_roots() -> None:
    """A view whose base was written before the call is computed again from the base."""

    def make(k: int) -> Made:
        x = leaf(k)
        y = x * x
        z = y[1]
        y.mul_(3)
        return (z,), [x]

    assert compared(make) == 1


def test_passes_of_threads() -> None:
    """Threads share the programs of passes."""
    compiled = cd.compile(backward, fullgraph=True)
    found: list[Any] = [None] * 4

    def run(i: int) -> None:
        for _ in range(3):
            x = leaf(i)
            compiled((x * x * x).sum())
            assert x.grad is not None
            found[i] = x.grad.tolist()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[3.0 * (1 + i) ** 2] * 3 for i in range(4)]


def test_names_of_pytorch() -> None:
    """``_dynamo`` has PyTorch's names of compiled passes; a call that breaks counts the graphs between its breaks."""
    counters = cd._dynamo.utils.counters

    def pieces(x: cd.Tensor) -> cd.Tensor:
        y = x + 10
        cd._dynamo.graph_break()
        y = y + 10
        cd._dynamo.graph_break()
        return y.sum()

    x = leaf(1)
    counters.clear()
    with pytest.warns(UserWarning, match=r"graph_break\(\) is called"):
        loss = cd.compile(pieces)(x)
    assert counters["stats"]["unique_graphs"] == 3
    counters.clear()
    with cd._dynamo.compiled_autograd.enable(cd.compile(fullgraph=True)):
        loss.backward(retain_graph=True)
    assert counters["stats"]["unique_graphs"] == 1
    for is_enabled in (True, False):
        with cd._dynamo.utils.maybe_enable_compiled_autograd(is_enabled):
            loss.backward(retain_graph=True)
        assert counters["stats"]["unique_graphs"] == 2
    with cd.compiler.compiled_autograd(), cd._dynamo.compiled_autograd.disable():
        loss.backward()
    assert counters["stats"]["unique_graphs"] == 2
    assert x.grad is not None
    assert x.grad.tolist() == [4] * 3
