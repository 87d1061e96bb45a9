"""Programs of several ranks that ``test_mpi_calls.py`` starts by mpiexec: calls that differ, and shared windows."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra.distributed import _mpi_windows, conformance
from candelabra.distributed.engine import DTYPES, REDUCTIONS


def _memory(array: np.ndarray) -> memoryview:
    found: memoryview = array.reshape(-1).view(np.uint8).data
    return found


def mismatches(c: Any) -> None:
    """Every rank gets an error before anything is sent, so that the next calls are in step."""
    n = 3 + c.rank
    x, rows = np.ones(n, "float32"), np.ones(n * c.size, "float32")
    root = c.rank == 0
    calls = {
        "all_reduce": lambda: c.all_reduce(_memory(x), "float32", "sum"),
        "average": lambda: c.average([_memory(x)], "float32"),
        "reduce": lambda: c.reduce(_memory(x), "float32", "sum", 0),
        "broadcast": lambda: c.broadcast(_memory(x), 0),
        "all_gather": lambda: c.all_gather(_memory(x), _memory(rows)),
        "gather": lambda: c.gather(_memory(x), _memory(rows) if root else None, 0),
        "scatter": lambda: c.scatter(_memory(rows) if root else None, _memory(x), 0),
        "reduce_scatter": lambda: c.reduce_scatter(_memory(rows), _memory(x), "float32", "sum"),
    }
    sizes = rf"buffers of different sizes, 12 to {4 * (2 + c.size)} bytes; debug mode \(CANDELABRA_DISTRIBUTED_DEBUG"
    for name, call in calls.items():
        with pytest.raises(ValueError, match=sizes if name != "average" else "calls average float32 of"):
            call()
    same = _memory(np.ones(2, "float32"))
    other = "this rank calls .*, another one calls another collective, or the same in another dtype"
    for wrong in (
        lambda: c.all_reduce(same, "float32", "sum") if root else c.broadcast(same, 0),
        lambda: c.all_reduce(same, "float32" if root else "int32", "sum"),
        lambda: c.all_reduce(same, "float32", "sum" if root else "max"),
        lambda: c.broadcast(same, c.rank),
        lambda: c.barrier() if root else c.all_gather(same, _memory(np.ones(2 * c.size, "float32"))),
        lambda: c.subset([0, 1] if root else [1, 0]),
    ):
        with pytest.raises(ValueError, match=other):
            wrong()
    sends = [8] * c.size
    receives = [8 if c.rank or source != 1 else 4 for source in range(c.size)]
    text = "rank 1 has sent 8 bytes, but 4 were expected" if root else "another rank has expected another number of"
    with pytest.raises(ValueError, match=text):
        c.all_to_all(memoryview(bytearray(8 * c.size)), memoryview(bytearray(sum(receives))), sends, receives)
    messages(c)
    assert conformance.failures(c) == {}


def messages(c: Any) -> None:
    """A message that is shorter or longer than the buffer is an error of the rank that receives it."""
    for received, text in (
        (12, "rank 0 has sent 8 bytes, but the buffer has 12"),
        (4, "a rank has sent more bytes than the buffer has, 4"),
    ):
        if c.rank == 0:
            conformance._completed(c.send(memoryview(bytearray(8)), 1, 5))
        elif c.rank == 1:
            with pytest.raises(ValueError, match=text):
                conformance._completed(c.receive(memoryview(bytearray(received)), 0, 5))


def reductions(c: Any, count: int) -> None:
    """Compare every reduction of buffers of some elements with its definition, and means with those of sums."""
    for dtype in DTYPES:
        for op in REDUCTIONS:
            if (dtype[0] in "fc" and op[0] == "b") or (dtype[0] == "c" and op in ("min", "max")):
                continue
            got = conformance._values(c.rank, count, dtype)
            c.all_reduce(_memory(got), dtype, op)
            assert got.tobytes() == conformance._expected(c, count, dtype, op).tobytes(), (dtype, op)
    several = [conformance._values(c.rank, size, "float32") for size in (count, 0, 1, 2 * count + 1)]
    c.average(list(map(_memory, several)), "float32")
    for array in several:
        expected = conformance._expected(c, array.size, "float32", "sum") / np.float32(c.size)
        assert array.tobytes() == expected.tobytes()


def windows(c: Any) -> None:
    """Chunks of all sizes, special values, and communicators without a window."""
    cores = os.cpu_count
    os.cpu_count = lambda: 4
    _mpi_windows.CHUNK, _mpi_windows.SMALLEST = 1 << 14, 1 << 10
    count = 5000  # several chunks
    reductions(c, count)
    assert isinstance(c._window, _mpi_windows.SharedWindow)
    special = np.resize(np.array([np.inf, -np.inf, np.nan, -0.0, 3e38], "float32"), count)
    c.all_reduce(_memory(special), "float32", "sum")
    assert np.isnan(special[2])
    assert special[[0, 1, 3, 4]].tolist() == [np.inf, -np.inf, 0.0, np.inf]
    again, few = c.subset(list(range(c.size))), c.subset([1, 0])
    room = _mpi_windows._has_room
    _mpi_windows._has_room = lambda: c.rank != 1 and room()  # one rank lacks memory
    reductions(again, count)
    assert again._window is False
    again.close()
    _mpi_windows._has_room = room
    os.cpu_count = lambda: 2
    again = c.subset(list(range(c.size)))
    reductions(again, count)
    assert again._window is False  # three ranks on two cores
    again.close()
    os.cpu_count = cores
    if few is not None:  # a window of its own, whose ranks have another order
        reductions(few, count)
        assert few._window
        few.close()
    _mpi_windows.SHARED_MEMORY = "/nowhere"
    assert _mpi_windows._has_room()
    _mpi_windows.SHARED_MEMORY = "/proc"  # it has no room
    assert not _mpi_windows._has_room()


def main(mode: str) -> None:
    """Run a mode on this rank."""
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    if mode == "unclosed":  # the program ends with its group and its window
        x = cd.ones(_mpi_windows.SMALLEST)
        dist.all_reduce(x)
        sys.stdout.write(f"{x[-1].item()}\n")
        return
    if mode == "program":  # a program's error names rank, collective and line
        dist.all_reduce(cd.ones(3 + dist.get_rank()))
    communicator = dist.group.WORLD.communicator  # type: ignore[union-attr]
    {"mismatches": mismatches, "windows": windows}[mode](communicator)
    dist.destroy_process_group()
    sys.stdout.write(f"rank {os.environ['RANK']} held\n")


if __name__ == "__main__":
    main(sys.argv[1])
