"""Engines of devices: memory is taken as it is, in the order of streams. Ranks are threads, the device is the fake one."""

from __future__ import annotations

import importlib.util
import sys
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


def run(program: Callable[[], Any], size: int = 3, name: str = "threads,devices", seconds: float = 60) -> list[Any]:
    """Run a program on ranks with an engine of devices."""

    def rank() -> Any:
        dist.init_process_group(name, timeout=timedelta(seconds=seconds))
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
