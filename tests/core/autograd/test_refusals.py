"""Errors of autograd that involve a second device, an unusual argument or a user's class."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import autograd
from candelabra._autograd.modes import Mode


@pytest.mark.usefixtures("lantern")
def test_a_gradient_on_another_device_is_refused() -> None:
    """The error names both devices and the `.to` call that corrects it; no gradient is accumulated."""
    x = cd.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"grad_output\[0\] is on lantern:0 and output\[0\] on .*: move it with"):
        y.backward(cd.ones(3, device="lantern"))
    assert x.grad is None


def test_a_complex_gradient_of_a_real_output_is_refused() -> None:
    """Both must be complex, or both real."""
    x = cd.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="both grad_output and output are required to have the same dtype"):
        (x * 2).backward(cd.ones(3, dtype=cd.complex64))


def test_a_complex_scalar_needs_its_gradient_said() -> None:
    """Only a real scalar has an implicit gradient of 1."""
    z = cd.ones((), dtype=cd.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        (z * 2).backward()


def test_a_tensor_hook_must_return_a_tensor_of_the_same_kind() -> None:
    """Other types, shapes and dtypes are errors."""
    x = cd.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="a tensor hook must return None or a Tensor, got int"):
        x.sum().backward()
    handle.remove()
    x.register_hook(lambda g: g[:2])
    with pytest.raises(RuntimeError, match="hook has changed the gradient"):
        x.sum().backward()


def test_a_layer_too_many_is_refused() -> None:
    """The number of functionality layers is limited; removing a layer makes its bit available again."""
    from candelabra._dispatch.layers import Layer, _layers
    from candelabra._keys import LAYER_LIMIT

    made = [Layer(f"layer {number}") for number in range(LAYER_LIMIT - len(_layers))]  # autocast's stays once used
    with pytest.raises(RuntimeError, match="cannot create layer"):
        Layer("one too many")
    for layer in made:
        layer.remove()
    Layer("again").remove()


def test_what_is_differentiated_must_be_tensors() -> None:
    """The error names the argument with the number, alone or in a sequence."""
    x = cd.ones(3, requires_grad=True)
    for call, what in (
        (lambda: autograd.backward(3.0), "tensors"),
        (lambda: autograd.backward([x.sum()], [1.0]), "grad_tensors"),
        (lambda: autograd.backward(x.sum(), inputs=[1.0]), "inputs"),
        (lambda: autograd.grad([1.0], x), "outputs"),
        (lambda: autograd.grad(x.sum(), 1.0), "inputs"),
        (lambda: autograd.grad(x, x, 1.0), "grad_outputs"),
    ):
        with pytest.raises(TypeError, match=f"^{what} must be a Tensor or a sequence of Tensors, got float"):
            call()
    assert x.grad is None


def test_there_is_no_edge_without_a_graph() -> None:
    """A tensor that does not require grad is not in a graph."""
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge for a Tensor that does not require"):
        autograd.graph.get_gradient_edge(cd.ones(3))


def test_a_name_that_autograd_lacks() -> None:
    """The error has the names of the module and the attribute."""
    with pytest.raises(AttributeError, match=r"module 'candelabra\.autograd' has no attribute 'backwards'"):
        _ = autograd.backwards


def test_modes_and_nodes_without_their_method() -> None:
    """The error names a subclass without its method; asynchronous generators cannot be decorated."""

    async def stream() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match="no_grad cannot decorate the asynchronous generator 'stream'"):
        cd.no_grad()(stream)
    with pytest.raises(NotImplementedError, match="Vague does not implement _bits"):
        type("Vague", (Mode,), {})().__enter__()
    with pytest.raises(NotImplementedError, match=r"Stub has no backward\(\)"):
        type("Stub", (autograd.graph.Node,), {})().backward(None)


@pytest.mark.usefixtures("lantern")
def test_a_view_that_shows_elements_more_than_once_is_not_written_to() -> None:
    """With immutable arrays, a write to a view requires an inverse, which such a view lacks; nothing changes."""
    x = cd.arange(4.0, device="ember")
    windows = x.unfold(0, 2, 1)
    with pytest.raises(RuntimeError, match="a view made by 'unfold' cannot be written to: it shows elements more than"):
        windows.add_(1)
    assert (x.tolist(), windows.tolist()[0], x._version) == ([0.0, 1.0, 2.0, 3.0], [0.0, 1.0], 0)


def test_what_grad_is_not_asked_for() -> None:
    """A wrong number of gradients, no inputs, inputs without grad, and batched gradients are errors."""
    x = cd.ones(3, requires_grad=True)
    calls: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: autograd.grad([x.sum(), x.sum()], x, [cd.ones(())]),
            RuntimeError,
            "Mismatch in length: got 2 outputs",
        ),
        (
            lambda: autograd.grad(x * 2, x, cd.ones(2, 4), is_grads_batched=True),
            RuntimeError,
            r"Mismatch in shape: grad_output\[0\] has a shape of .*\[4\]",
        ),
        (
            lambda: autograd.grad(x.sum(), x, is_grads_batched=True),
            RuntimeError,
            "is_grads_batched=True needs grad_outputs with a batch dim, got None for output 0",
        ),
        (lambda: autograd.grad(x.sum(), []), RuntimeError, r"`inputs` argument to `grad\(\)` cannot be empty\."),
        (lambda: autograd.grad(x.sum(), cd.ones(3)), RuntimeError, "differentiated Tensors does not require grad"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
    assert x.grad is None


def test_memory_of_a_view_is_not_exchanged() -> None:
    """A view is neither detached in place nor resized, and data must be a tensor; nothing changes."""
    x = cd.ones(3)
    view = x[:0]
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place\. Use detach\(\) instead\."):
        view.detach_()
    with pytest.raises(RuntimeError, match="a view cannot be resized or given other memory; use its base, or a clone"):
        cd.add(x, x, out=view)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        x.data = [1.0]
    assert (x.tolist(), view.shape, x._version) == ([1.0, 1.0, 1.0], (0,), 0)


def test_a_decorated_generator_is_closed_in_its_mode() -> None:
    """Closing runs the generator's cleanup in the mode, and ends as closing any generator does."""
    seen = []

    @cd.no_grad()
    def steps() -> Iterator[int]:
        try:
            yield 1
        finally:
            seen.append(cd.is_grad_enabled())

    generator = steps()
    assert next(generator) == 1
    generator.close()
    with pytest.raises(StopIteration):
        next(generator)
    assert seen == [False]
    assert cd.is_grad_enabled()


def test_deprecated_arguments_warn_and_have_their_place() -> None:
    """``only_inputs`` and ``grad_variables`` stand where PyTorch has them among the positional arguments."""
    x = cd.ones(3, requires_grad=True)
    y = x * 2
    (g,) = autograd.grad(y, x, cd.ones(3), True, False, True)
    assert g.tolist() == [2.0] * 3
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        autograd.grad(y, x, cd.ones(3), True, only_inputs=False)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        autograd.backward(y, None, True, False, cd.ones(3))
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * 3
    both = "`grad_tensors` and `grad_variables` \\(deprecated\\) arguments both passed"
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match=both):
        autograd.backward(y, cd.ones(3), grad_variables=cd.ones(3))
