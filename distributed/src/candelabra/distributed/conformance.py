"""The conformance level of engines: does a communicator do what :mod:`candelabra.distributed.engine` says?

``candelabra run -n 3 -m candelabra.distributed.conformance --engine NAME`` checks an engine on the ranks that it is
started on. It is part of this distribution, and not of candelabra-conformance, since that suite checks devices in one
process, while these checks need several ranks and no device.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any, Final

import numpy as np
from candelabra.distributed import _engines
from candelabra.distributed._groups import DEFAULT_ENGINE
from candelabra.distributed.engine import DTYPES, REDUCTIONS, Communicator, DeviceCommunicator, Request

__all__ = ["CHECKS", "device_failures", "failures", "main"]

_SIZES: Final = (0, 1, 7, 40_000)
"""Numbers of elements: none, one, an odd number, and more than an engine sends in one piece."""
_LARGE: Final = 700_001
"""A number of elements that shared memory takes in several pieces."""


Comparisons = Iterator[tuple[np.ndarray, np.ndarray, str]]
"""What a check has got, what it expects, and the name of the call. A check goes on after a difference, in step with the
other ranks."""


def _values(rank: int, count: int, dtype: str) -> np.ndarray:
    """Return the numbers of a rank, the same everywhere. Their sums are exact in any order."""
    numbers = np.random.default_rng([rank, count]).integers(0 if dtype[0] == "u" else -8, 9, count)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * numbers[::-1]
    return numbers.astype(dtype)


def _memory(array: np.ndarray) -> memoryview:
    found: memoryview = array.reshape(-1).view(np.uint8).data
    return found


def _cases() -> Iterator[tuple[str, str, int]]:
    for dtype in DTYPES:
        for op in REDUCTIONS:
            floating = dtype[0] in "fc"
            if (floating and op[0] == "b") or (dtype[0] == "c" and op in ("min", "max")):
                continue
            for count in _SIZES if dtype == "float32" else (7,):
                yield dtype, op, count
    yield "float64", "sum", _LARGE


def _expected(c: Communicator, count: int, dtype: str, op: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return reduce(REDUCTIONS[op], [_values(rank, count, dtype) for rank in range(c.size)])


def all_reduce(c: Communicator) -> Comparisons:
    """Every reduction in every dtype, with the same bits on every rank."""
    for dtype, op, count in _cases():
        got = _values(c.rank, count, dtype)
        c.all_reduce(_memory(got), dtype, op)
        yield got, _expected(c, count, dtype, op), f"{op} of {count} {dtype}"


def same_bits(c: Communicator) -> Comparisons:
    """A sum and a mean that are rounded have the same bits on every rank."""
    calls: dict[str, Callable[[memoryview], None]] = {
        "sum": lambda memory: c.all_reduce(memory, "float32", "sum"),
        "mean": lambda memory: c.average([memory], "float32"),
    }
    for name, call in calls.items():
        for count in (10_000, _LARGE):
            mine = np.random.default_rng(c.rank).standard_normal(count).astype("float32")
            call(_memory(mine))
            everything = np.empty((c.size, mine.size), "float32")
            c.all_gather(_memory(mine), _memory(everything))
            for row in everything:
                yield row, everything[0], f"a rounded {name} of {count}"


def averages(c: Communicator) -> Comparisons:
    """A mean is the sum, divided by the number of ranks once; of one buffer, and of several of different sizes."""
    for dtype in (dtype for dtype in DTYPES if dtype[0] == "f"):
        for counts in [[count] for count in _SIZES] + [[3, _LARGE, 0, 1, 40_000]]:
            got = [_values(c.rank, count, dtype) for count in counts]
            c.average(list(map(_memory, got)), dtype)
            for count, array in zip(counts, got, strict=True):
                total = _expected(c, count, dtype, "sum")
                yield array, total / total.dtype.type(c.size), f"mean of {count} {dtype}, one of {len(counts)}"


def reduce_to_one(c: Communicator) -> Comparisons:
    """The root has the reduction, and the others' buffers are unchanged."""
    for root in range(c.size):
        for dtype, op, count in _cases():
            got = _values(c.rank, count, dtype)
            c.reduce(_memory(got), dtype, op, root)
            expected = _expected(c, count, dtype, op) if c.rank == root else _values(c.rank, count, dtype)
            yield got, expected, f"{op} of {count} {dtype} to rank {root}"


def reduce_scatter(c: Communicator) -> Comparisons:
    """Each rank has its part of the reduction."""
    for dtype, op, count in _cases():
        sent = _values(c.rank, count * c.size, dtype)
        got = np.empty(count, dtype)
        c.reduce_scatter(_memory(sent), _memory(got), dtype, op)
        whole = _expected(c, count * c.size, dtype, op)
        yield got, whole[c.rank * count : (c.rank + 1) * count], f"{op} of {count} {dtype}"


def broadcast(c: Communicator) -> Comparisons:
    """From every root, buffers of every size."""
    for root in range(c.size):
        for count in _SIZES:
            got = _values(c.rank, count, "int32")
            c.broadcast(_memory(got), root)
            yield got, _values(root, count, "int32"), f"{count} elements from rank {root}"


def gathers(c: Communicator) -> Comparisons:
    """all_gather, gather and scatter are in the order of ranks."""
    for count in _SIZES:
        own = _values(c.rank, count, "int64")
        expected = np.concatenate([_values(rank, count, "int64") for rank in range(c.size)])
        got = np.zeros_like(expected)
        c.all_gather(_memory(own), _memory(got))
        yield got, expected, f"all_gather of {count}"
        for root in range(c.size):
            got = np.zeros_like(expected)
            c.gather(_memory(own), _memory(got) if c.rank == root else None, root)
            yield got, expected if c.rank == root else np.zeros_like(expected), f"gather of {count} to rank {root}"
            part = np.zeros_like(own)
            c.scatter(_memory(expected.copy()) if c.rank == root else None, _memory(part), root)
            yield part, own, f"scatter of {count} from rank {root}"


def all_to_all(c: Communicator) -> Comparisons:
    """Parts of different sizes, some of them empty."""
    sizes = [[(3 * i + 2 * j) % 5 for j in range(c.size)] for i in range(c.size)]
    parts = [[_values(i * c.size + j, sizes[i][j], "float64") for j in range(c.size)] for i in range(c.size)]
    got = np.empty(sum(sizes[i][c.rank] for i in range(c.size)))
    sends, receives = [8 * n for n in sizes[c.rank]], [8 * sizes[i][c.rank] for i in range(c.size)]
    c.all_to_all(_memory(np.concatenate(parts[c.rank])), _memory(got), sends, receives)
    yield got, np.concatenate([parts[i][c.rank] for i in range(c.size)]), "all_to_all"


def _completed(*requests: Request) -> None:
    end = time.monotonic() + 30
    while not all(request.test() for request in requests):
        if time.monotonic() > end:
            raise AssertionError("a message has not arrived within 30 s")
        time.sleep(0)


def messages(c: Communicator) -> Comparisons:
    """Around a ring: messages of one tag keep their order, and a receive from any rank finds its source."""
    after, before = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    if c.size == 1:
        return
    sent = [_values(c.rank + 10 * i, count, "int64") for i, count in enumerate((3, 3, 40_000))]
    got = [np.zeros_like(each) for each in sent]
    sends = [c.send(_memory(each), after, tag) for each, tag in zip(sent, (1, 1, 2), strict=True)]
    last = c.receive(_memory(got[2]), None, 2)
    firsts = [c.receive(_memory(each), before, 1) for each in got[:2]]
    for request in (last, *firsts):
        _completed(request)
    _completed(*sends)
    for i, each in enumerate(got):
        yield each, _values(before + 10 * i, each.size, "int64"), f"message {i}"
    yield np.array([last.source()]), np.array([before]), "the source of a receive from any rank"


def subsets(c: Communicator) -> Comparisons:
    """Groups in any order of ranks; a rank outside gets None; groups work at the same time in several threads."""
    order = list(reversed(range(c.size)))
    backwards, alone = c.subset(order), c.subset([0])
    if backwards is None:
        raise TypeError("subset() has returned None on a rank of the group")
    yield np.array([alone is None]), np.array([c.rank != 0]), "None on ranks outside a group"
    expected = np.array([order.index(c.rank), c.size])
    yield np.array([backwards.rank, backwards.size]), expected, f"rank and size in a group of ranks {order}"
    got = np.full(5, c.rank)
    backwards.broadcast(_memory(got), 0)
    yield got, np.full(5, order[0]), "a broadcast from the first rank of a group in another order"
    totals = {name: np.full(20, -1.0) for name in ("all ranks", "the group")}

    def work(communicator: Communicator, name: str) -> None:
        for i in range(20):
            total = np.full(1000, float(i))
            communicator.all_reduce(_memory(total), "float64", "sum")
            totals[name][i] = total.max()

    threads = [
        threading.Thread(target=work, args=arguments) for arguments in ((c, "all ranks"), (backwards, "the group"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, got in totals.items():
        yield got, np.arange(20.0) * c.size, f"sums of {name} while another group works"
    backwards.close()
    if alone is not None:
        alone.close()


def barriers(c: Communicator) -> Comparisons:
    """No rank leaves a barrier before the last one has entered it."""
    for late in range(c.size):
        entered = time.monotonic()
        if c.rank == late:
            time.sleep(0.02)
            entered = time.monotonic()
        c.barrier()
        left = np.array([entered, time.monotonic()])
        everything = np.empty((c.size, 2))
        c.all_gather(_memory(left), _memory(everything))
        # Ranks of one machine share the clock. On several machines the differences of their clocks would decide.
        early = _one_machine(c) and everything[:, 1].min() < everything[late, 0]
        yield np.array([early]), np.array([False]), f"a rank has left the barrier before rank {late} has entered it"


def _one_machine(c: Communicator) -> bool:
    import uuid

    own = np.array([uuid.getnode() & (2**62 - 1)], "int64")
    everything = np.empty(c.size, "int64")
    c.all_gather(_memory(own), _memory(everything))
    return len(set(everything.tolist())) == 1


CHECKS: Final[dict[str, Callable[[Communicator], Comparisons]]] = {
    check.__name__: check
    for check in (
        all_reduce, same_bits, averages, reduce_to_one, reduce_scatter, broadcast, gathers, all_to_all, messages,
        subsets, barriers,
    )
}  # fmt: skip
"""The checks by name. Each is called on every rank."""


def failures(communicator: Communicator, names: Sequence[str] = tuple(CHECKS)) -> dict[str, str]:
    """Run checks on this rank, and return the first difference of each that failed.

    An error of the engine is raised, since the ranks are no longer in step then.
    """
    return _failures(communicator, {name: CHECKS[name] for name in names})


def device_failures(end: DeviceCommunicator, device: str) -> dict[str, str]:
    """Run the checks of an engine of devices on this rank, as :func:`failures` does."""
    from candelabra.distributed._device_conformance import CHECKS, Copied

    return _failures(Copied(end, device), CHECKS)


def _failures(communicator: Any, checks: Mapping[str, Callable[[Any], Comparisons]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, check in checks.items():
        for got, expected, call in check(communicator):
            if got.tobytes() != expected.tobytes() and name not in found:
                found[name] = f"{call}: got {got[:8].tolist()} …, expected {expected[:8].tolist()} …"
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check an engine on this rank. Return 1 if a check has failed on it."""
    parser = argparse.ArgumentParser(
        prog="candelabra.distributed.conformance", description="Check an engine against the contract, on every rank."
    )
    parser.add_argument("--engine", default="mpi", help="the engine's name, by default mpi")
    parser.add_argument("--device", help="for an engine of devices: this rank's device, by default from LOCAL_RANK")
    given: Any = parser.parse_args(arguments)
    chosen = _engines.engines(given.engine, DEFAULT_ENGINE)
    communicator = chosen.host.start(-1, -1, timedelta(minutes=5))
    if chosen.devices:
        device = given.device or f"{min(chosen.devices)}:{os.environ.get('LOCAL_RANK', 0)}"
        end = chosen.devices[device.partition(":")[0]].connect(communicator, device)
        found = device_failures(end, device)
    else:
        found = failures(communicator)
    failed = np.array([len(found)], "int64")
    for name, text in found.items():
        sys.stderr.write(f"rank {communicator.rank}: {name}: {text}\n")
    communicator.all_reduce(_memory(failed), "int64", "sum")
    if communicator.rank == 0:
        sys.stdout.write(
            f"engine {given.engine!r} on {communicator.size} ranks: {len(CHECKS)} checks, {int(failed[0])} failures\n"
        )
    return int(bool(failed[0]))


def __dir__() -> list[str]:
    return sorted(__all__)


if __name__ == "__main__":
    sys.exit(main())
