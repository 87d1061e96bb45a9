"""Lazy devices: the core has payloads computed at known points, so that the record of pending work stays short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import candelabra as cd
import candelabra_arrayapi
import numpy as np
import pytest
from candelabra._autograd.pending import WRITES
from candelabra._device import lazy_instances
from candelabra._plugins import registry
from candelabra.backend import Backend, Capabilities, DeviceInfo, Kernel
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS

from tests.lantern import NUMPY, silent

DTYPES = frozenset(NUMPY)
FROM_NUMPY = {held: d for d, held in NUMPY.items()}


class Recorded:
    """A payload. Until it is computed it keeps its inputs, as a node of a recorded graph does."""

    alive = 0

    def __init__(self, array: Any, inputs: Sequence[Recorded] = ()) -> None:
        self.array = np.asarray(array)
        self.inputs = inputs
        self.shape = self.array.shape
        Recorded.alive += 1

    def __del__(self) -> None:
        Recorded.alive -= 1

    def compute(self) -> None:
        """Release the inputs of this payload and of all that it depends on."""
        stack: list[Recorded] = [self]
        while stack:
            node = stack.pop()
            stack += node.inputs
            node.inputs = ()


def recorded(kernel: Kernel) -> Kernel:
    """Return the kernel on recorded payloads."""

    def run(*args: Any) -> Any:
        given = [v for a in args for v in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(v, Recorded)]
        result = kernel(*[_array(a) for a in args])
        return tuple(Recorded(r, given) for r in result) if isinstance(result, tuple) else Recorded(result, given)

    return run


def _array(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_array(v) for v in value)
    return value.array if isinstance(value, Recorded) else value


class LazyBackend(Backend):
    """An immutable array library that records its calls until an array is read or evaluated."""

    name = "lazy"
    api = ((1, 1), (1, 1))
    capabilities = Capabilities(storage=DTYPES, arithmetic=DTYPES, strided=False, mutable=False)

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a recorder")]

    def kernels(self) -> Mapping[str, Kernel]:
        table = candelabra_arrayapi.kernels(np, NUMPY, strided=False)
        return {name: recorded(silent(kernel)) for name, kernel in table.items() if name in OPERATORS}

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Recorded:
        return Recorded(np.zeros(shape, NUMPY[dtype]))

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Recorded:
        return Recorded(np.frombuffer(data, NUMPY[dtype]).reshape(shape).copy())

    def to_host(self, payload: Recorded) -> memoryview:
        payload.compute()
        return memoryview(np.ascontiguousarray(payload.array).reshape(-1).view(np.uint8))

    def dtype_of(self, payload: Recorded) -> dtype:
        return FROM_NUMPY[payload.array.dtype]

    def copy_(self, destination: Recorded, source: Recorded) -> Recorded:
        return source

    def evaluate(self, payloads: Sequence[Recorded]) -> None:
        for payload in payloads:
            payload.compute()


@pytest.fixture
def lazy() -> Iterator[LazyBackend]:
    """Install a lazy device for one test."""
    made = LazyBackend()
    remove = registry.add_backend(made)
    yield made
    remove()


def trained(steps: int) -> int:
    """Train without a read, with momentum and a running statistic, and return the number of payloads that remain."""
    w = cd.ones(3, device="lazy", requires_grad=True)
    momentum, running = (cd.zeros(3, device="lazy") for _ in range(2))
    x = cd.ones(4, 3, device="lazy")
    for _ in range(steps):
        w.grad = None
        ((x * w).sum() * 0.5).backward()
        assert w.grad is not None
        with cd.no_grad():
            momentum.mul_(0.9).add_(w.grad)
            w.sub_(momentum * 1e-3)
            running.mul_(0.9).add_(x[0] * 0.1)
    return Recorded.alive


def test_training_that_reads_nothing_keeps_a_bounded_record(lazy: LazyBackend) -> None:
    """The number of payloads alive does not depend on the number of steps."""
    assert trained(40) == trained(10) < 100


def test_a_device_that_is_never_asked_records_without_end(lazy: LazyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first test measures grows with each step if the device ignores the request to compute."""
    monkeypatch.setattr(LazyBackend, "evaluate", lambda self, payloads: None)
    assert trained(40) > trained(10) + 100


def accumulated(steps: int) -> int:
    """Add to a tensor in place, without a backward pass, and return the largest number of payloads alive."""
    total, x = cd.zeros(3, device="lazy"), cd.ones(3, device="lazy")
    most = 0
    for _ in range(steps):
        total += x * 2
        most = max(most, Recorded.alive)
    return most


def test_writes_without_a_backward_pass_are_computed_from_time_to_time(lazy: LazyBackend) -> None:
    """A loop that only accumulates keeps at most the record of the last writes."""
    assert accumulated(20 * WRITES) == accumulated(3 * WRITES) < 4 * WRITES


def test_writes_through_views_are_computed_with_the_base(lazy: LazyBackend) -> None:
    """A write through a view replaces the payload of its base, which is then computed from time to time."""
    base = cd.zeros(2, 3, device="lazy")
    row = base[0]
    for _ in range(10 * WRITES):
        row += 1
    assert Recorded.alive < 10 * WRITES
    assert base.tolist() == [[10.0 * WRITES] * 3, [0.0] * 3]


def test_captured_gradients_are_computed(lazy: LazyBackend) -> None:
    """`autograd.grad` returns computed gradients, and skips those of unused inputs."""
    x, unused = (cd.ones(3, device="lazy", requires_grad=True) for _ in range(2))
    g, none = cd.autograd.grad((x * x).sum(), (x, unused), allow_unused=True)
    assert g is not None
    assert not g._payload.inputs
    assert none is None


def test_other_devices_are_never_asked(lazy: LazyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a backend with a method of its own is lazy, and only open devices are; a removed one is forgotten."""
    asked: list[Any] = []
    monkeypatch.setattr(Backend, "evaluate", lambda self, payloads: asked.append(payloads))
    cd.ones(1, device="lazy")
    assert [str(instance.device) for instance in lazy_instances] == ["lazy:0"]
    x = cd.ones(3, requires_grad=True)
    x.sum().backward()
    assert asked == []


def test_no_device_is_lazy_after_its_removal() -> None:
    """The list of lazy devices is empty again, so that backward passes cost what they did."""
    assert lazy_instances == []


def test_the_default_method_does_nothing(lazy: LazyBackend) -> None:
    """A backend that computes at once need not override the method."""
    call: Callable[..., None] = Backend.evaluate
    assert call(lazy, [object()]) is None
