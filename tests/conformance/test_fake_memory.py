"""The fake accelerator's memory: poisoned, inaccessible to the host, counted, and limited."""

import struct
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra.dtypes import ALL, dtype
from candelabra.errors import OutOfMemoryError
from candelabra_conformance.fake import FakeAccelerator, FakeArray, after, every, installed, larger_than, poison


@pytest.fixture
def fake() -> Iterator[FakeAccelerator]:
    """Install the fake accelerator with its defaults for one test."""
    with installed() as made:
        yield made


# -- poison -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_new_memory_is_poisoned(fake: FakeAccelerator, d: dtype) -> None:
    """The poison is NaN in floating and complex dtypes, an arbitrary number in integer dtypes, and True in bool."""
    x = cd.empty(2, 2, dtype=d, device="fake")
    assert bytes(fake.to_host(x._payload)) == poison(d) * 4
    if d.is_floating_point or d.is_complex:
        assert x.isnan().all().item()
    elif d.name != "bool":
        assert all(abs(value) > 64 for value in x.reshape(-1).tolist())


def test_poison_is_a_quiet_nan_with_a_payload() -> None:
    """The bit pattern of the poison is not the result of any arithmetic."""
    (bits,) = struct.unpack("=I", poison(cd.float32))
    assert bits & 0x7FC00000 == 0x7FC00000
    assert bits & 0x003FFFFF
    assert poison(cd.complex64) == poison(cd.float32) * 2


def test_freed_memory_is_poisoned(fake: FakeAccelerator) -> None:
    """Memory is poisoned when the last array that uses it is deleted, and not before."""
    x = cd.tensor([1.0, 2.0], device="fake")
    hidden, view = x._payload._hidden, x[1:]
    del x
    assert fake.reference.to_host(hidden).cast("f").tolist() == [1, 2]
    del view
    assert bytes(fake.reference.to_host(hidden)) == poison(cd.float32) * 2


def test_memory_lives_as_long_as_the_work_that_needs_it(fake: FakeAccelerator) -> None:
    """A tensor may be deleted before its stream has run."""
    x = cd.tensor([1.0, 2.0], device="fake")
    y = (x * 2 + 1).sin_()
    del x
    assert y.to("cpu").tolist() == cd.tensor([3.0, 5.0]).sin().tolist()


def test_without_poison_new_memory_is_zero() -> None:
    """Without poison, programs that read uninitialised memory get zeros."""
    with installed(poison=False):
        assert cd.empty(3, device="fake").tolist() == [0, 0, 0]


# -- host access ------------------------------------------------------------------------------------------------------
def test_an_array_offers_its_shape_and_nothing_else(fake: FakeAccelerator) -> None:
    """An array has no buffer, no `__array__`, no length, no truth value, no comparison and no hash."""
    payload: Any = cd.ones(2, device="fake")._payload
    assert isinstance(payload, FakeArray)
    assert [name for name in dir(payload) if not name.startswith("_")] == ["shape"]
    assert not {"__array__", "__dlpack__", "__len__", "__iter__", "__float__", "__array_interface__"} & set(
        dir(payload)
    )
    with pytest.raises(TypeError, match="has no truth value: its content is not in the host's memory"):
        bool(payload)
    with pytest.raises(TypeError, match="cannot be compared: its content is not in the host's memory"):
        _ = payload == payload
    with pytest.raises(TypeError, match="unhashable"):
        hash(payload)
    with pytest.raises(TypeError, match="bytes-like object is required"):
        memoryview(payload)


def test_what_comes_to_the_host_is_a_copy(fake: FakeAccelerator) -> None:
    """A later write on the device does not change bytes that were copied to the host before."""
    x = cd.tensor([1.0, 2.0, 3.0] * 10, device="fake")
    seen = fake.to_host(x._payload)
    x.zero_()
    cd.fake.synchronize()
    assert seen.cast("f")[:3].tolist() == [1, 2, 3]


def test_what_came_from_the_host_is_a_copy(fake: FakeAccelerator) -> None:
    """The source on the host may change after the call."""
    data = bytearray(struct.pack("=2f", 1, 2))
    payload = fake.from_host(0, memoryview(data), (2,), cd.float32)
    data[:] = bytes(8)
    assert fake.to_host(payload).cast("f").tolist() == [1, 2]


def test_memory_of_another_device_cannot_be_read(fake: FakeAccelerator) -> None:
    """Kernels and copies refuse arrays of another index, of another device type, and of the host."""
    add = fake.kernels()["add"]
    here, there = (fake.empty(index, (2,), cd.float32) for index in (0, 1))
    with pytest.raises(RuntimeError, match=r"^add: memory of fake:1 cannot be read from fake:0$"):
        add(here, there)
    with pytest.raises(RuntimeError, match=r"^cat: memory of fake:1 cannot be read from fake:0$"):
        fake.kernels()["cat"]([here, there], 0)
    with pytest.raises(RuntimeError, match=r"^copy_: memory of fake:1 cannot be read from fake:0$"):
        fake.copy_(here, there)
    with installed("other") as other:
        foreign = other.empty(0, (2,), cd.float32)
    with pytest.raises(RuntimeError, match=r"^add: memory of other:0 cannot be read from fake:0$"):
        add(here, foreign)
    with pytest.raises(RuntimeError, match=r"^add: fake:0 cannot read the memory of a \w+$"):
        add(here, cd.ones(2)._payload)


def test_transfers_between_the_devices_keep_values(fake: FakeAccelerator) -> None:
    """A transfer waits for results that are not computed yet."""
    y = (cd.tensor([1.0, 2.0], device="fake") * 2).to("fake:1")
    assert str(y.device) == "fake:1"
    assert y.tolist() == [2, 4]


# -- statistics and limits --------------------------------------------------------------------------------------------
def test_memory_is_counted_per_device(fake: FakeAccelerator) -> None:
    """The counters are bytes in use, their maximum, the bytes that a pool keeps and releases, and allocations."""
    x = cd.empty(100, device="fake")
    y = cd.empty(50, device="fake")
    view = x[10:]
    assert dict(fake.memory(0)) == {"allocated": 600, "reserved": 600, "peak": 600, "allocations": 2}
    assert dict(fake.memory(1)) == {"allocated": 0, "reserved": 0, "peak": 0, "allocations": 0}
    del x, y
    assert (cd.fake.memory_allocated(), cd.fake.memory_reserved(), cd.fake.max_memory_allocated()) == (400, 600, 600)
    cd.fake.empty_cache()
    assert cd.fake.memory_reserved() == 400
    del view
    assert cd.fake.memory_allocated() == 0


def test_work_that_is_put_off_keeps_its_memory(fake: FakeAccelerator) -> None:
    """Inputs and results of queued work count as used until it is done."""
    x = cd.empty(100, device="fake") + 1
    assert cd.fake.memory_allocated() == 800
    cd.fake.synchronize()
    assert cd.fake.memory_allocated() == 400
    assert x.shape == (100,)


def test_a_device_runs_out_of_memory_and_works_on() -> None:
    """The error is typed and has the requested, used and total bytes; existing tensors stay valid."""
    with installed(capacity=1000):
        x = cd.ones(100, device="fake")
        text = r"fake:0 is out of memory: tried to allocate 800 bytes, 400 of 1000 are in use"
        with pytest.raises(OutOfMemoryError, match=text):
            cd.zeros(200, device="fake")
        with pytest.raises(OutOfMemoryError, match="fake:0 is out of memory: tried to allocate 800 bytes"):
            x.expand(2, 100).clone()
        assert (x + 1).sum().item() == 200
        assert cd.zeros(200, device="fake:1").sum().item() == 0


def test_a_full_device_waits_for_its_work_before_it_gives_up() -> None:
    """A full device first finishes its queued work, which frees memory."""
    with installed(capacity=1000):
        x = cd.ones(100, device="fake")
        for _ in range(10):
            x = x + 1
        assert x.sum().item() == 1100


def test_what_the_reference_cannot_allocate_is_not_counted(fake: FakeAccelerator) -> None:
    """A size beyond the address space and a negative size are errors that do not change the counters."""
    with pytest.raises(OutOfMemoryError, match="cannot allocate"):
        cd.empty(1 << 60, device="fake")
    with pytest.raises(RuntimeError, match=r"negative dimension -1"):
        cd.empty(-1, device="fake")
    assert cd.fake.memory_allocated() == 0


def test_one_allocation_can_fail() -> None:
    """The n-th allocation fails; existing tensors and a second attempt are correct."""
    with installed(fail_allocation_after=2):
        x, y = cd.ones(2, device="fake"), cd.ones(2, device="fake")
        with pytest.raises(OutOfMemoryError, match="fake:0 refused allocation number 3, of 8 bytes"):
            x + y
        assert (x + y).tolist() == [2, 2]


def test_failing_allocations_are_chosen_by_a_predicate() -> None:
    """Every n-th one, large ones, or those of a function of number and size fail, also from a point of a program on."""
    with installed(failing_allocations=every(3)) as fake:
        outcomes = []
        for _ in range(7):
            try:
                cd.empty(1, device="fake")
                outcomes.append(True)
            except OutOfMemoryError:
                outcomes.append(False)
        assert outcomes == [True, True, False, True, True, False, True]
        fake.ledgers[0].failing = larger_than(100)
        assert cd.empty(25, device="fake").shape == (25,)
        with pytest.raises(OutOfMemoryError, match="refused allocation number 9, of 104 bytes"):
            cd.empty(26, device="fake")
        fake.ledgers[0].failing = None
        assert cd.empty(26, device="fake").shape == (26,)
    assert [after(1)(number, 8) for number in (1, 2, 3)] == [False, True, False]


def test_backward_survives_an_allocation_that_fails() -> None:
    """A backward pass that runs out of memory does not change gradients, and the next pass computes them correctly."""
    with installed() as fake:
        x = cd.tensor([1.0, 2.0], device="fake").requires_grad_()
        loss = (x * x).sum()
        fake.ledgers[0].failing = after(fake.ledgers[0].number + 1)
        with pytest.raises(OutOfMemoryError, match="refused allocation"):
            loss.backward(retain_graph=True)
        assert x.grad is None
        loss.backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2, 4]


# -- DLPack -----------------------------------------------------------------------------------------------------------
def test_dlpack_shares_memory_between_tensors_of_one_device(fake: FakeAccelerator) -> None:
    """An exchange waits for queued work, keeps strides, and shares writes in both directions."""
    x = cd.arange(6, device="fake").to(cd.float32).reshape(2, 3) * 2
    shared = cd.from_dlpack(x.t())
    assert str(shared.device) == "fake:0"
    assert shared.stride() == (1, 3)
    shared.add_(1)
    assert x.tolist() == [[1, 3, 5], [7, 9, 11]]
    assert x.__dlpack_device__() == (12, 0)
    copied = cd.from_dlpack(x, copy=True).zero_()
    assert (copied.sum().item(), x.sum().item()) == (0, 36)
    del x
    assert shared.tolist() == [[1, 7], [3, 9], [5, 11]]


@pytest.mark.parametrize("d", [cd.bfloat16, cd.complex64, cd.int8, cd.bool], ids=lambda d: d.name)
def test_dlpack_carries_every_dtype(fake: FakeAccelerator, d: dtype) -> None:
    """The half types and bools are supported too, also on the second device."""
    x = cd.ones(2, dtype=d, device="fake:1")
    shared = cd.from_dlpack(x)
    assert (shared.dtype, str(shared.device), shared.tolist()) == (d, "fake:1", x.tolist())


def test_dlpack_does_not_leave_the_device(fake: FakeAccelerator) -> None:
    """Memory of another device is neither exported nor imported, and without a DLPack type there is no exchange."""
    x = cd.ones(2, device="fake")
    with pytest.raises(
        BufferError, match=r"'fake:0' exports only its own memory, DLPack device \(12, 0\), but the req"
    ):
        x.__dlpack__(dl_device=(1, 0))
    assert fake.from_dlpack(cd.ones(2), 0, None) is None
    with installed("other") as other:
        assert other.from_dlpack(x, 0, None) is None
    with installed("closed", dlpack=None) as closed:
        payload = cd.ones(2, device="closed")._payload
    with pytest.raises(BufferError, match="device 'closed' does not export DLPack"):
        closed.to_dlpack(payload, 0)


def test_immutable_arrays_take_a_copy_of_what_comes_through_dlpack() -> None:
    """Otherwise the producer of the memory could change an immutable array."""
    with installed(immutable=True):
        x = cd.arange(4, device="fake").reshape(2, 2)
        assert cd.from_dlpack(x.t()).tolist() == [[0, 2], [1, 3]]
