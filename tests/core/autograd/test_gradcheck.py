"""Errors that gradcheck detects in addition to wrong values."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import Function, gradcheck, gradgradcheck
from candelabra.autograd.gradcheck import GradcheckError
from candelabra.library import OPERATORS


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


class Drifting(Function):
    """The derivative of ``2 x``, with different last digits in every pass."""

    passes = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Drifting.passes += 1
        return g * (2 + 1e-9 * Drifting.passes)


class Affine(Function):
    """A backward pass that adds a constant within the tolerance."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 + 1e-7


class Cut(Function):
    """An output that is marked as non-differentiable but depends on the input."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = x * 2
        ctx.mark_non_differentiable(out)
        return out


class Pair(Function):
    """Two outputs whose backward pass requires both gradients."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        if g is None or h is None:
            raise RuntimeError("both are needed")
        return g * 2 + h * 3


def test_a_backward_pass_that_differs_from_run_to_run_is_found() -> None:
    """The tolerance is nondet_tol, which is zero by default."""
    with pytest.raises(GradcheckError, match=r"Backward is not reentrant, .*tolerance for nondeterminism was 0\.0\."):
        gradcheck(Drifting.apply, (leaf([1.0]),))
    assert gradcheck(Drifting.apply, (leaf([1.0]),), nondet_tol=1e-6)


def test_a_backward_pass_that_is_not_linear_is_found() -> None:
    """A zero gradient must give zero."""
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Affine.apply, (leaf([1.0]),))
    assert not gradcheck(Affine.apply, (leaf([1.0]),), raise_exception=False)


def test_an_output_without_gradient_must_not_depend_on_the_input() -> None:
    """If no output requires grad, the differences must be zero; integer outputs are ignored."""
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(Cut.apply, (leaf([1.0]),))
    assert gradcheck(lambda x: (x.detach() * 0, x > 0), (leaf([1.0]),))


def test_a_backward_pass_must_do_with_absent_gradients() -> None:
    """Each output may be used alone; check_undefined_grad=False disables the check."""
    x = leaf([1.0])
    with pytest.raises(GradcheckError, match=r"handle undefined output grads\..*: both are needed"):
        gradcheck(Pair.apply, (x,))
    assert (x.tolist(), x.grad) == ([1.0], None)
    with pytest.raises(RuntimeError, match=r"^both are needed$"):
        gradcheck(Pair.apply, (x,), check_undefined_grad=False)


def test_functions_that_return_no_tensors_are_refused() -> None:
    """Such functions cannot be differentiated; the input does not change."""
    x = leaf([1.0])
    with pytest.raises(ValueError, match="gradcheck expects the function to return tensors"):
        gradcheck(lambda x: (1.0,), (x,))
    assert (x.tolist(), x.grad) == ([1.0], None)


def test_gradcheck_of_forward_mode_and_batched_gradients() -> None:
    """Both are compared, entry by entry and along a direction; a wrong tangent or batched gradient is found."""
    x, z = leaf([1.0, 2.0]), cd.tensor([1 + 2j], dtype=cd.complex128, requires_grad=True)
    both = {"check_forward_ad": True, "check_batched_grad": True}
    for fast in (False, True):
        assert gradcheck(lambda x, z: (x.exp() * x.sum(), z * z.conj(), x.detach()), (x, z), fast_mode=fast, **both)
    assert gradgradcheck(cd.sin, (x,), check_fwd_over_rev=True)
    softmax, rule = OPERATORS["softmax"], OPERATORS["softmax"].tangent
    try:
        softmax.jvp(lambda t_input: t_input)
        with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
            gradcheck(lambda x: x.softmax(0), (x,), check_forward_ad=True)
    finally:
        softmax.jvp(rule)

    def differs(x: Any) -> Any:
        out = x * 2
        out.register_hook(lambda g: g if type(g._payload).__name__ != "Batched" else g * 2)
        return out

    with pytest.raises(GradcheckError, match="The gradients under vmap of output 0 with respect to input 0 differ"):
        gradcheck(differs, (x,), check_batched_grad=True)


def hooked(replace: Any) -> Any:
    """Return a function that doubles its input, with a hook that replaces the gradient after the engine's check."""

    def function(x: Any) -> Any:
        out = x * 2
        out.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (replace(grad_inputs[0]), *grad_inputs[1:]))
        return out

    return function


def test_gradients_of_another_dtype_are_found() -> None:
    """check_grad_dtypes compares dtypes; the engine checks the shape."""
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"returned an invalid gradient at index 0 - got \[1\]"):
        gradcheck(hooked(lambda g: g[:1]), (x,))
    narrow = hooked(lambda g: g.to(cd.float32))
    assert gradcheck(narrow, (x,))
    text = r"Analytical gradient has incorrect type: candelabra\.float32, the input has candelabra\.float64"
    with pytest.raises(GradcheckError, match=text):
        gradcheck(narrow, (x,), check_grad_dtypes=True)
    assert x.grad is None


def test_gradcheck_is_the_function_whatever_was_imported_first() -> None:
    """The module of the same name can be imported and does not replace the function."""
    code = (
        "from candelabra.autograd.gradcheck import GradcheckError, gradcheck\n"
        "from candelabra import autograd\n"
        "assert autograd.gradcheck is gradcheck\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
