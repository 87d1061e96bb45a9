"""Functions of ``autograd.graph``: hooks on several gradients, saved tensors that may be written."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import graph
from candelabra.errors import VersionMismatch


def leaves() -> tuple[Any, Any, Any, Any]:
    """Return two leaves and two products of them."""
    a, b = (cd.rand(2, 3, requires_grad=True) for _ in range(2))
    return a, b, a * b, a * b


def test_a_hook_runs_when_all_gradients_are_there() -> None:
    """Tensors without a part in the pass have None. The example of PyTorch's documentation."""
    a, b, c, d = leaves()
    seen: list[list[bool]] = []
    handle = graph.register_multi_grad_hook((a, b, c, d), lambda gs: seen.append([g is not None for g in gs]))
    c.sum().backward(retain_graph=True)
    assert seen.pop() == [True, True, True, False]
    c.sum().backward(inputs=(a,), retain_graph=True)
    assert seen.pop() == [True, False, True, False]
    cd.autograd.grad((c + d).sum(), (a, b), retain_graph=True)
    assert seen.pop() == [True, True, True, True]
    handle.remove()
    c.sum().backward()
    assert seen == []


def test_a_hook_runs_at_the_first_gradient() -> None:
    """Once per pass, with the gradient."""
    a, b, c, d = leaves()
    seen: list[Any] = []
    with graph.register_multi_grad_hook((a, b, c, d), seen.append, mode="any"):
        (2 * c).sum().backward(retain_graph=True)
        (3 * d).sum().backward(retain_graph=True)
    assert [g.unique().tolist() for g in seen] == [[2], [3]]
    c.sum().backward()
    assert len(seen) == 2


def test_passes_inside_a_hook_are_counted_on_their_own() -> None:
    """A backward pass that a hook starts has its own gradients."""
    a, b, c, _ = leaves()
    seen: list[int] = []
    inner = [(a * a).sum()]
    a.register_hook(lambda g: inner.pop().backward() if inner else None)
    graph.register_multi_grad_hook((a, b), lambda gs: seen.append(sum(g is not None for g in gs)))
    c.sum().backward()
    assert seen == [1, 2]


def test_wrong_arguments_of_hooks() -> None:
    """Another mode, and a tensor without a gradient."""
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        graph.register_multi_grad_hook((cd.ones(1, requires_grad=True),), print, mode="some")
    with pytest.raises(RuntimeError, match="that does not require gradients"):
        graph.register_multi_grad_hook((cd.ones(1),), print)


def test_saved_tensors_may_be_written_where_that_is_allowed() -> None:
    """The derivative sees the value at the time of the call; outside the block the backward pass raises."""

    def loss(x: Any) -> Any:
        y = x.clone()
        out = (y**2).sum()
        y.sin_()
        return out

    x = cd.ones(2, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        loss(x).backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(VersionMismatch):
        loss(x).backward()


def test_hooks_that_keep_the_tensor_itself_are_still_checked() -> None:
    """A pack hook that returns its argument keeps the check of versions; one that returns a copy needs none."""
    x = cd.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.clone()
        out = (y**2).sum()
        y.zero_()
    with pytest.raises(VersionMismatch):
        out.backward()


def test_hooks_on_saved_tensors_can_be_disabled() -> None:
    """The block raises its message for hooks inside, and at once inside of hooks."""
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass
    with (
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        pytest.raises(RuntimeError, match="not there"),
        graph.disable_saved_tensors_hooks("not there"),
    ):
        pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_versions_can_be_counted_by_hand() -> None:
    """A write that no operator made is reported by the backward pass, for one tensor or several."""
    x = cd.ones(2, requires_grad=True)
    for written in (lambda y: y, lambda y: [y, cd.ones(1)]):
        y = x.clone()
        out = (y**2).sum()
        graph.increment_version(written(y))
        with pytest.raises(VersionMismatch):
            out.backward()


def test_the_next_functions_of_a_list_are_those_of_its_tensors() -> None:
    """An operator of a list has one entry per tensor, with None for a constant, in the list's order."""
    a, b, c, _ = leaves()
    for joined in (cd.cat([a, c, cd.ones(2, 3), b]), cd.vstack((a, c, cd.ones(1, 3), b))):
        assert [node for node, _ in joined.grad_fn.next_functions] == [a._node, c.grad_fn, None, b._node]
