"""Dispatch: the step that serves a call, late kernels, composites, the fallback policy, and `explain`."""

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.errors import BackendError, FallbackWarning, UnsupportedOperator

quietly = pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")


def test_routes_of_concrete_calls() -> None:
    """`explain` shows the step that serves a call, with the reason, and does not run it."""
    x = cd.ones(3)
    y = x.clone().requires_grad_()
    assert cd.explain("mul", x, x).route == "native"
    assert cd.explain("mul", x, x).reason.startswith("kernel 'mul' of backend 'cpu'")
    assert cd.explain("mul", y, x).gradient == "its own; recorded"
    with cd.no_grad():
        assert "grad mode is off" in cd.explain("mul", y, x).gradient
    routes = [step.route for step in cd.explain("exp", cd.arange(3)).steps]
    assert routes == ["promotion", "native"]
    assert cd.explain("mul_", x, 2.0).operator == "mul_"
    assert x.tolist() == [1, 1, 1]
    assert "float32" in cd.explain("mul", x, 2.0).key
    assert " => 4. native: kernel 'mul'" in str(cd.explain("mul", x, x))


def test_explain_of_an_overload_set_explains_the_member_that_serves() -> None:
    """The arguments select the operator, which is not run."""
    x = cd.ones(2, 2)
    assert cd.explain(cd.max, x, 0).operator == "max_dim"
    assert cd.explain("max", x).operator == "amax"
    assert cd.explain("max", x, x).operator == "maximum"


def test_explain_of_a_public_callable_explains_its_operators() -> None:
    """It is run, and every operator that it calls is explained."""
    found = cd.explain(cd.split, cd.ones(4, 2), 2)
    assert found.route == "callable"
    assert found.calls
    assert all(call.route in ("native", "composite", "strided") for call in found.calls)


def test_explain_of_a_public_callable_tells_its_operators() -> None:
    """It is run, and every operator that it calls is explained."""
    told = cd.explain(cd.gradient, cd.ones(2, 2))
    assert told.route == "callable"
    assert told.calls
    assert all(call.route in ("native", "composite", "strided") for call in told.calls)


def test_explain_refuses_strangers() -> None:
    """An object that is not an operator is a TypeError."""
    with pytest.raises(TypeError, match="there is no operator 'nonsense'"):
        cd.explain("nonsense")
    with pytest.raises(TypeError, match="expects an operator, its name or a function, got 3"):
        cd.explain(3)


def test_late_kernel_serves_from_the_next_call_on() -> None:
    """A late kernel replaces resolved calls; undo functions work in any order, once each."""
    x = cd.ones(2)
    assert (x * 3).tolist() == [3, 3]
    original = cd.get_kernel("cpu", "mul")
    undo_first = cd.register_kernel("cpu", "mul", lambda a, b: a - b)
    assert (x * 3).tolist() == [-2, -2]
    second = lambda a, b: a + b  # noqa: E731 - a kernel in one line
    undo_second = cd.register_kernel("cpu", "mul", second)
    assert cd.get_kernel("cpu", "mul") is second
    undo_first()
    assert (x * 3).tolist() == [4, 4]
    undo_second()
    undo_second()
    assert (x * 3).tolist() == [3, 3]
    assert cd.get_kernel("cpu", "mul") is original


def test_late_kernel_is_checked() -> None:
    """Unknown operators and objects that are not callable are refused without effect."""
    with pytest.raises(BackendError, match="has a kernel for 'nonsense', but no operator has that name"):
        cd.register_kernel("cpu", "nonsense", lambda x: x)
    with pytest.raises(BackendError, match="the kernel of 'mul' is not callable: 3"):
        cd.register_kernel("cpu", "mul", 3)
    with pytest.raises(BackendError, match="backend 'cpu' has no kernel 'nonsense'"):
        cd.get_kernel("cpu", "nonsense")


def test_override_of_a_composite_serves_inference_only() -> None:
    """A backend's kernel of a composite without a derivative is skipped if a gradient is required."""
    from candelabra._records.registry import OPERATORS

    name = next(
        n for n, op in sorted(OPERATORS.items())
        if op.body is not None and not op.differentiable and op.not_differentiable is None
        and [p.kind for p in op.schema.parameters] == ["tensor"] and op.schema.result is None and not op.view
    )  # fmt: skip
    x = cd.ones(2)
    undo = cd.register_kernel("cpu", name, lambda a: a * 0 + 42)
    try:
        assert cd.explain(name, x).route == "native"
        asked = cd.explain(name, x.requires_grad_())
        assert asked.route == "composite"
        assert "inference only" in asked.reason
    finally:
        undo()


@quietly
@pytest.mark.usefixtures("lantern")
def test_fallback_policy_for_all_and_for_one_operator() -> None:
    """ "error" forbids the fallback, for all operators or for the named ones, and only inside its block."""
    x = cd.ones(3, device="lantern")
    with cd.fallback("error"), pytest.raises(UnsupportedOperator, match="The fallback policy is 'error'"):
        x.cumsum(0)
    with cd.fallback("error", ["cumsum"]):
        with pytest.raises(
            UnsupportedOperator, match=r"'cumsum' is not available on device 'lantern:0'.*Kernels exist on: cpu"
        ):
            x.cumsum(0)
        assert x.cumprod(0).tolist() == [1, 1, 1]
    assert x.cumsum(0).tolist() == [1, 2, 3]
    with (
        pytest.raises(ValueError, match=r'fallback\(\) expects "allow" or "error", got \'perhaps\''),
        cd.fallback("perhaps"),
    ):
        pass


@pytest.mark.usefixtures("lantern")
def test_fallback_is_explained_counted_and_said_once() -> None:
    """`explain` shows the route "fallback"; the call warns once per operator and device and counts each time."""
    x = cd.ones(3, device="lantern")
    assert cd.explain("cumsum", x, 0).route == "fallback"
    assert cd.fallback_counts() == {}
    with pytest.warns(FallbackWarning, match="'cumsum' has no kernel on 'lantern:0'"):
        x.cumsum(0)
    x.cumsum(0)
    assert cd.fallback_counts()["lantern:0", "cumsum"] == 2


@quietly
@pytest.mark.usefixtures("lantern")
def test_write_through_a_fallback_reaches_the_original() -> None:
    """An in-place operator that falls back changes the tensor on its own device, also through a view."""
    x = cd.zeros(2, 2, device="lantern")
    x[1].add_(1).sinh_()
    assert x[0].tolist() == [0, 0]
    assert x[1].tolist() == pytest.approx([1.1752, 1.1752], rel=1e-4)


@quietly
@pytest.mark.usefixtures("lantern")
def test_views_never_fall_back() -> None:
    """A view without strides or a kernel is an error, since later writes to a copy would be lost."""
    with pytest.raises(UnsupportedOperator, match=r"'view_as_complex' is not available.*Views never fall back"):
        cd.ones(2, 2, device="ember").view_as_complex()


@quietly
@pytest.mark.usefixtures("lantern")
def test_late_kernel_ends_a_fallback() -> None:
    """A late kernel immediately serves calls that fell back before."""
    x = cd.ones(3, device="lantern")
    x.cumsum(0)
    from candelabra._plugins import registry

    backend, _ = registry.backend("lantern")
    import numpy as np

    undo = cd.register_kernel(
        "lantern", "cumsum", backend.serving("cumsum", lambda a, dim, dtype: np.cumsum(a, dim) * 2)
    )  # type: ignore[attr-defined]
    assert x.cumsum(0).tolist() == [2, 4, 6]
    undo()
    assert x.cumsum(0).tolist() == [1, 2, 3]


def test_a_kernel_may_be_chosen_by_dtype_once() -> None:
    """``for_dtype`` returns the function for a dtype when the call is resolved; later calls use that function."""
    asked = []

    def kernel(x: Any) -> Any:
        raise AssertionError("the general function serves no call")

    def for_dtype(dtype: Any) -> Any:
        asked.append(dtype)
        return lambda x: np.full_like(x, dtype.itemsize)

    kernel.for_dtype = for_dtype  # type: ignore[attr-defined]
    undo = cd.register_kernel("cpu", "exp", kernel)
    try:
        single, double = cd.ones(2), cd.ones(2, dtype=cd.float64)
        assert [cd.exp(x).tolist() for x in (single, double, single)] == [[4, 4], [8, 8], [4, 4]]
        assert asked == [cd.float32, cd.float64]
    finally:
        undo()


def test_an_in_place_kernel_may_serve_some_dtypes_only() -> None:
    """``for_dtype`` is called for in-place forms too; if it returns None, the operator's result is copied."""

    def kernel(x: Any) -> Any:
        raise AssertionError("the general function serves no call")

    def fill(x: Any) -> Any:
        x[...] = 7
        return x

    kernel.for_dtype = lambda dtype: fill if dtype is cd.float32 else None  # type: ignore[attr-defined]
    undo = cd.register_kernel("cpu", "exp_", kernel)
    try:
        assert cd.zeros(2).exp_().tolist() == [7, 7]
        assert cd.zeros(2, dtype=cd.float64).exp_().tolist() == [1, 1]
    finally:
        undo()


def test_modes_are_counted_by_thread() -> None:
    """If no thread has a mode enabled, calls skip the thread's state; nested modes count once."""
    from candelabra._keys import active, state

    before = len(active)
    with cd.no_grad(), cd.inference_mode():
        assert len(active) == before + 1
        with cd.enable_grad():
            assert state.bits
    assert len(active) == before
    assert state.bits == 0
