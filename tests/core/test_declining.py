"""Kernels that decline: a call by returning NotImplemented, a dtype by returning None from for_dtype."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import candelabra as cd
import pytest
from candelabra.dtypes import float16, int16
from candelabra.errors import UnsupportedDType

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
        with pytest.warns(cd.errors.FallbackWarning, match=r"'exp' has no kernel on 'lantern:0'"):
            y = cd.tensor([0.0], device="lantern").exp()
    finally:
        undo()
    assert y.tolist() == [1.0]


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
