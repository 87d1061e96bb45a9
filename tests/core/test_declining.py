"""Kernels that decline: a call by returning NotImplemented, a dtype by returning None from for_dtype."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import candelabra as cd
import pytest
from candelabra.backend import decline
from candelabra.dtypes import float16, int16
from candelabra.errors import UnsupportedDType
from candelabra.library import declined_kernels

from tests.lantern import LanternBackend


def test_a_declined_call_goes_to_the_composite_body(lantern: LanternBackend) -> None:
    """The kernel is tried first; if it declines, the body serves the call, with its derivative."""
    asked: list[int] = []

    def kernel(x: Any, *rest: Any) -> Any:
        asked.append(len(x.shape))
        return NotImplemented

    undo = cd.register_kernel("lantern", "softmax", kernel)
    try:
        x = cd.tensor([[1.0, 2.0], [3.0, 5.0]], device="lantern", requires_grad=True)
        y = cd.softmax(x, 1)
        y[:, 0].sum().backward()
        expected = cd.softmax(x.detach().to("cpu"), 1)
    finally:
        undo()
    assert asked == [2]
    assert cd.allclose(y.detach().to("cpu"), expected)
    assert x.grad is not None


def test_a_declined_call_goes_to_the_fallback(lantern: LanternBackend) -> None:
    """A declined primitive runs on the reference device, with the warning of every fallback."""
    undo = cd.register_kernel("lantern", "exp", lambda x: NotImplemented)
    try:
        with pytest.warns(cd.errors.FallbackWarning, match=r"'exp' has no kernel for this call on 'lantern:0'"):
            y = cd.tensor([0.0], device="lantern").exp()
    finally:
        undo()
    assert y.tolist() == [1.0]


def failing(x: Any, *rest: Any) -> Any:
    """Decline a call because of an error in the kernel's own code."""
    try:
        return len(3)  # type: ignore[arg-type]
    except TypeError as error:
        return decline(error)


def test_the_first_reason_of_a_kernel_is_kept(lantern: LanternBackend) -> None:
    """The warning, explain and the list of declined kernels have the error that a kernel caught, once per dtype."""
    undo = cd.register_kernel("lantern", "log1p", failing)
    try:
        x = cd.tensor([0.0], device="lantern")
        with pytest.warns(
            cd.errors.FallbackWarning,
            match=r"'log1p' has no kernel for this call on 'lantern:0' \(it was declined: TypeError: object of",
        ):
            x.log1p()
        x.log1p()
        explanation = cd.explain("log1p", x)
        elsewhere = cd.explain("log1p", x.half())
    finally:
        undo()
    assert explanation.route == "native"
    assert explanation.declined is not None
    assert "calls that the kernel declines: step 6, fallback: " in str(explanation)
    assert "the kernel declined a call in this process: TypeError: object of type 'int' has no len()" in str(
        explanation
    )
    assert elsewhere.reason_declined is None
    (found,) = (each for each in declined_kernels() if each.operator == "log1p")
    assert str(found) == "log1p in float32: TypeError: object of type 'int' has no len()"
    assert found.device == "lantern:0"


def test_the_reason_of_a_declined_write_is_kept(lantern: LanternBackend) -> None:
    """An in-place kernel is listed under its own name, and a reason is not taken for that of a later kernel."""
    undo = [
        cd.register_kernel("lantern", "div_", failing),
        cd.register_kernel("lantern", "mul_", lambda *_: NotImplemented),
    ]
    try:
        x = cd.tensor([4.0], device="lantern")
        assert x.div_(2).mul_(3).div_(2).tolist() == [3.0]
    finally:
        for each in undo:
            each()
    reasons = {each.operator: each.reason for each in declined_kernels() if each.operator in ("div_", "mul_")}
    assert reasons == {"div_": "TypeError: object of type 'int' has no len()", "mul_": "no reason given"}


def test_a_declined_view_names_no_remedy_that_does_not_help(lantern: LanternBackend) -> None:
    """The error has the reason, and does not send the tensor to the device where it is."""
    undo = cd.register_kernel("lantern", "view_as_complex", failing)
    try:
        x = cd.zeros(3, 2, device="lantern")
        with pytest.raises(cd.errors.UnsupportedOperator) as caught:
            cd.view_as_complex(x)
        with pytest.raises(RuntimeError, match="must have a last dimension of size 2"):
            cd.view_as_complex(x.t())
    finally:
        undo()
    text = str(caught.value)
    assert "its kernel declined this call (TypeError: object of type 'int' has no len())" in text
    assert "Views never fall back" in text
    assert text.endswith("To go on: x.to('cpu'), whose memory is another")


def test_a_declined_write_is_computed_and_copied(lantern: LanternBackend) -> None:
    """An in-place kernel that declines must not have written; the result is computed and copied to the tensor."""
    undo = cd.register_kernel("lantern", "mul_", lambda x, other: NotImplemented)
    try:
        x = cd.tensor([2.0, 3.0], device="lantern")
        version = x._version
        assert x.mul_(2) is x
    finally:
        undo()
    assert x.tolist() == [4.0, 6.0]
    assert x._version > version


class OfDtype:
    """A kernel that serves one dtype and declines the others."""

    def for_dtype(self, d: Any) -> Any:
        return (lambda x: x) if d is float16 else None

    def __call__(self, *args: Any) -> Any:
        raise AssertionError("asked without a dtype")


def test_a_declined_dtype_goes_on_to_the_next_step(lantern: LanternBackend) -> None:
    """``for_dtype`` is called when a call is resolved; explain shows the step that serves."""
    undo = cd.register_kernel("lantern", "softmax", OfDtype())
    try:
        x = cd.tensor([1.0, 1.0], device="lantern")
        assert cd.softmax(x, 0).tolist() == [0.5, 0.5]
        assert cd.explain("softmax", x, 0).route == "composite"
        assert cd.explain("softmax", x.to(float16), 0).route == "native"
    finally:
        undo()


def test_devices_of_one_type_may_differ(lantern: LanternBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dtype that one device lacks is refused in factories and transfers; other devices of the type support it."""
    from candelabra._device import forget_instances

    every = lantern.capabilities
    fewer = replace(every, storage=every.storage - {int16}, arithmetic=every.arithmetic - {int16})
    monkeypatch.setattr(LanternBackend, "capabilities_of", lambda self, index: fewer if index else every)
    forget_instances("lantern")
    assert cd.ones(2, dtype=int16, device="lantern:0").dtype is int16
    with pytest.raises(UnsupportedDType, match=r"device 'lantern:1' cannot hold candelabra\.int16: it stores"):
        cd.ones(2, dtype=int16, device="lantern:1")
