"""cond: one of two functions by the value of a tensor, in one graph."""

from __future__ import annotations

import candelabra as cd
import pytest


def chosen(x: cd.Tensor) -> cd.Tensor:
    """Choose by a sum."""
    return cd.cond(x.sum() > 0, lambda y: y * 2, lambda y: y.clone() - 1, (x,))


def test_both_branches_in_one_graph() -> None:
    """A compiled function selects at each call, and needs no break."""
    compiled = cd.compile(chosen, fullgraph=True)
    for sign in (1.0, -1.0, 1.0, -1.0):
        x = cd.ones(3) * sign
        assert cd.equal(compiled(x), chosen(x))
        assert chosen(x).tolist() == ([2, 2, 2] if sign > 0 else [-2, -2, -2])


def test_an_eager_call_runs_one_of_them() -> None:
    """The other function is not called, whatever it would do; pred may be a bool."""
    calls: list[str] = []
    found = cd.cond(True, lambda: calls.append("true"), lambda: calls.append("false"))
    assert found is None
    assert calls == ["true"]
    cd.cond(cd.tensor([False]), lambda: calls.append("true"), lambda: calls.append("false"))
    assert calls == ["true", "false"]


def test_inside_of_vmap() -> None:
    """Each example has its own branch."""
    assert cd.vmap(chosen)(cd.tensor([[1.0, 2], [-1, -3]])).tolist() == [[2, 4], [-2, -4]]


def test_gradients_and_random_numbers_take_one_branch() -> None:
    """A compiled function then runs in segments, so that results and gradients are those of the branch."""
    w = cd.zeros(2, requires_grad=True)
    compiled = cd.compile(lambda x: cd.cond(x.sum() > 0, lambda x: (x * w).sum(), lambda x: (w + x).sqrt().sum(), (x,)))
    with pytest.warns(UserWarning, match=r"the result of cond\(\) requires grad"):
        compiled(cd.ones(2))
    for _ in range(3):
        w.grad = None
        compiled(cd.ones(2)).backward()
        assert w.grad is not None
        assert w.grad.tolist() == [1, 1]  # not nan, as with the other branch
    noisy = cd.compile(lambda x: cd.cond(x.sum() > 0, lambda x: x + cd.rand(2), lambda x: x * 1, (x,)))
    with pytest.warns(UserWarning, match=r"a function of cond\(\) draws random numbers"):
        assert noisy(-cd.ones(2)).tolist() == [-1, -1]


def test_errors() -> None:
    """Other arguments, results that differ and writes are errors."""
    x = cd.ones(2)
    with pytest.raises(RuntimeError, match=r"a bool or a tensor with one element, got a tensor of shape \(2,\)"):
        cd.cond(x > 0, cd.sin, cd.cos, (x,))
    with pytest.raises(RuntimeError, match="a bool or a tensor with one element, got int"):
        cd.cond(1, cd.sin, cd.cos, (x,))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="expected two functions, true_fn and false_fn"):
        cd.cond(True, cd.sin, 3, (x,))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="expected operands to be a tuple, got Tensor"):
        cd.cond(True, cd.sin, cd.cos, x)  # type: ignore[arg-type]
    with pytest.raises(
        RuntimeError, match=r"got candelabra\.float32\[2\] from true_fn and candelabra\.float32\[\] from"
    ):
        cd.compile(lambda x: cd.cond(x.sum() > 0, lambda x: x + 1, lambda x: x.sum(), (x,)), fullgraph=True)(x)
    with pytest.raises(RuntimeError, match="a function writes to an operand"):
        cd.compile(lambda x: cd.cond(x.sum() > 0, lambda x: x.add_(1), lambda x: x + 1, (x,)), fullgraph=True)(x)
