"""``opcheck``: correct and incorrect operators declared by users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import _journal as journal
from candelabra.autograd import Function
from candelabra.library import OPERATORS, boolean, by, like_input, operator, plugins, pointwise
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.opchecking import TESTS, OpCheckError, opcheck

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]], np.float32)
Tensor = cd.Tensor


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Withdraw the operators that a test declares, with their public names."""
    with journal.Recording() as declared:
        yield
    declared.undo()


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """Return a function that adds a correct second device after the test has declared its operators."""
    made = Mirror("mirror")
    removals: list[Callable[[], None]] = []
    made.add = lambda: removals.append(plugins.add_backend(made))  # type: ignore[attr-defined]
    yield made
    for remove in removals:
        remove()


class Cube(Function):
    """x³, as a user declares it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class WrongCube(Cube):
    """x³ with the derivative of x²."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * 2 * x


class OnceOnly(Cube):
    """x³ with a correct derivative that cannot be differentiated again."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() * x.detach()


def failure(subject: Any, args: Any, test: str, **options: Any) -> str:
    """Return the message of one test, which must be the only one that fails."""
    with pytest.raises(OpCheckError) as caught:
        opcheck(subject, args, **options)
    failed = {t: text for t, text in caught.value.results.items() if text != "passed" and "not applicable" not in text}
    assert test in failed
    assert f"  {test}: {failed[test]}" in str(caught.value)
    return failed[test]


def test_correct_operators_of_all_kinds_pass(mirror: Any) -> None:
    """A record, a Function, a plain function and a user's composite pass, on the reference and another device."""

    @operator(pointwise)
    def softsign_of_mine(x: Tensor) -> Tensor:
        """x / (1 + |x|)"""
        return x / (1 + x.abs())

    softsign_of_mine.vjp(x=lambda g, x: g / (1 + x.abs()) ** 2)
    mirror.add()
    for device in (None, "mirror"):
        for subject in ("exp", OPERATORS["mul"], Cube, softsign_of_mine, lambda x: (x * 2, x.sum())):
            args = (X, X + 3) if subject is OPERATORS["mul"] else (X,)
            results = opcheck(subject, args, device=device)
            assert list(results) == list(TESTS)
            assert results["gradient2"] == "passed"
            assert results["devices"] == ("passed" if device else results["devices"])
    assert opcheck(softsign_of_mine, (X,))["body"] == "passed"


def test_reasons_are_given_where_there_is_nothing_to_check() -> None:
    """A test that does not apply says why."""
    results = opcheck("argmax", (X, 1))
    assert results["gradient"].startswith("not applicable: the record declares that it has no gradient")
    assert results["body"] == "not applicable: the operator has no record with both a body and a derivative"
    assert results["inplace"] == "not applicable: the operator has no record with an in-place form"
    assert "is the reference; name another device" in results["devices"]
    integers = opcheck(lambda x: x + 1, (cd.tensor(3),))
    assert integers["gradient"] == "not applicable: no argument is floating"
    assert integers["layouts"] == "not applicable: no argument has enough dims for another memory layout"
    assert opcheck(lambda x: x > 0, (X,))["gradient"] == "not applicable: no result requires grad"
    assert opcheck(lambda x: x, (X,))["aliasing"].startswith("not applicable: all results are arguments")
    assert opcheck("mul", (X[:1], X))["inplace"] == "not applicable: the result does not fit into the first argument"


def test_wrong_derivatives_are_found() -> None:
    """A wrong first derivative, a wrong second one, and a missing one are reported."""
    assert "Jacobian mismatch" in failure(WrongCube, (X,), "gradient")
    results = opcheck(OnceOnly, (X,), raise_exception=False)
    assert results["gradient"] == "passed"
    assert "Jacobian mismatch" in results["gradient2"]
    cut = cd.tensor(X, requires_grad=True)
    assert failure(lambda x: x.detach(), (cut,), "gradient") == "no result requires grad, although arguments do"


def test_record_whose_derivative_is_not_its_bodys_is_found() -> None:
    """A rule with a wrong factor is reported."""

    @operator(pointwise)
    def doubled_of_mine(x: Tensor) -> Tensor:
        """2 x"""
        return x * 2

    doubled_of_mine.vjp(x=lambda g: g * 2.5)
    text = failure(doubled_of_mine, (X,), "body")
    assert text.startswith("the gradient of tensor 0 differs from that of the body: the values are not close")


def test_gradient_that_only_the_body_has_is_found() -> None:
    """A rule that covers one of two inputs is reported."""

    @operator(pointwise)
    def product_of_mine(x: Tensor, y: Tensor) -> Tensor:
        """x y"""
        return x * y

    product_of_mine.vjp(x=lambda g, y: g * y)
    assert failure(product_of_mine, (X, X + 1), "body") == (
        "the gradient of tensor 1 differs from that of the body: the record has none"
    )


def test_writing_to_an_argument_is_found() -> None:
    """A write is reported unless the argument is returned, and so is a version counter that does not change."""

    def sneaky(x: Tensor) -> Tensor:
        out = x * 2
        x.zero_()
        return out

    assert "tensor 0 of the arguments was written to, but is not the result" in failure(
        sneaky, (X,), "inputs", tests=["inputs"]
    )
    assert opcheck(lambda x: x.mul_(2), (X,), tests=["inputs"]) == {"inputs": "passed"}

    def silent(x: Tensor) -> Tensor:
        x.data.zero_()
        return x

    assert "its version counter did not change" in failure(silent, (X,), "inputs", tests=["inputs"])


def test_hidden_sharing_of_memory_is_found() -> None:
    """``.data`` shares memory without autograd's knowledge; a view is declared."""
    assert failure(lambda x: x.data[:1], (X,), "aliasing", tests=["aliasing"]) == (
        "result 0 shares memory with an argument, but is not a view of it: autograd cannot detect writes"
    )
    assert opcheck(lambda x: x[:1].T, (X,), tests=["aliasing"]) == {"aliasing": "passed"}
    assert opcheck("transpose", (X, 0, 1), tests=["aliasing"]) == {"aliasing": "passed"}


def test_record_that_says_view_and_copies_is_found(mirror: Any) -> None:
    """A copy has its own version counter."""

    @operator(like_input, view=True)
    def glance_of_mine(x: Tensor) -> Tensor:
        """Return a copy although the record declares a view."""
        return x.clone()

    assert "the record declares a view" in failure(glance_of_mine, (X,), "aliasing", tests=["aliasing"])


def test_rules_of_a_record_are_held_against_what_comes_out() -> None:
    """Shape and dtype of the result must agree with the rules."""

    @operator(by(lambda x: (*x.shape, 1)))
    def shape_of_mine(x: Tensor) -> Tensor:
        """Return the input."""
        return x * 1

    @operator(pointwise, result=boolean)
    def dtype_of_mine(x: Tensor) -> Tensor:
        """Return the input."""
        return x * 1

    text = failure(shape_of_mine, (X,), "result", tests=["result"])
    assert text == "result 0 has shape [2, 3], the rule '<lambda>' says [2, 3, 1]"
    text = failure(dtype_of_mine, (X,), "result", tests=["result"])
    assert text == "result 0 is float32; computed in float32, the record says bool"
    assert "the result contains no tensor" in failure(lambda x: None, (X,), "result", tests=["result"])


def test_payload_of_another_dtype_is_found(mirror: Any) -> None:
    """A kernel that returns float64 for float32 is reported."""

    def wider(kernel: Any) -> Any:
        def run(x: Any) -> Any:
            made = kernel(x)
            made.inner = made.inner.astype(np.float64)
            return made

        return run

    mirror.table["exp"] = wider(mirror.table["exp"])
    mirror.add()
    text = failure("exp", (X,), "result", tests=["result"], device="mirror")
    assert text == "result 0: the payload's dtype is float64, the tensor's float32"


def test_result_on_another_device_is_found(mirror: Any) -> None:
    """A function that ignores the device of its argument is reported."""
    mirror.add()
    host = plugins.reference_device()
    text = failure(lambda x: cd.ones(1, device=host), (X,), "result", tests=["result"], device="mirror")
    assert text == f"result 0 is on {host}, not on mirror:0"


def test_other_values_on_another_device_are_found(mirror: Any) -> None:
    """Records are compared within the derived bounds, functions within their dtype's tolerances; shapes too."""
    kernel = mirror.table["exp"]

    def wrong(x: Any) -> Any:
        made = kernel(x)
        made.inner *= np.float32(1.01)
        return made

    mirror.table["exp"] = wrong
    mirror.add()
    for subject in ("exp", lambda x: x.exp()):
        text = failure(subject, (X,), "devices", tests=["devices"], device="mirror")
        assert text.startswith("mirror:0 gives other values than the reference: the values are not close")


def test_kernels_that_depend_on_layout_are_found(mirror: Any) -> None:
    """A kernel that is wrong only for transposed arguments is reported."""
    kernel = mirror.table["exp"]

    def wrong(x: Any) -> Any:
        made = kernel(x)
        if not x.inner.flags.c_contiguous:
            made.inner += 1
        return made

    mirror.table["exp"] = wrong
    mirror.add()
    text = failure("exp", (X,), "layouts", tests=["layouts"], device="mirror")
    assert text.startswith("arguments laid out as 'transposed' give other values: ")


def test_layouts_of_values_that_an_operator_cannot_take_are_passed_over() -> None:
    """A matrix with equal rows has no inverse, so only the other layouts are tried."""
    matrix = np.array([[2.0, 1.0], [0.5, 3.0]], np.float64)
    for subject in ("linalg_inv_ex", cd.linalg.inv):
        assert opcheck(subject, (matrix,), tests=["layouts"]) == {"layouts": "passed"}


def test_non_determinism_is_found() -> None:
    """A function that counts its calls is reported."""
    calls: list[int] = []

    def counting(x: Tensor) -> Tensor:
        calls.append(1)
        return x + len(calls)

    assert failure(counting, (X,), "determinism", tests=["determinism"]) == (
        "the second call with the same arguments returned different bits"
    )


def test_in_place_forms_are_held_against_the_function(mirror: Any) -> None:
    """A wrong in-place kernel is reported as a difference of values."""
    kernel = mirror.table["exp_"]

    def wrong(x: Any) -> Any:
        kernel(x)
        x.inner[0] += 1

    mirror.table["exp_"] = wrong
    mirror.add()
    text = failure("exp", (X,), "inplace", tests=["inplace"], device="mirror")
    assert text.startswith("the in-place form leaves other values: the values are not close")


def test_in_place_forms_that_lose_their_target_are_found() -> None:
    """An in-place form that returns a copy, or that leaves the version counter unchanged, is reported."""

    @operator(pointwise)
    def tripled_of_mine(x: Tensor) -> Tensor:
        """3 x"""
        return x * 3

    tripled_of_mine._functions["inplace"] = lambda x: x * 3
    text = failure(tripled_of_mine, (X,), "inplace", tests=["inplace"])
    assert text == "the in-place form does not return its first argument"

    def silent(x: Tensor) -> Tensor:
        x.data.mul_(3)
        return x

    tripled_of_mine._functions["inplace"] = silent
    text = failure(tripled_of_mine, (X,), "inplace", tests=["inplace"])
    assert text == "the in-place form did not change the version counter"


def test_what_a_device_says_of_itself_is_heeded(lantern: object) -> None:
    """Immutable arrays may share memory, and a declared lack of determinism is not a fault."""
    assert opcheck("exp", (X,), device="ember", tests=["aliasing"])["aliasing"] == (
        "not applicable: arrays of ember:0 never change"
    )


def test_declared_non_determinism_is_heeded(mirror: Any) -> None:
    """The backend lists the operator as non-deterministic."""
    mirror.capabilities = replace(mirror.capabilities, nondeterministic=frozenset({"exp"}))
    mirror.add()
    assert opcheck("exp", (X,), device="mirror", tests=["determinism"])["determinism"] == (
        "not applicable: mirror:0 declares the operator non-deterministic"
    )


def test_small_values_are_held_to_the_derived_bound(mirror: Any) -> None:
    """An error within ``assert_close``'s absolute tolerance is reported, and so is a different shape."""
    kernel = mirror.table["exp"]

    def wrong(x: Any) -> Any:
        made = kernel(x)
        if made.inner.ndim == 2:
            return type(made)(made.inner[:1], made.index, made.memory)
        made.inner *= np.float32(1.01)
        return made

    mirror.table["exp"] = wrong
    mirror.add()
    small = np.full(3, -14, np.float32)
    text = failure("exp", (small,), "devices", tests=["devices"], device="mirror")
    assert text == "3 of 3 values are further from the reference than the bound"
    text = failure("exp", (X,), "devices", tests=["devices"], device="mirror")
    assert text == "shape [1, 3], on the reference [2, 3]"


def test_errors_of_the_operator_are_its_results() -> None:
    """The test's message has the error that the operator raised."""

    def raising(x: Tensor) -> Tensor:
        raise KeyError("mine")

    results = opcheck(raising, (X,), raise_exception=False)
    assert results["result"] == "KeyError: 'mine'"


def test_tensors_that_require_grad_are_the_ones_differentiated() -> None:
    """A wrong derivative of the second argument is ignored if it does not require grad; arguments are unchanged."""

    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g * 7

    x, y = cd.tensor(X, requires_grad=True), cd.tensor(X)
    assert opcheck(Half, (x, y))["gradient"] == "passed"
    assert "Jacobian mismatch" in failure(Half, (X, X + 1), "gradient")
    assert x.grad is None
    assert np.array_equal(x.detach().numpy(), X)


def test_devices_without_float64_have_their_gradients_checked_all_the_same(lantern: object) -> None:
    """They are computed on the reference, in float64."""
    assert opcheck("exp", (X,), device="lantern:0")["gradient"] == "passed"


def test_invalid_calls_are_reported() -> None:
    """An unknown test, and a subject that is not an operator, are errors."""
    with pytest.raises(ValueError, match="there is no test 'speed'; the tests are inputs, result"):
        opcheck("exp", (X,), tests=["speed"])
    with pytest.raises(ValueError, match="there is no operator 'inv'; pass a function itself"):
        opcheck("inv", (X,))
    with pytest.raises(TypeError, match="expects an operator, its name, an autograd Function or a function, got 3"):
        opcheck(3, (X,))
