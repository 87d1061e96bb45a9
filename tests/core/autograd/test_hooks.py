"""Hooks on tensors and nodes."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import grad


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


def test_tensor_hooks_run_in_order_and_may_replace_the_gradient() -> None:
    """Each hook gets the result of the previous one; a removed hook is not called."""
    x = leaf([1.0])
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: g * 10)
    handle = y.register_hook(lambda g: seen.append("removed"))
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle.remove()
    y.sum().backward()
    assert seen == [[10.0]]
    assert x.grad.tolist() == [20.0]


def test_hooks_on_leaves_run_for_grad_too() -> None:
    """A leaf's hook changes the result of grad and the accumulated gradient."""
    x = leaf([1.0])
    x.register_hook(lambda g: g + 1)
    assert grad((x * 2).sum(), x)[0].tolist() == [3.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_hooks_on_one_of_several_outputs() -> None:
    """Each output of a node has its own hooks and its own retained gradient."""
    x = leaf([2.0, 1.0])
    values, _ = cd.sort(x)
    values.retain_grad()
    values.register_hook(lambda g: g * 2)
    (values * cd.tensor([1.0, 5.0], dtype=cd.float64)).sum().backward()
    assert values.grad.tolist() == [2.0, 10.0]
    assert x.grad.tolist() == [10.0, 2.0]


def test_node_hooks() -> None:
    """A prehook may replace the gradients of the outputs, a hook those of the inputs."""
    x = leaf([1.0])
    y = x * 3.0
    seen = []
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
    y.sum().backward()
    assert seen == [([6.0], [2.0])]
    assert x.grad.tolist() == [6.0]


def test_retained_gradients() -> None:
    """retain_grad sets .grad of a non-leaf; without a graph it is an error."""
    x = leaf([1.0])
    y = x * 3.0
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        cd.ones(1).retain_grad()


def test_post_accumulate_hooks() -> None:
    """The hook gets the leaf after its .grad is set; non-leaves are refused."""
    x = leaf([1.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.0]]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_what_hooks_may_not_do() -> None:
    """A hook that changes the shape, returns a number or is not callable, and a tensor without a graph are errors."""
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: g.sum())
    with pytest.raises(RuntimeError, match="hook has changed the gradient"):
        y.sum().backward()
    z = x * 2
    z.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="a tensor hook must return None or a Tensor, got int"):
        z.sum().backward()
    with pytest.raises(TypeError, match="a hook must be callable, got int"):
        y.register_hook(3)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        cd.ones(1).register_hook(print)


def test_handle_is_the_class_of_utils_hooks() -> None:
    """Programs import the class of handles from ``utils.hooks``."""
    assert type(leaf([1.0]).register_hook(abs)) is cd.utils.hooks.RemovableHandle


def test_anomaly_mode_is_set_by_a_function_too() -> None:
    """``set_anomaly_enabled`` sets the mode and whether it checks for NaN."""
    cd.set_anomaly_enabled(True, check_nan=False)
    try:
        assert (cd.is_anomaly_enabled(), cd.is_anomaly_check_nan_enabled()) == (True, False)
    finally:
        cd.set_anomaly_enabled(False)
    assert (cd.is_anomaly_enabled(), cd.is_anomaly_check_nan_enabled()) == (False, True)
