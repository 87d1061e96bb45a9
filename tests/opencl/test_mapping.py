"""Content of payloads in the host's memory: buffers that are mapped, page-locked blocks, and collectives over both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra.backend import HostMapping
from candelabra.distributed import threads
from candelabra.library import plugins
from candelabra_opencl import mapping
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.mapping import KEPT, SMALLEST, PinnedBlock, PinnedMapping, SharedBufferMapping

from tests.cuda import nccl_rank

NAME = "mapping"


@pytest.fixture(params=[True, False], ids=["shared", "pinned"])
def backend(request: pytest.FixtureRequest) -> Iterator[OpenCLBackend]:
    """Install a device that maps its buffers, or that copies to page-locked memory, as one with memory of its own."""
    made = OpenCLBackend(NAME)
    made.engine(0).shares_memory = request.param
    remove = plugins.add_backend(made)
    yield made
    remove()


def mapped(x: Any, read: bool = True, write: bool = True) -> HostMapping:
    """Map a tensor of the device."""
    backend: Any = x._instance.backend
    found = backend.map_host(x._payload, 0, read, write)
    assert found is not None
    return found  # type: ignore[no-any-return]


def test_the_content_is_read_and_written(backend: OpenCLBackend) -> None:
    """In the order of the queue: after the work before, and before the work after."""
    x = cd.arange(10_000.0, device=NAME) * 2
    kind = SharedBufferMapping if backend.engine(0).shares_memory else PinnedMapping
    with_content = mapped(x)
    assert isinstance(with_content, kind)
    found = np.frombuffer(with_content.wait(), "float32")
    assert found.tolist() == (np.arange(10_000) * 2).tolist()
    found[:] = 3
    with_content.unmap()
    with_content.unmap()  # has no further effect
    assert (x + 1).sum().item() == 40_000
    overwritten = mapped(x, read=False)
    np.frombuffer(overwritten.wait(), "float32")[:] = 5
    overwritten.unmap()
    assert x.sum().item() == 50_000


def test_a_mapping_to_read_changes_nothing(backend: OpenCLBackend) -> None:
    """Also if it is dropped without an end."""
    x = cd.ones(5, device=NAME)
    for _ in range(3):
        given = mapped(x, write=False)
        assert np.frombuffer(given.wait(), "float32").tolist() == [1.0] * 5
        del given
    ended = mapped(x, write=False)
    ended.unmap()
    assert x.tolist() == [1.0] * 5


def test_parts_of_buffers_are_copied(backend: OpenCLBackend) -> None:
    """Kernels may use the other parts meanwhile, which OpenCL does not allow while a buffer is mapped."""
    x = cd.zeros(1000, device=NAME)
    part = mapped(x[500:])
    assert isinstance(part, PinnedMapping)
    np.frombuffer(part.wait(), "float32")[:] = 7
    x[:500].fill_(1)
    part.unmap()
    assert x.tolist() == [1.0] * 500 + [7.0] * 500


def test_what_cannot_be_mapped(backend: OpenCLBackend) -> None:
    """Arrays in another order, and empty ones."""
    for x in (cd.zeros(3, 4, device=NAME).t(), cd.zeros(0, device=NAME)):
        assert backend.map_host(x._payload, 0, True, True) is None


def test_another_thread_waits(backend: OpenCLBackend) -> None:
    """The thread that maps goes on; with a second stream, memory lives until the copies are complete."""
    side = backend.stream(0)
    x = cd.ones(1 << 16, device=NAME)
    backend.current_stream(0).synchronize()
    seen: list[float] = []
    with side:
        y = x + 1
        given = mapped(y)
        thread = threading.Thread(target=lambda: seen.append(float(np.frombuffer(given.wait(), "float32").sum())))
        thread.start()
        thread.join()
        np.frombuffer(given.wait(), "float32")[:] = 4
        given.unmap()
        total = y.sum()
        del y
        assert total.item() == 4 << 16
    assert seen == [2 << 16]


def test_blocks_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is free once the copy from it is complete; others of the same size are made meanwhile."""
    engine = OpenCLBackend("blocks").engine(0)
    pinned = engine.pinned

    class Event:
        command_execution_status = 1

    event = Event()
    first = pinned.take(SMALLEST + 1)
    assert first.size == 2 * SMALLEST
    pinned.give(first, event)
    second = pinned.take(SMALLEST + 1)
    assert second is not first
    event.command_execution_status = 0
    assert pinned.take(2 * SMALLEST) is first
    assert pinned.take(1).size == SMALLEST
    monkeypatch.setattr(mapping, "KEPT", 3 * SMALLEST)
    pinned.give(first)
    pinned.give(second)  # more than is kept
    assert pinned.free_bytes == 2 * SMALLEST
    assert KEPT > 3 * SMALLEST
    assert isinstance(second, PinnedBlock)


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_collectives_do_not_copy_through_pageable_memory(backend: OpenCLBackend, size: int) -> None:
    """All collectives, data parallel, ZeRO and sharded training on ranks that are threads."""

    def program() -> None:
        for name, check in nccl_rank.CHECKS.items():
            if name not in (*nccl_rank.OF_THE_LIBRARY, "engine_conforms"):
                check(f"{NAME}:0")

    threads.run(program, size)


def test_messages_and_failures(backend: OpenCLBackend) -> None:
    """Messages arrive in the device's memory, and a collective that fails leaves a tensor as it was."""

    def program() -> Any:
        rank = dist.get_rank()
        x = cd.full((100,), float(rank), device=NAME)
        if rank == 0:
            dist.send(x + 5, 1)
        else:
            dist.recv(x, 0)
        bad = cd.zeros(3 + rank, device=NAME)
        with pytest.raises(dist.DistBackendError, match="buffers of different sizes"):
            dist.all_reduce(bad)
        return x[0].item(), bad.sum().item()

    assert threads.run(program, 2) == [(0.0, 0.0), (5.0, 0.0)]
