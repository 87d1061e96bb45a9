"""Batches in shared memory: transport, ownership, and cleaning up."""

from __future__ import annotations

import errno
import gc
import os
import re
import weakref
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.utils.data import DataLoader
from candelabra.utils.data._utils import shared_memory
from candelabra.utils.data._utils.shared_memory import SegmentReader, SegmentWriter

from tests.lantern import LanternBackend
from tests.nn.data.samples import Calls, array

Pair = namedtuple("Pair", "x y")


@pytest.fixture
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[SegmentWriter, SegmentReader]]:
    """The two ends of a way for batches, here in one process."""
    prefix = f"cdtest{os.getpid()}"
    reader = SegmentReader(prefix)
    yield SegmentWriter(prefix), reader
    reader.close(10)
    gc.collect()
    assert segments(prefix) == []


def segments(prefix: str = "") -> list[str]:
    """The names in shared memory that begin so, by default those of this process's loaders."""
    prefix = prefix or f"cd{os.getpid():x}p"
    folder = Path(shared_memory.SHARED_MEMORY)
    return sorted(path.name for path in folder.glob(f"{prefix}*")) if folder.exists() else []


def large(value: float) -> cd.Tensor:
    """A tensor that is too large for the pipe."""
    return cd.full((100, 100), float(value))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int8", "uint64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5), (200, 300)])
def test_tensors_of_every_dtype_and_size_arrive(ends: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """A tensor comes out as it went in, writable and contiguous."""
    writer, reader = ends
    sent = (cd.arange(float(max(np.prod(shape), 1)))[: int(np.prod(shape))].reshape(shape) % 2).to(getattr(cd, dtype))
    got = reader.unpack(writer.pack({"x": sent}))["x"]
    assert (got.dtype, got.shape) == (sent.dtype, sent.shape)
    assert got.tolist() == sent.tolist()
    got.zero_()


def test_views_leaves_subclasses_and_attributes_arrive(ends: Any) -> None:
    """A strided view arrives as its elements; class, requires_grad and attributes are kept, identities too."""
    writer, reader = ends

    view = cd.arange(20000.0).reshape(100, 200).T[::2]
    leaf = cd.nn.Parameter(large(2))
    leaf.label = "weight"
    sent = [view, leaf, leaf, Pair(np.asfortranarray(np.arange(12).reshape(3, 4)), "text"), 1.5, None]
    got = reader.unpack(writer.pack(sent))
    assert got[0].tolist() == view.tolist()
    assert type(got[1]) is cd.nn.Parameter
    assert got[1].requires_grad
    assert got[1].label == "weight"
    assert got[2] is got[1]
    assert isinstance(got[3], Pair)
    assert got[3].x.tolist() == sent[3].x.tolist()
    assert got[4:] == [1.5, None]


def test_tensors_of_other_devices_arrive_there(ends: Any, lantern: LanternBackend) -> None:
    """A tensor on a device goes through the host's memory and back to the device."""
    writer, reader = ends
    got = reader.unpack(writer.pack(large(3).to("lantern:1")))
    assert str(got.device) == "lantern:1"
    assert got.sum().item() == 30000


def test_small_batches_go_through_the_pipe(ends: Any) -> None:
    """A few numbers take no segment."""
    writer, reader = ends
    packed = writer.pack([cd.ones(3), np.ones(2)])
    assert packed.segment is None
    assert [x.tolist() for x in reader.unpack(packed)] == [[1, 1, 1], [1, 1]]


def test_a_segment_is_used_again_once_no_tensor_holds_it(ends: Any) -> None:
    """As long as a tensor, a view or an array over a segment lives, other batches go elsewhere."""
    writer, reader = ends
    first = reader.unpack(writer.pack([large(1), large(2)]))
    view, plain = first[0][3:], first[1].numpy()
    del first
    assert reader.take_returned() == []
    other = writer.pack(large(5))
    assert other.segment == 1
    assert reader.unpack(other).sum().item() == 50000
    del view
    gc.collect()
    writer.recycle(freed := reader.take_returned())
    assert freed == [1]
    assert (plain == 2).all()
    del plain
    gc.collect()
    writer.recycle(freed := reader.take_returned())
    assert freed == [0]
    assert writer.pack(large(6)).segment == 1  # the smaller of two that fit
    assert writer.pack([large(7), large(8)]).segment == 0
    reader.take_returned()


def test_segments_that_are_too_small_are_replaced(ends: Any) -> None:
    """A larger batch replaces a free segment, which the program's end forgets."""
    writer, reader = ends
    reader.unpack(writer.pack(large(1)))
    writer.recycle(reader.take_returned())
    packed = writer.pack([large(1)] * 1 + [cd.zeros(100000)])
    assert (packed.segment, packed.removed) == (1, 0)
    assert reader.unpack(packed)[1].shape == (100000,)
    assert list(reader._segments) == [1]


def test_a_batch_that_is_not_wanted_returns_its_segment(ends: Any) -> None:
    """A discarded batch frees its segment at once, one without a segment frees none."""
    writer, reader = ends
    reader.discard(writer.pack(large(1)))
    reader.discard(writer.pack(1))
    assert reader.take_returned() == [0]


def test_tensors_outlive_their_loader() -> None:
    """Batches stay as they are when the workers and their shared memory are gone, and then give the memory back."""
    before = segments()
    batches = list(DataLoader(Calls(array, 60), 2, num_workers=2))
    assert segments() == before
    gc.collect()
    assert [batch[:, 0, 0].tolist() for batch in batches] == [[2 * i, 2 * i + 1] for i in range(30)]
    batches[0] += 1
    assert batches[0][0, 0, 0].item() == 1


def test_a_program_that_keeps_batches_holds_few_segments() -> None:
    """Beyond a few batches of each worker, the program gets copies: descriptors and shared memory are bounded."""
    before = segments()
    kept, most = [], 0
    for batch in DataLoader(Calls(array, 100), 1, num_workers=1):
        kept.append(batch)
        most = max(most, len(set(segments()) - set(before)))
    assert 0 < most <= shared_memory.MAX_LEASES + 5
    assert [batch[0, 0, 0].item() for batch in kept] == list(range(100))


def test_an_iteration_that_is_left_early_leaves_no_shared_memory() -> None:
    """Neither batches that were not read nor segments of a killed worker stay behind."""
    before = segments()
    for batch in DataLoader(Calls(array, 100), 1, num_workers=2, prefetch_factor=5):
        assert batch.shape == (1, 64, 64)
        break
    del batch
    assert segments() == before

    def die_later(index: int) -> Any:
        if index == 7:
            os._exit(1)
        return array(index)

    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 1"):
        list(DataLoader(Calls(die_later, 100), 1, num_workers=2))
    assert segments() == before


def test_results_hold_no_reference_to_their_loader() -> None:
    """A batch keeps its memory alive and nothing else."""
    loader = DataLoader(Calls(array, 2), 1, num_workers=1)
    batch = next(iter(loader))
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert batch.shape == (1, 64, 64)


def no_room(file: int, start: int, length: int) -> None:
    """What posix_fallocate does on a full file system."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_shared_memory_that_is_too_small_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how much is needed, how much there is, and what to do."""
    before = segments()
    monkeypatch.setattr(os, "posix_fallocate", no_room)
    text = (
        r"(?s)Caught RuntimeError in DataLoader worker process 0.*a batch of 0\.1 MiB finds no room in shared memory: "
        r"/dev/shm has [\d.]+ MiB, of which [\d.]+ MiB are free\. Give it more \(in a container: --shm-size or "
        r"--ipc=host\), use fewer workers, smaller batches or a smaller prefetch_factor, or num_workers=0"
    )
    with pytest.raises(RuntimeError, match=text):
        list(DataLoader(Calls(array, 20), 8, num_workers=2))
    assert segments() == before


def test_other_errors_of_the_system_are_not_hidden(ends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error of the operating system other than a lack of space is raised unchanged."""

    def refuse(file: int, start: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match=re.escape("Input/output error")):
        ends[0].pack(large(1))
