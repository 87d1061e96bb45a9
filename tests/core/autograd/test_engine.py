"""The engine: order, accumulation, captures, freed graphs, errors."""

from __future__ import annotations

import gc
from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import backward, grad


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


def test_deep_chain_neither_recurses_nor_fails_when_dropped() -> None:
    """A chain of 200,000 nodes runs backward, and another one is deleted without a backward pass."""
    x = leaf([1.0])
    y = x
    for _ in range(200_000):
        y = y + 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1.0]
    y = x
    for _ in range(200_000):
        y = y + 1.0
    del y
    gc.collect()


def test_a_diamond_runs_each_node_once_with_the_whole_gradient() -> None:
    """A node on two paths runs once, after both."""
    x = leaf([2.0])
    seen = []
    middle = x * 3.0
    middle.register_hook(lambda g: seen.append(g.tolist()))
    (middle * middle + middle).sum().backward()
    assert seen == [[13.0]]
    assert x.grad.tolist() == [39.0]


def test_several_roots_add_up() -> None:
    """The gradients of several roots are added, also if one root is in the graph of another."""
    x = leaf([1.0, 2.0])
    a = x * 2.0
    b = (a * a).sum()
    backward((a, b), (cd.tensor([1.0, 1.0], dtype=cd.float64), None))
    assert x.grad.tolist() == [2.0 + 8.0, 2.0 + 16.0]


def test_inputs_limits_where_gradients_go() -> None:
    """backward(inputs=) sets the .grad of the inputs only."""
    x, y = leaf([1.0]), leaf([2.0])
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0]
    assert y.grad is None


def test_empty_inputs_are_an_error() -> None:
    """backward(inputs=[]) is an error."""
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty\."):
        leaf(1.0).backward(inputs=[])


def test_grad_of_a_non_leaf() -> None:
    """Intermediate tensors may be inputs of grad, also if they lead to other inputs."""
    x = leaf([3.0])
    h = x * x
    gh, gx = grad((h * 2.0).sum(), (h, x))
    assert (gh.tolist(), gx.tolist()) == ([2.0], [12.0])


def test_unused_inputs() -> None:
    """An input without a path to the output is an error, or gets None or zeros."""
    x, y = leaf([1.0]), leaf([1.0])
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x.sum(), (x, y), retain_graph=True)
    assert grad(x.sum(), (x, y), allow_unused=True)[1] is None
    assert grad(x.sum(), (x, y), materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        grad(x.sum(), (x, y), allow_unused=False, materialize_grads=True)


def test_freed_graph() -> None:
    """A second pass requires retain_graph=True in the first one."""
    x = leaf([2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_implicit_gradient_needs_a_real_scalar() -> None:
    """Only a real scalar has an implicit gradient."""
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        leaf([1.0, 2.0]).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        cd.tensor(1.0).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        leaf([1.0, 2.0]).backward(cd.tensor([1.0]))


def test_gradients_of_leaves_share_nothing() -> None:
    """A write to one .grad changes neither another one nor a later pass."""
    x, y = leaf([1.0]), leaf([1.0])
    g = cd.tensor([5.0], dtype=cd.float64)
    (x + y).backward(g)
    x.grad.zero_()
    assert (y.grad.tolist(), g.tolist()) == ([5.0], [5.0])


def test_gradients_accumulate_in_the_same_tensor() -> None:
    """A second pass adds to .grad in place."""
    x = leaf([1.0])
    x.sum().backward()
    first = x.grad
    (x * 2.0).sum().backward()
    assert x.grad is first
    assert first.tolist() == [3.0]


def test_broadcasting_is_undone() -> None:
    """A gradient has the shape of its tensor."""
    x, y = leaf([[1.0], [2.0]]), leaf(3.0)
    (x * cd.ones(4, dtype=cd.float64) * y).sum().backward()
    assert x.grad.tolist() == [[12.0], [12.0]]
    assert y.grad.tolist() == 12.0


def test_second_derivatives() -> None:
    """create_graph=True records the backward pass."""
    x = leaf([2.0])
    (g,) = grad((x**3).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [12.0])


def test_complex_gradients_follow_the_convention() -> None:
    """The gradient of a real loss is dL/dRe + i dL/dIm."""
    z = cd.tensor([3 + 4j], dtype=cd.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [6 + 8j]


def test_a_real_factor_of_a_complex_product_gets_a_real_gradient() -> None:
    """The real operand's gradient is the real part."""
    x = leaf([2.0])
    (x * cd.tensor([1 + 1j], dtype=cd.complex128)).real.sum().backward()
    assert x.grad.dtype is cd.float64
    assert x.grad.tolist() == [1.0]
