"""Engines of devices take memory as it is, in the order of streams. Ranks are threads, the device is the fake one."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra import nn, optim
from candelabra.distributed import _engines, conformance, threads
from candelabra.distributed.fsdp import fully_shard
from candelabra.nn.parallel import DistributedDataParallel
from candelabra_conformance.fake import FakeAccelerator, installed

NAME = "glow"
DEVICE = f"{NAME}:1"


def _double() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "candelabra_tests_device_engine", Path(__file__).parent / "device_engine.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


class Counted:
    """Counts the arrays that a device's backend copies to and from the host."""

    def __init__(self, backend: FakeAccelerator, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies: list[str] = []
        for name in ("to_host", "from_host", "to_dlpack"):
            monkeypatch.setattr(backend, name, self._counting(name, getattr(backend, name)))

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.copies.append(name)
            return call(*args, **kwargs)

        return counted


@pytest.fixture
def backend() -> Iterator[FakeAccelerator]:
    """Install a device with memory of its own and streams."""
    with installed(NAME, devices=2) as made:
        yield made


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, backend: FakeAccelerator) -> Any:
    """Install the engine of devices."""
    monkeypatch.setattr(_engines, "_engines", dict(_engines._engines))
    made = _double().Devices(NAME)
    _engines.add_engine(made)
    return made


def run(program: Callable[[], Any], size: int = 3, seconds: float = 20, device_id: Any = None) -> list[Any]:
    """Run a program on ranks with an engine of devices."""

    def rank() -> Any:
        dist.init_process_group("threads,devices", timeout=timedelta(seconds=seconds), device_id=device_id)
        found = program()
        dist.destroy_process_group()
        return found

    return threads.run(rank, size, init=False)


def own(*values: float, **options: Any) -> Any:
    """Return numbers plus the rank, on the device."""
    return cd.tensor(values, device=DEVICE, **options) + dist.get_rank()


def test_no_collective_copies_to_the_host(
    engine: Any, backend: FakeAccelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of call, also of half types, of views that are not contiguous, and of tensors without dims."""
    counted = Counted(backend, monkeypatch)

    def program() -> Any:
        rank, size = dist.get_rank(), dist.get_world_size()
        x = own(1.0, 2.0, 3.0)
        counted.copies.clear()
        dist.barrier()
        before = len(counted.copies)
        found = [x.clone() for _ in range(5)]
        dist.broadcast(found[0], 1)
        dist.all_reduce(found[1])
        dist.all_reduce(found[2], dist.ReduceOp.AVG)
        dist.reduce(found[3], 2, dist.ReduceOp.MAX)
        gathered = [cd.empty_like(x) for _ in range(size)]
        dist.all_gather(gathered, x)
        rows = x.new_empty((size, 3))
        dist.all_gather_into_tensor(rows, x)
        lists = [cd.empty_like(x) for _ in range(size)] if rank == 1 else None
        dist.gather(x, lists, 1)
        dist.scatter(found[4], [x * i for i in range(size)] if rank == 0 else None)
        part, single = x.new_empty(1), cd.empty_like(x)
        dist.reduce_scatter_tensor(part, x)
        dist.all_to_all_single(single, x)
        half, view, scalar = x.half(), x.expand(2, 3).t(), x.sum()
        dist.all_reduce(half, dist.ReduceOp.AVG)
        out = view.clone()
        dist.all_reduce(out.t())
        dist.all_reduce(scalar)
        ring = cd.empty_like(x)
        for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, ring, (rank - 1) % size),
        ]):  # fmt: skip
            work.wait()
        mark = x > 2
        dist.all_reduce(mark)
        dist.barrier()
        assert len(counted.copies) == before
        dist.barrier()
        gathered += lists or []
        return [each.tolist() for each in (*found, rows, part, single, half, out, scalar, ring, mark, *gathered)]

    a, b, c = run(program)
    assert a[0] == b[0] == c[0] == [2.0, 3.0, 4.0]
    assert a[1] == b[1] == [6.0, 9.0, 12.0]
    assert a[2] == c[2] == [2.0, 3.0, 4.0]
    assert (a[3], c[3]) == ([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    assert (a[4], b[4], c[4]) == ([0.0] * 3, [1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert a[5] == b[5] == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]]
    assert [each[6] for each in (a, b, c)] == [[6.0], [9.0], [12.0]]
    assert [each[7] for each in (a, b, c)] == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [3.0, 4.0, 5.0]]
    assert a[8] == [2.0, 3.0, 4.0]
    assert b[9] == [[6.0, 6.0], [9.0, 9.0], [12.0, 12.0]]
    assert c[10] == 27.0
    assert (a[11], b[11]) == ([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    assert a[12] == b[12] == [True] * 3
    assert b[13:16] == b[16:19] == a[5]
    assert sorted(engine.connected) == [(rank, DEVICE) for rank in range(3)]


def test_works_do_not_wait_on_the_host(engine: Any, backend: FakeAccelerator) -> None:
    """``wait()`` returns while the device has not finished; work that is submitted afterwards sees the result."""

    def program() -> Any:
        x = own(1.0)
        work = dist.all_reduce(x, async_op=True)
        assert work is not None
        work.wait()
        assert not work.is_completed()  # the fake device computes when it is read
        y = x * 2
        assert y.item() == 12.0
        assert work.is_completed()
        assert work.is_success()
        (future,) = work.get_future().wait()
        return future is x

    assert run(program) == [True] * 3


def test_the_engine_conforms(engine: Any) -> None:
    """All checks hold on the device, in the order of its streams."""

    def program() -> Any:
        group = dist.group.WORLD
        assert group is not None
        return conformance.device_failures(group.on_device(cd.device(DEVICE)), DEVICE)

    assert run(program) == [{}] * 3


def _unordered(end: Any) -> None:
    right = end._meet
    end._meet = lambda *args: [each if isinstance(each, list) else each and (each[0], Done()) for each in right(*args)]


class Done:
    """An event that does not wait."""

    def wait(self, stream: Any) -> None:
        """Do nothing."""


def _reversed_gather(end: Any) -> None:
    end.all_gather = lambda send, receive: receive.copy_(cd.cat(end._met(send)[::-1]))


def _lost_message(end: Any) -> None:
    right = end.exchange
    end.exchange = lambda messages: right([m._replace(buffer=m.buffer.clone()) if not m.sends else m for m in messages])


def _wrong_reduce(end: Any) -> None:
    end.reduce = lambda buffer, dtype, op, root: end.all_reduce(buffer, dtype, op)


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        (_unordered, "order"),
        (_reversed_gather, "gathers"),
        (_lost_message, "exchanges"),
        (_wrong_reduce, "reduce_to_one"),
    ],
)
def test_broken_engines_are_caught(engine: Any, change: Callable[[Any], None], caught: str) -> None:
    """Each mistake fails the check of its subject."""

    def program() -> Any:
        group = dist.group.WORLD
        assert group is not None
        end = group.on_device(cd.device(DEVICE))
        change(end)
        return conformance.device_failures(end, DEVICE)

    assert any(caught in failed for failed in run(program))


def test_training_stays_on_the_device(engine: Any, backend: FakeAccelerator, monkeypatch: pytest.MonkeyPatch) -> None:
    """DistributedDataParallel and fully_shard give the host's parameters; a step copies no tensor to the host."""
    counted = Counted(backend, monkeypatch)

    def program(device: str, wrap: Callable[[Any], Any], count: bool) -> Any:
        layers = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
        with cd.no_grad():
            for p in layers.parameters():
                p.copy_((cd.arange(float(p.numel())).sin() / 2).view(p.shape))
        net = wrap(layers.to(device))
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            x = (cd.arange(8.0).view(2, 4) / 10 + dist.get_rank()).to(device)
            dist.barrier()
            if step == 2:  # the first steps agree on the order of buckets, in the host's memory
                counted.copies.clear()
            dist.barrier()
            net(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        dist.barrier()
        copies = list(counted.copies)
        dist.barrier()
        assert not count or copies == []
        whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in net.parameters()]
        return [p.detach().cpu().tolist() for p in whole]

    for wrap in (DistributedDataParallel, fully_shard):
        there = run(lambda wrap=wrap: program(DEVICE, wrap, True))  # type: ignore[misc]
        here = run(lambda wrap=wrap: program("cpu", wrap, False))  # type: ignore[misc]
        for a, b in zip(there[0], here[0], strict=True):
            assert cd.allclose(cd.tensor(a), cd.tensor(b), atol=1e-6)
        assert there[0] == there[1] == there[2]


def test_a_single_rank_uses_the_engine(engine: Any, backend: FakeAccelerator, monkeypatch: pytest.MonkeyPatch) -> None:
    """As several do, so that a program that was tried on one device makes the same calls on many."""
    counted = Counted(backend, monkeypatch)

    def program() -> Any:
        x = own(1.0, 2.0)
        rows = x.new_empty((1, 2))
        counted.copies.clear()
        work = dist.all_reduce(x, async_op=True)
        dist.all_gather_into_tensor(rows, x)
        assert work is not None
        work.wait()
        assert counted.copies == []
        return x.tolist(), rows.tolist()

    assert run(program, 1) == [([1.0, 2.0], [[1.0, 2.0]])]
    assert engine.connected == [(0, DEVICE)]


def test_other_devices_are_copied_to_the_host(engine: Any, backend: FakeAccelerator) -> None:
    """A device type without an engine, and calls whose tensors are on several devices."""

    def program() -> Any:
        here, there = cd.ones(2), own(1.0, 1.0)
        dist.all_reduce(here)
        rows = cd.empty(3, 2)
        dist.all_gather_into_tensor(rows, there)
        return here.tolist(), rows.tolist()

    expected = ([3.0, 3.0], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert run(program) == [expected] * 3
    assert engine.connected == []


def test_messages_of_a_device(engine: Any) -> None:
    """One rank sends, another receives from it by name: no receive from any rank, since a device has no tags."""

    def program() -> Any:
        x = own(5.0)
        with pytest.raises(RuntimeError, match=f"isend: the ranks are not connected for messages of {DEVICE}: pass"):
            dist.isend(x, (dist.get_rank() + 1) % 3)
        pair = dist.new_group([0, 1], device_id=DEVICE)
        if dist.get_rank() == 0:
            dist.send(x, 1, pair)
        if dist.get_rank() == 1:
            with pytest.raises(ValueError, match=f"irecv: a receive into memory of {DEVICE} needs src"):
                dist.recv(x, group=pair)
            assert dist.recv(x, 0, pair) == 0
        return x.item()

    assert run(program) == [5.0, 5.0, 7.0]


def test_a_device_that_hangs_ends_the_ranks(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchdog checks the events of works for which no rank waits on the host."""
    aborted: list[str] = []

    def program() -> None:
        group: Any = dist.group.WORLD
        monkeypatch.setattr(type(group), "abort", lambda self, reason: aborted.append(reason))
        dist.all_reduce(own(1.0))
        limit = time.monotonic() + 30
        while len(aborted) < 2 and time.monotonic() < limit:
            time.sleep(0.01)

    run(program, 2, seconds=0.3)
    assert any("rank 0: all_reduce(float32[1], ReduceOp.SUM), number 1" in each for each in aborted)
    assert all("did not complete within 0.3 s" in each for each in aborted)


def test_engines_by_device_type(engine: Any) -> None:
    """``type:engine`` names an engine for a device type; one of the host's memory serves no other."""
    chosen = _engines.engines("cpu:threads,other:devices", "mpi")
    assert chosen.host.name == "threads"
    assert chosen.devices == {"other": engine}
    with pytest.raises(ValueError, match="the engine 'threads' serves the host's memory, not that of 'other'"):
        _engines.engines("other:threads", "mpi")


def test_ranks_that_name_their_device_are_connected(engine: Any) -> None:
    """At once, and in new groups too. Without an engine for the device, its name has no effect."""

    def program() -> Any:
        dist.new_group([1, 2])
        x = own(5.0)
        if dist.get_rank() < 2:
            (work,) = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, x.clone(), 1 - dist.get_rank()), dist.P2POp(dist.irecv, x, 1 - dist.get_rank())
            ])  # fmt: skip
            work.wait()
        return x.item()

    assert run(program, device_id=DEVICE) == [6.0, 5.0, 7.0]
    assert len(engine.connected) == 5
    assert run(lambda: dist.get_rank(), device_id="cpu") == [0, 1, 2]
    assert len(engine.connected) == 5
