"""Refusals of the backward pass that take a second device or an odd Function."""

from __future__ import annotations

import candelabra as cd
import pytest


@pytest.mark.usefixtures("lantern")
def test_a_gradient_on_another_device_is_refused() -> None:
    """The error names both devices and the move that mends it; nothing is accumulated."""
    x = cd.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"grad_output\[0\] is on lantern:0 and output\[0\] on .*: move it with"):
        y.backward(cd.ones(3, device="lantern"))
    assert x.grad is None


def test_a_complex_gradient_of_a_real_output_is_refused() -> None:
    """Both must be complex, or neither."""
    x = cd.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="both grad_output and output are required to have the same dtype"):
        (x * 2).backward(cd.ones(3, dtype=cd.complex64))


def test_a_complex_scalar_needs_its_gradient_said() -> None:
    """A gradient of 1 is implied for real scalars only."""
    z = cd.ones((), dtype=cd.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        (z * 2).backward()


def test_a_tensor_hook_must_return_a_tensor_of_the_same_kind() -> None:
    """Other types, shapes and dtypes are refused in words."""
    x = cd.ones(3, requires_grad=True)
    handle = x.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="a tensor hook must return None or a Tensor, got int"):
        x.sum().backward()
    handle.remove()
    x.register_hook(lambda g: g[:2])
    with pytest.raises(RuntimeError, match="hook has changed the gradient"):
        x.sum().backward()


def test_a_layer_too_many_is_refused() -> None:
    """The bits for functionality layers are limited; a removed layer gives its bit back."""
    from candelabra.dispatch.layers import Layer
    from candelabra.keys import LAYER_LIMIT

    made = [Layer(f"layer {number}") for number in range(LAYER_LIMIT)]
    with pytest.raises(RuntimeError, match="no room for layer"):
        Layer("one too many")
    for layer in made:
        layer.remove()
    Layer("again").remove()
