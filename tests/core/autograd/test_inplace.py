"""In-place operators: versions, history of views and bases, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import grad


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


def test_a_changed_saved_tensor_is_named() -> None:
    """The error of backward names the operator, the tensor and both versions."""
    x = leaf([1.0, 2.0])
    a = x * 1.0
    y = a * a
    a.add_(1.0)
    with pytest.raises(RuntimeError, match=r"of 'mul', is at version 1; expected version 0"):
        y.sum().backward()


def test_a_changed_output_is_noticed() -> None:
    """exp saves its output, so a write to it is an error."""
    y = leaf([1.0]).exp()
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_leaves_and_their_views_are_refused() -> None:
    """A leaf that requires grad can only be written to while recording is off."""
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1.0)
    with cd.no_grad():
        x.add_(1.0)
    assert x.tolist() == [2.0, 3.0]
    assert x.is_leaf


def test_an_older_view_sees_a_later_write() -> None:
    """b.mul_(w) makes v = b[0] require grad, with the correct gradient."""
    w = leaf([3.0, 5.0])
    b = cd.ones(2, 2, dtype=cd.float64)
    v = b[0]
    assert not v.requires_grad
    b.mul_(w)
    assert v.requires_grad
    v.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_a_write_to_a_view_rewrites_the_base() -> None:
    """The overwritten elements of the base have no gradient."""
    x, w = leaf([1.0, 2.0, 3.0]), leaf(7.0)
    b = x * 2.0
    b[1:].mul_(w)
    b.sum().backward()
    assert x.grad.tolist() == [2.0, 14.0, 14.0]
    assert w.grad.tolist() == 10.0


def test_chains_of_views_and_overlapping_views() -> None:
    """A write to a view of a view is visible in an overlapping view."""
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    b = x * 1.0
    other = b[:, 1]
    b.t()[1].mul_(10.0)
    assert other.tolist() == [20.0, 40.0]
    (other * other).sum().backward()
    assert x.grad.tolist() == [[0.0, 400.0], [0.0, 800.0]]


def test_multiplying_by_itself_in_place() -> None:
    """x.mul_(x) has the derivative of a square, to second order."""
    x = leaf([3.0])
    y = x * 1.0
    y.mul_(y)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [6.0]
    assert grad(g.sum(), x)[0].tolist() == [2.0]


def test_detach_shares_the_version_and_data_does_not() -> None:
    """A write through detach() is detected, one through .data is not."""
    x = leaf([1.0])
    a = x * 1.0
    y = a * a
    a.data.add_(1.0)
    y.sum().backward(retain_graph=True)
    a.detach().add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_detached_leaf_stays_a_leaf_when_its_memory_changes() -> None:
    """x.detach().requires_grad_() stays a leaf after a write to x."""
    x = cd.ones(2, dtype=cd.float64)
    d = x.detach().requires_grad_()
    x.add_(1.0)
    (d * d).sum().backward()
    assert d.grad.tolist() == [4.0, 4.0]


def test_expanded_memory_is_not_written_to() -> None:
    """A tensor whose elements share memory cannot be written to."""
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        cd.ones(1).expand(3).add_(cd.ones(3))


def test_infinite_gradients_do_not_leak_into_overwritten_parts() -> None:
    """Overwritten elements get 0, even if the gradient is infinite."""
    x = leaf([1.0, 2.0])
    b = x * 1.0
    b[0].copy_(cd.tensor(0.0, dtype=cd.float64))
    b.backward(cd.tensor([float("inf"), 1.0], dtype=cd.float64))
    assert x.grad.tolist() == [0.0, 1.0]


def test_inference_tensors() -> None:
    """Inference tensors cannot be saved for backward, nor written to outside inference mode."""
    with cd.inference_mode():
        i = cd.ones(2)
    assert i.is_inference()
    assert not (i + 1).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        cd.ones(2, requires_grad=True) * i
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        i.add_(1)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        i.requires_grad_()
    assert not i.requires_grad
