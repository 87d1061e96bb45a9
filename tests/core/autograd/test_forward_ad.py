"""``autograd.forward_ad``: dual tensors in a block, as in PyTorch; ``is_grads_batched``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra import autograd, func
from candelabra.autograd import forward_ad


def test_dual_tensors_have_tangents_in_their_block() -> None:
    """Operators compute them; afterwards the tensors have values only."""
    x = cd.tensor([1.0, 2.0])
    with forward_ad.dual_level() as level:
        dual = forward_ad.make_dual(x, cd.tensor([1.0, 10.0]), level=level)
        out = dual * x
        primal, tangent = forward_ad.unpack_dual(out)
        assert (primal.tolist(), tangent.tolist()) == ([1, 4], [1, 20])
        assert forward_ad.unpack_dual(x) == (x, None)
        assert forward_ad.unpack_dual(dual.detach()).tangent is None
    assert forward_ad.unpack_dual(out).tangent is None
    assert (out + 1).tolist() == [2, 5]


def test_tangents_can_be_differentiated() -> None:
    """Reverse over forward: the graphs of primal and tangent are those of the tensors outside the block."""
    x = cd.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, cd.ones(2)) ** 3).tangent
    assert tangent is not None
    assert autograd.grad(tangent.sum(), x)[0].tolist() == [6, 12]


def test_a_parameter_of_a_module_can_be_replaced_by_a_dual_tensor() -> None:
    """The tutorial of PyTorch: forward mode with modules."""
    model = cd.nn.Linear(2, 2)
    tangents = {name: cd.rand_like(p) for name, p in model.named_parameters()}
    x = cd.rand(3, 2)
    with forward_ad.dual_level():
        duals = {n: forward_ad.make_dual(p.detach(), tangents[n]) for n, p in model.named_parameters()}
        found = forward_ad.unpack_dual(func.functional_call(model, duals, (x,))).tangent
    assert found is not None
    assert cd.allclose(found, x @ tangents["weight"].T + tangents["bias"])


X = cd.ones(2)


def _nested() -> None:
    with forward_ad.dual_level():
        forward_ad.enter_dual_level()


def _inside(call: Callable[[], Any]) -> None:
    with forward_ad.dual_level():
        call()


def _twice() -> None:
    forward_ad.make_dual(forward_ad.make_dual(X, X), X)


def _crossed() -> None:
    with forward_ad.dual_level():
        func.jvp(lambda x: forward_ad.exit_dual_level() or x, (X,), (X,))


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no level": (lambda: forward_ad.make_dual(X, X), RuntimeError, "no level exists, make sure to enter_dual_level"),
    "nested": (_nested, RuntimeError, "Nested forward mode AD is not supported at the moment"),
    "exit": (forward_ad.exit_dual_level, RuntimeError, "Trying to exit a forward AD level that was not the last one"),
    "crossed": (_crossed, RuntimeError, r"exit_dual_level\(\) was called in a function that func\.jvp, grad or vmap"),
    "twice": (lambda: _inside(_twice), RuntimeError, "Trying to set a tangent on a tensor that already has one"),
    "primal": (
        lambda: _inside(lambda: forward_ad.make_dual(X.long(), X)),
        ValueError,
        "Expected primal to be floating point or complex, but got: candelabra.int64",
    ),
    "tangent": (
        lambda: _inside(lambda: forward_ad.make_dual(X, X.long())),
        ValueError,
        "Expected tangent to be floating point or complex, but got: candelabra.int64",
    ),
    "shape": (
        lambda: _inside(lambda: forward_ad.make_dual(X, cd.ones(3))),
        RuntimeError,
        r"make_dual\(\): Expected tangent to have the same shape as primal: primal has shape \[2\], tangent has shape",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    """Errors say what is missing, and no level stays open."""
    call, error, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        call()
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(X).tangent is None


def test_a_batch_of_gradients_is_one_pass() -> None:
    """``is_grads_batched``: the results have the batch dim of the gradients, also with create_graph."""
    x, unused = cd.tensor([1.0, 2.0, 3.0], requires_grad=True), cd.ones(1, requires_grad=True)
    y = x.sin() * x[0]
    rows = cd.eye(3)
    (found, none) = autograd.grad(y, (x, unused), rows, True, True, allow_unused=True, is_grads_batched=True)
    expected = cd.stack([autograd.grad(y, x, row, True, True)[0] for row in rows])
    assert none is None
    assert cd.allclose(found, expected)
    assert cd.allclose(autograd.grad(found.sum(), x, retain_graph=True)[0], autograd.grad(expected.sum(), x)[0])
    (found,) = autograd.grad(x * 2, x, rows, is_grads_batched=True)
    assert not found.requires_grad
    assert cd.equal(found, 2 * rows)


def test_names() -> None:
    """The module lists its names, which are PyTorch's."""
    assert dir(forward_ad) == sorted(forward_ad.__all__)
    assert "make_dual" in dir(forward_ad)


def test_tangents_are_cast_to_the_dtype_of_the_primal() -> None:
    """A tangent of another floating dtype is cast; a complex one does not fit a real primal."""
    primal = cd.ones(2, dtype=cd.float64)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(forward_ad.make_dual(primal, cd.ones(2)) * 3).tangent
        assert tangent is not None
        assert tangent.dtype is cd.float64
        assert tangent.tolist() == [3, 3]
        with pytest.raises(RuntimeError, match="Expected tangent to have the same dtype as primal"):
            forward_ad.make_dual(primal, cd.ones(2, dtype=cd.complex64))
