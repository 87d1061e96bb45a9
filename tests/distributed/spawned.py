"""A program that starts its ranks by ``multiprocessing.spawn``, as PyTorch's tutorials do, for test_rendezvous.py."""

import os
import sys

import candelabra as cd
import candelabra.distributed as dist
from candelabra import multiprocessing, nn
from candelabra.nn.parallel import DistributedDataParallel


def train(rank: int, world_size: int, mode: str, port: str) -> None:
    """Make a step on this rank; then end in the way of ``mode``."""
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(world_size))
    if mode == "open":  # the tutorial passes the numbers
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    else:
        dist.init_process_group()
    model = DistributedDataParallel(nn.Linear(3, 1))
    model(cd.full((4, 3), float(rank))).sum().backward()
    assert model.module.weight.grad.tolist() == [[4.0 * (world_size - 1) / 2] * 3]
    if mode == "kill" and rank == 1:
        os.kill(os.getpid(), 9)
    if mode == "raise" and rank == 1:
        raise KeyError("no such batch")
    dist.barrier()
    sys.stdout.write("held\n")
    sys.stdout.flush()
    if mode != "open":
        dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(train, (2, *sys.argv[1:]), nprocs=2)
