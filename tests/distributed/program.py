"""A program of two ranks that ``test_mpi.py`` starts by mpiexec. It prints a line when everything has held."""

import os
import re
import sys
from datetime import timedelta

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra.distributed import conformance
from candelabra_conformance.fake import installed


def collectives() -> None:
    """Try each kind of call once, also on a group of one rank and with several works under way."""
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) == (rank, size)
    assert dist.is_torchelastic_launched()
    assert int(os.environ["LOCAL_RANK"]) == dist.get_node_local_rank() == rank
    tensors = [cd.full((1000,), float(i + rank)) for i in range(10)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    for work in works:
        assert work is not None
        work.wait()
    assert [x[0].item() for x in tensors] == [2.0 * i + 1 for i in range(10)]
    half = cd.full((3,), 0.5 + rank, dtype=cd.bfloat16)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    assert half.tolist() == [1.0] * 3
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "x": cd.arange(rank)})
    assert [each["rank"] for each in objects] == [0, 1]  # type: ignore[index]
    alone = dist.new_group([1])
    if rank == 1:
        x = cd.ones(2)
        dist.all_reduce(x, group=alone)
        assert x.tolist() == [1.0, 1.0]
    got = cd.empty(5, dtype=cd.int64)
    incoming = dist.irecv(got, 1 - rank)
    dist.send(cd.full((5,), rank), 1 - rank)
    incoming.wait()
    assert got.tolist() == [1 - rank] * 5
    dist.monitored_barrier(timeout=timedelta(seconds=30))
    assert conformance.failures(dist.group.WORLD.communicator, ["messages", "subsets"]) == {}  # type: ignore[union-attr]
    dist.barrier()
    dist.destroy_process_group()


def wrong_starts() -> None:
    """Expect errors of calls that contradict MPI, after each of which the right call still works."""
    from mpi4py import MPI

    wrong = f"but MPI has started rank {os.environ['RANK']} of 2; start the program by `candelabra run -n"
    for text, values in (
        (f"world_size is 3, {wrong} 3", {"world_size": 3}),
        (f"rank is 5, {wrong} 2", {"rank": 5}),
    ):
        refused(ValueError, text, **values)
    right = os.environ["WORLD_SIZE"]
    os.environ["WORLD_SIZE"] = "4"
    refused(ValueError, f"WORLD_SIZE is 4, {wrong} 2")
    os.environ["WORLD_SIZE"] = right
    query, MPI.Query_thread = MPI.Query_thread, lambda: MPI.THREAD_SERIALIZED
    refused(dist.EngineUnavailable, "does not support calls from several threads")
    MPI.Query_thread = query


def refused(error: type[Exception], text: str, **values: int) -> None:
    """Expect an error of init_process_group."""
    with pytest.raises(error, match=re.escape(text)):
        dist.init_process_group("mpi", **values)  # type: ignore[arg-type]


def devices() -> None:
    """Let MPI read and write the memory of a device, whose DLPack type is that of the host, without copies."""
    copies = []
    with installed("glow", devices=1, dlpack=1) as backend:
        to_host, from_host = backend.to_host, backend.from_host
        dist.init_process_group("cpu:mpi,glow:mpi", timeout=timedelta(seconds=60), device_id="glow:0")
        group = dist.group.WORLD
        assert group is not None
        assert conformance.device_failures(group.on_device(cd.device("glow:0")), "glow:0") == {}
        x = cd.full((4,), 1.0 + dist.get_rank(), device="glow:0")
        backend.to_host = lambda payload: copies.append("to_host") or to_host(payload)  # type: ignore[func-returns-value]
        backend.from_host = lambda *args: copies.append("from_host") or from_host(*args)  # type: ignore[func-returns-value]
        dist.all_reduce(x)
        rows = x.new_empty((2, 4))
        dist.all_gather_into_tensor(rows, x)
        assert copies == []
        assert rows.tolist() == [[3.0] * 4] * 2
        dist.destroy_process_group()


def main(mode: str) -> None:
    """Run a mode on this rank."""
    if mode == "devices":
        devices()
        sys.stdout.write("all held\n")
        return
    if mode == "good":
        wrong_starts()
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    if mode == "good":
        collectives()
        sys.stdout.write("all held\n")
        return
    dist.barrier()
    group = dist.new_group(timeout=timedelta(seconds=2))
    if dist.get_rank() == 1:
        if mode == "raise":
            raise KeyError("no such batch")
        if mode == "exit":
            sys.exit(7)
        if mode == "kill":
            os.kill(os.getpid(), 9)
        dist.recv(cd.ones(1), 0, group)  # a message that never comes
    dist.all_reduce(cd.ones(2, 3), group=group)


if __name__ == "__main__":
    main(sys.argv[1])
