"""The checks of an engine of devices, which every rank runs, and a program that runs them on NCCL.

``nccl_rank.py FOLDER RANK SIZE`` is a rank with the engine ``nccl`` on the first GPU; test_nccl_on_device.py starts it.
The ranks find each other by a file in the folder, so that no MPI is needed. Standard output is a JSON object: the
version of NCCL, the calls of the library, and the error of each check, empty where it holds.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import Tensor, nn, optim
from candelabra.distributed import conformance
from candelabra.distributed._engines import add_engine
from candelabra.distributed.algorithms.ddp_comm_hooks import default_hooks
from candelabra.distributed.engine import REDUCTIONS, Communicator, Engine, Request
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.nn.functional import all_reduce
from candelabra.distributed.optim import ZeroRedundancyOptimizer
from candelabra.library import open_device
from candelabra.nn.parallel import DistributedDataParallel

TIMEOUT: Final = timedelta(seconds=60)


# -- ranks without MPI ------------------------------------------------------------------------------------------------
class StoreCommunicator(Communicator):
    """One rank's end of a group whose collectives go through a store."""

    def __init__(self, store: Any, rank: int, size: int, name: str = "world") -> None:
        self._store, self.rank, self.size, self._name = store, rank, size, name
        self._count = 0

    def _gathered(self, data: bytes) -> list[bytes]:
        """Return the bytes of all ranks."""
        self._count += 1
        keys = [f"{self._name} {self._count} {rank}" for rank in range(self.size)]
        self._store.set(keys[self.rank], data)
        found: list[bytes] = self._store.multi_get(keys)
        return found

    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        self._count += 1
        if self.rank not in ranks:
            return None
        name = f"{self._name} {self._count} {ranks}"
        return StoreCommunicator(self._store, ranks.index(self.rank), len(ranks), name)

    def broadcast(self, buffer: memoryview, root: int) -> None:
        buffer[:] = self._gathered(bytes(buffer) if self.rank == root else b"")[root]

    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        rows = [np.frombuffer(row, dtype) for row in self._gathered(bytes(buffer))]
        total = rows[0]
        for row in rows[1:]:
            total = REDUCTIONS[op](total, row)
        buffer[:] = total.tobytes()

    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        receive[:] = b"".join(self._gathered(bytes(send)))

    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        raise NotImplementedError("the checks exchange the memory of devices only")

    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        raise NotImplementedError("the checks send the memory of devices only")

    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        raise NotImplementedError("the checks receive the memory of devices only")

    def abort(self, reason: str) -> None:
        sys.stderr.write(f"aborted: {reason}\n")
        faulthandler.dump_traceback()
        sys.stderr.flush()
        os._exit(1)


class StoreEngine(Engine):
    """Starts a rank whose number and whose store are known."""

    name = "store"

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._given = store, rank, size

    def start(self, rank: int, world_size: int, timeout: timedelta) -> Communicator:
        return StoreCommunicator(*self._given)


# -- checks -----------------------------------------------------------------------------------------------------------
class Copies:
    """Counts the arrays that a device's backend copies to and from the host, inside a ``with`` block."""

    def __init__(self, device: str) -> None:
        self._backend: Any = open_device(device).backend
        self.names: list[str] = []

    def __enter__(self) -> Copies:
        for name in ("to_host", "from_host"):
            setattr(self._backend, name, self._counting(name, getattr(self._backend, name)))
        return self

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.names.append(name)
            return call(*args, **kwargs)

        return counted

    def __exit__(self, *exception: object) -> None:
        for name in ("to_host", "from_host"):
            vars(self._backend).pop(name, None)


def engine_conforms(device: str) -> None:
    """The conformance level of engines of devices: reductions in every dtype, gathers, messages, order of streams."""
    group: Any = dist.group.WORLD
    assert conformance.device_failures(group.on_device(cd.device(device)), device) == {}


def collectives(device: str) -> None:
    """The public collectives give the values of their definitions, without a copy to the host."""
    rank, size = dist.get_rank(), dist.get_world_size()
    start = [1.0, 2.0, 3.0]
    x = cd.tensor(start, device=device) + rank
    ranks = sum(range(size))
    total = [v * size + ranks for v in start]
    complex_total = [complex(v, v) for v in total]
    rows = [[v + r for v in start] for r in range(size)]
    found: dict[str, tuple[Tensor, Any]] = {}
    dist.barrier()  # ranks that are threads share the backend, whose copies are counted
    with Copies(device) as copies:

        def reduced(name: str, tensor: Tensor, expected: Any, op: Any = dist.ReduceOp.SUM) -> None:
            dist.all_reduce(tensor, op)
            found[name] = tensor, expected

        reduced("sum", x.clone(), total)
        reduced("average", x.clone(), [v / size for v in total], dist.ReduceOp.AVG)
        reduced("maximum", x.clone(), rows[-1], dist.ReduceOp.MAX)
        reduced("half", x.half(), total)
        reduced("bfloat16 average", x.bfloat16(), [v / size for v in total], dist.ReduceOp.AVG)
        reduced("complex", cd.complex(x, x), complex_total)
        reduced("int16", x.to(cd.int16), total)
        reduced("bool", x > size + 1, [v > 2 for v in start])
        reduced("0-d", x.sum(), sum(total))
        reduced("empty", x[:0].clone(), [])
        view = x.expand(2, 3).t().clone().t()
        reduced("not contiguous", view[:, 1:], [total[1:]] * 2)
        sent = x.clone()
        dist.broadcast(sent, size - 1)
        found["broadcast"] = sent, rows[-1]
        one = x.clone()
        dist.reduce(one, 0)
        found["reduce"] = one, total if rank == 0 else rows[rank]
        lists = [cd.empty_like(x) for _ in range(size)]
        dist.all_gather(lists, x)
        found |= {f"all_gather {r}": (each, rows[r]) for r, each in enumerate(lists)}
        gathered = x.new_empty((size, 3))
        dist.all_gather_into_tensor(gathered, x)
        found["all_gather_into_tensor"] = gathered, rows
        part = cd.empty_like(x)
        dist.reduce_scatter_tensor(part, gathered.reshape(-1))
        found["reduce_scatter_tensor"] = part, [v * size for v in rows[rank]]
        dist.gather(x, lists if rank == 0 else None, 0)
        scattered = cd.empty_like(x)
        dist.scatter(scattered, [x * r for r in range(1, size + 1)] if rank == 0 else None, 0)
        found["scatter"] = scattered, [v * (rank + 1) for v in start]
        exchanged = x.new_empty(size)
        dist.all_to_all_single(exchanged, x[:1].expand(size).contiguous())
        found["all_to_all_single"] = exchanged, [start[0] + r for r in range(size)]
        leaf = x.clone().requires_grad_()
        all_reduce(leaf * 2).sum().backward()
        assert leaf.grad is not None
        found["gradient"] = leaf.grad, [2.0 * size] * 3
        dist.barrier()
        counted = list(copies.names)
        dist.barrier()
    assert counted == []
    for name, (tensor, values) in found.items():
        assert tensor.tolist() == values, f"{name}: got {tensor.tolist()}, expected {values}"


def order_of_streams(device: str) -> None:
    """A collective waits for the work before it, and later work for the collective; memory is not reused too early."""
    size = dist.get_world_size()
    x = cd.full((1 << 20,), 1.0, device=device)
    for step in range(10):
        gathered = x.new_empty((size, x.numel()))
        work = dist.all_gather_into_tensor(gathered, (x * 2).add_(step), async_op=True)  # the temporary is free now
        noise = [cd.full((1 << 20,), -1.0, device=device) for _ in range(4)]
        assert work is not None
        work.wait()
        low, high = gathered.amin().item(), gathered.amax().item()
        assert low == high == 2.0 + step, f"step {step}: {low} to {high}"
        del noise


def net(device: str) -> Any:
    """Return a small network with the same parameters on every rank."""
    layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
    with cd.no_grad():
        for number, p in enumerate(layers.parameters()):
            p.copy_((cd.arange(float(p.numel())) + number).sin().view(p.shape) / 3)
    return layers.to(device)


def data(device: str, rank: int, step: int) -> Tensor:
    """Return the batch of a rank."""
    return (cd.arange(48.0).view(6, 8) * 0.37 + rank + 2 * step).cos().to(device)


Wrap = Callable[[Any], Any]


def trained(device: str, wrap: Wrap | None, make: Callable[[Any], Any]) -> list[Tensor]:
    """Return the parameters after three steps; without a wrapper those of one process with the batches of all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    model = nn.SyncBatchNorm.convert_sync_batchnorm(net(device)) if wrap is not None else net(device)
    wrapped = model if wrap is None else wrap(model)
    optimizer = make(wrapped.parameters())
    for step in range(3):
        batch = data(device, rank, step)
        if wrap is None:
            batch = cd.cat([data(device, r, step) for r in range(size)])
        wrapped(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in wrapped.parameters()]


def equals_one_process(device: str, wrap: Wrap, make: Callable[[Any], Any] | None = None) -> None:
    """Compare trained parameters with those of one process."""
    plain = trained(device, None, lambda p: optim.SGD(p, lr=0.1, momentum=0.9))
    ours = trained(device, wrap, make or (lambda p: optim.SGD(p, lr=0.1, momentum=0.9)))
    for a, b in zip(ours, plain, strict=True):
        difference = (a - b).abs().max().item()
        assert difference <= 2e-5, f"parameters {list(a.shape)} differ by {difference}"


def data_parallel(device: str) -> None:
    """A step of DistributedDataParallel is that of one process; with the hook, so that one rank communicates too."""

    def wrap(model: Any) -> Any:
        made = DistributedDataParallel(model, device_ids=[device], bucket_cap_mb=0.001)
        made.register_comm_hook(None, default_hooks.allreduce_hook)
        return made

    equals_one_process(device, wrap)


def data_parallel_without_hook(device: str) -> None:
    """The same in its usual form, which communicates if there are several ranks."""
    equals_one_process(device, DistributedDataParallel)


def zero_redundancy(device: str) -> None:
    """An optimizer whose state is divided gives the parameters of one process."""
    equals_one_process(
        device, DistributedDataParallel,
        lambda p: ZeroRedundancyOptimizer(p, optimizer_class=optim.SGD, lr=0.1, momentum=0.9),
    )  # fmt: skip


def sharded(device: str) -> None:
    """fully_shard gives the parameters of one process."""

    def wrap(model: Any) -> Any:
        fully_shard(model[0])
        fully_shard(model[2])
        return fully_shard(model)

    equals_one_process(device, wrap)


def groups(device: str) -> None:
    """A second group has a communicator of its own, which ends without the first."""
    ranks = list(range(dist.get_world_size()))
    group = dist.new_group(ranks)
    x = cd.ones(5, device=device)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [float(len(ranks))] * 5
    dist.destroy_process_group(group)
    dist.all_reduce(x)
    assert x.tolist() == [float(len(ranks)) ** 2] * 5


def errors(device: str) -> None:
    """An error of the library names rank, collective and line, and its group refuses further calls."""
    group = dist.new_group(list(range(dist.get_world_size())), device_id=device)
    x = cd.ones(5, device=device)
    task = lambda: group.on_device(cd.device(device)).broadcast(x, 99)  # noqa: E731
    place = re.escape(f"rank {dist.get_rank()}: broadcast(float32[5], src=99), number")
    with pytest.raises(dist.DistBackendError, match=f"{place}.*NCCL_ERROR_INVALID_ARGUMENT"):
        group.submit("broadcast", "float32[5], src=99", task, device=cd.device(device)).wait()
    with pytest.raises(dist.DistBackendError, match="an earlier call of this group has failed"):
        dist.all_reduce(x, group=group)


CHECKS: Final[dict[str, Callable[[str], None]]] = {
    check.__name__: check
    for check in (
        engine_conforms, collectives, order_of_streams, data_parallel, data_parallel_without_hook, zero_redundancy,
        sharded, groups, errors,
    )
}  # fmt: skip
OF_THE_LIBRARY: Final = ("errors",)
"""The checks of NCCL's own behaviour, which other engines do not have."""


# -- the program ------------------------------------------------------------------------------------------------------
class Counted:
    """NCCL's communicator, whose calls are counted by their names."""

    def __init__(self, comm: Any, calls: Counter[str]) -> None:
        self._comm, self._calls = comm, calls

    def __getattr__(self, name: str) -> Any:
        self._calls[name] += 1
        return getattr(self._comm, name)


def main(folder: str, rank: int, size: int) -> None:
    """Run the checks on this rank, and print the results."""
    from cupy.cuda import nccl

    device, calls, verdicts = "cuda:0", Counter[str](), dict[str, str]()
    result = {"version": nccl.get_version(), "connect": "", "calls": calls, "verdicts": verdicts}
    try:
        add_engine(StoreEngine(dist.FileStore(str(Path(folder) / "store"), size), rank, size))
        dist.init_process_group("store,nccl", timeout=TIMEOUT, device_id=device)
        group: Any = dist.group.WORLD
        end = group.on_device(cd.device(device))
        end._comm = Counted(end._comm, calls)
        for name, check in CHECKS.items():
            try:
                check(device)
                verdicts[name] = ""
            except Exception:
                verdicts[name] = traceback.format_exc()
                if size > 1:  # the ranks are no longer in step
                    break
        dist.destroy_process_group()
    except Exception:
        result["connect"] = traceback.format_exc()
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
