"""A backend implemented on other devices: modes belong to a level, and the graph of the lower level continues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import candelabra as cd
import pytest
from candelabra.backend import Backend, Capabilities, DeviceInfo, hookimpl
from candelabra.dtypes import ALL, dtype
from candelabra.errors import UnsupportedOperator
from candelabra.library import OPERATORS, add_contribution, level, open_device, own_kernels, plugins, redispatch, wrap


class NestedPayload:
    """A payload that contains a tensor of the lower level."""

    def __init__(self, tensor: cd.Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)


def nested_kernel(name: str) -> Any:
    """Return a kernel that runs the operator on the contained tensors."""

    def kernel(*args: Any) -> Any:
        found = redispatch(OPERATORS[name], tuple(a.tensor if isinstance(a, NestedPayload) else a for a in args))
        return NestedPayload(found)

    return kernel


class NestedBackend(Backend):
    """A backend that runs all operators on the tensors in its payloads."""

    name = "over"
    capabilities = Capabilities(frozenset(ALL), frozenset(ALL), strided=False, virtual=True)

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo("over another device")]

    def kernels(self) -> dict[str, Any]:
        names = ("add", "mul", "exp", "sub", "sum", "amax", "div", "neg", "expand", "view", "clone", "unsqueeze")
        return {name: nested_kernel(name) for name in (*names, "log", "cast", "softmax_backward", "new_full")}

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> NestedPayload:
        return NestedPayload(cd.empty(shape, dtype=dtype))

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> NestedPayload:
        host = open_device().backend.from_host(0, data, shape, dtype)
        return NestedPayload(wrap(host, open_device().keys_for(dtype)))

    def to_host(self, payload: NestedPayload) -> memoryview:
        return open_device().backend.to_host(payload.tensor._payload)

    def dtype_of(self, payload: NestedPayload) -> dtype:
        return payload.tensor.dtype

    def copy_(self, destination: NestedPayload, source: NestedPayload) -> NestedPayload:
        destination.tensor.copy_(source.tensor)
        return destination


@contextmanager
def nested_device() -> Iterator[Any]:
    """Register the device and enter its level."""
    remove = plugins.add_backend(NestedBackend())
    try:
        instance = open_device("over")
        with level(instance):
            yield instance
    finally:
        remove()


def nested_tensor(instance: Any, tensor: cd.Tensor) -> cd.Tensor:
    """Return a tensor of the virtual device that contains another one."""
    return wrap(NestedPayload(tensor), instance.keys_for(tensor.dtype))


def test_a_composite_with_a_derivative_loses_no_outer_derivative() -> None:
    """softmax runs its body without recording, which must not affect the contained tensors."""
    x = cd.tensor([0.5, -1.0, 2.0], requires_grad=True)
    with nested_device() as instance:
        y = cd.softmax(nested_tensor(instance, x), 0)
        assert y.requires_grad is False
        inner = y._payload.tensor
    assert inner.requires_grad
    (found,) = cd.autograd.grad(inner[0], x)
    (wanted,) = cd.autograd.grad(cd.softmax(x, 0)[0], x)
    assert cd.allclose(found, wanted)


def test_the_engine_of_one_level_records_on_the_one_below() -> None:
    """A gradient is a function of the outer tensors, so its derivative is the second one."""
    x = cd.tensor([0.5, -1.0], requires_grad=True)
    with nested_device() as instance:
        y = nested_tensor(instance, x).requires_grad_()
        (slope,) = cd.autograd.grad((y * y * y).sum(), y)
        inner = slope._payload.tensor
    (curve,) = cd.autograd.grad(inner.sum(), x)
    assert curve.tolist() == pytest.approx([3.0, -6.0])


def test_kernels_run_under_the_modes_at_entry() -> None:
    """no_grad around the level applies inside it; no_grad inside the level applies only to the level."""
    x = cd.tensor([1.0], requires_grad=True)
    with cd.no_grad(), nested_device() as instance:
        assert not (nested_tensor(instance, x) * 2)._payload.tensor.requires_grad
    with nested_device() as instance:
        with cd.no_grad():
            y = nested_tensor(instance, x).requires_grad_() * 2
        assert y._payload.tensor.requires_grad
        assert not y.requires_grad
        with cd.no_grad(), level(instance):
            assert not (nested_tensor(instance, x) * 2)._payload.tensor.requires_grad
        assert (nested_tensor(instance, x) * 2)._payload.tensor.requires_grad


def test_a_virtual_device_never_falls_back() -> None:
    """The reference device would lose the level, so an operator without a kernel is an error that says so."""
    with (
        nested_device() as instance,
        pytest.raises(UnsupportedOperator, match=r"'lgamma' is not available.*never fall back"),
    ):
        cd.lgamma(nested_tensor(instance, cd.ones(2)))


class ExpAndTwo:
    """A contribution whose exp returns ``x + 2``."""

    @hookimpl
    def candelabra_kernels(self) -> dict[str, Any]:
        return {"exp": lambda x: x + 2}


def test_own_kernels_reaches_the_devices_below_a_level() -> None:
    """The mode belongs to no level: it is the thread's, also if the level was entered before or after it."""
    remove = add_contribution("cpu", ExpAndTwo())
    try:
        with nested_device() as instance:
            x = nested_tensor(instance, cd.zeros(2))
            assert x.exp()._payload.tensor.tolist() == [2.0, 2.0]
            with own_kernels():
                assert x.exp()._payload.tensor.tolist() == [1.0, 1.0]
        with own_kernels(), nested_device() as instance:
            assert nested_tensor(instance, cd.zeros(2)).exp()._payload.tensor.tolist() == [1.0, 1.0]
    finally:
        remove()
