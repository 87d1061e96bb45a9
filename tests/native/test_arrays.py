"""NumPy arrays as the arrays of C kernels, and back."""

from __future__ import annotations

import os
import threading

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra import library
from candelabra.errors import OutOfMemoryError
from candelabra_clike.kernels.copies import PARALLEL_COPY_SIZE
from candelabra_native.arrays import Unsuitable, payload, shared, strided
from candelabra_native.engine import NativeEngine
from candelabra_native.launch._launch import address_of, allocate, dense_rows, plan, release, statistics

from tests.native.compiled import launch

ENGINE = NativeEngine()
SHARED = np.ones(8)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0), np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::2],
        np.broadcast_to(np.arange(3.0), (2, 3)), np.arange(24.0).reshape(2, 3, 4)[:, 1:2], np.array(3.0),
    ],
    ids=["1d", "2d", "transposed", "every second", "broadcast", "a size of 1", "0d"],
)  # fmt: skip
def test_a_kernel_reads_the_elements_of_any_layout(x: np.ndarray) -> None:
    """Address, strides and offset of the strided array lead to the array's elements."""
    a = strided(x, ENGINE)
    assert a.shape == x.shape
    first = address_of(a.buffer) + a.offset * x.itemsize
    at = [first + sum(i * step * x.itemsize for i, step in zip(index, a.strides)) for index in np.ndindex(x.shape)]
    start = x.__array_interface__["data"][0]
    assert at == [start + sum(i * step for i, step in zip(index, x.strides)) for index in np.ndindex(x.shape)]


def test_arrays_that_c_does_not_address_are_refused() -> None:
    """Negative strides, elements off their boundaries, and strides between elements are left to NumPy."""
    off = np.frombuffer(bytearray(41), np.uint8)[1:].view(np.float64)
    between = np.zeros(4, np.dtype([("a", np.int32), ("b", np.float64)], align=False))["b"]
    for x in (np.arange(6.0)[::-1], off, between):
        with pytest.raises(Unsuitable):
            strided(x, ENGINE)


def test_views_of_one_array_share_a_buffer() -> None:
    """A kernel that writes sees that its operands overlap, also if their memory is a kernel's result."""
    for whole in (np.zeros((4, 4)), payload(ENGINE.empty((4, 4), strided(np.zeros(1), ENGINE).dtype))):
        first, second = shared(whole[1:], ENGINE), shared(whole[:, 2], ENGINE)
        assert first.buffer is second.buffer
        assert (first.offset, second.offset) == (4, 2)


def test_arrays_that_must_not_be_written_are_refused() -> None:
    """Read-only arrays and foreign memory are left to NumPy, which knows what to say."""
    fixed = np.arange(6.0)
    fixed.flags.writeable = False
    for x in (fixed, np.frombuffer(bytearray(16))):
        with pytest.raises(Unsuitable):
            shared(x, ENGINE)


def test_a_result_starts_at_a_cache_line_and_outlives_its_first_array() -> None:
    """A view keeps the memory of a result alive, whatever becomes of the array that it was made from."""
    x = payload(ENGINE.empty((1 << 18,), strided(np.zeros(1, np.float32), ENGINE).dtype))
    assert x.ctypes.data % 64 == 0
    x[:] = 7
    view = x[1:].reshape(-1)[5:]
    bytes_of_view = memoryview(view)
    del x, view
    others = [allocate(1 << 20) for _ in range(4)]
    assert np.asarray(bytes_of_view).min() == 7
    assert all(address_of(other) % 64 == 0 for other in others)


def test_large_memory_is_reused_and_given_back() -> None:
    """The memory of a large result serves the next one; release() returns the rest to the system."""
    release()
    before = statistics()
    block = allocate(3 << 20)
    where = address_of(block)
    assert statistics()["allocated"] - before["allocated"] in range(3 << 20, (3 << 20) * 9 // 8 + 1)
    del block
    assert statistics()["allocated"] == before["allocated"]
    assert statistics()["reserved"] > before["reserved"]
    assert address_of(allocate(3 << 20)) == where
    release()
    assert statistics()["reserved"] == before["reserved"]


def test_small_blocks_are_reused_after_calls_with_large_ones() -> None:
    """Large memory that is kept does not displace them. Of too many, those that were not used for longest are freed."""
    release()
    large = [allocate(200 << 20) for _ in range(2)]
    del large
    before = statistics()["reserved"]
    held = [allocate(1 << 20) for _ in range(300)]
    last = address_of(held[-1])
    while held:
        del held[0]
    assert statistics()["reserved"] - before == 256 << 20
    assert address_of(allocate(1 << 20)) == last
    release()


def test_more_memory_than_a_process_owns_is_kept_for_the_next_results() -> None:
    """Beyond 256 MB the system may take it, so at most an eighth of its memory is kept. New results are intact."""
    size = 300 << 20
    most = max(os.sysconf("SC_PHYS_PAGES") // 8 * os.sysconf("SC_PAGESIZE"), 256 << 20)
    release()
    before = statistics()["reserved"]
    held = allocate(size)
    reserved = statistics()["reserved"] - before
    del held
    assert statistics()["reserved"] - before == (reserved if reserved <= most else 0)
    small = [allocate(5 << 20) for _ in range(2)]
    del small
    blocks = [np.frombuffer(memoryview(allocate(n)), np.uint8) for n in (size, 5 << 20, 5 << 20)]
    for i, block in enumerate(blocks):
        block[:: 1 << 12] = i + 1
    assert all((block[:: 1 << 12] == i + 1).all() for i, block in enumerate(blocks))
    del block, blocks
    release()
    assert statistics()["reserved"] == before


def test_empty_cache_gives_back_the_memory_of_results() -> None:
    """The counters of the device `cpu` are those of the kernels' results; views keep what they need."""
    cd.cpu.empty_cache()
    before = cd.cpu.memory_stats()
    with library.serve_every_size():
        results = [cd.ones(1 << 18) + 1 for _ in range(4)]
    assert cd.cpu.memory_allocated() - before["allocated"] >= 4 << 20
    kept = results[0][5:7]
    results.clear()
    assert cd.cpu.memory_reserved() - before["reserved"] >= 4 << 20
    cd.cpu.empty_cache()
    assert cd.cpu.memory_reserved() - before["reserved"] == cd.cpu.memory_allocated() - before["allocated"]
    assert 1 << 20 <= cd.cpu.memory_allocated() - before["allocated"] < 2 << 20
    assert kept.tolist() == [2, 2]


def test_the_peak_of_results_is_counted_anew_after_a_reset() -> None:
    """It is what is allocated at the reset, until more is."""
    cd.cpu.reset_peak_memory_stats()
    assert cd.cpu.max_memory_allocated() == cd.cpu.memory_allocated()
    before, blocks = cd.cpu.memory_allocated(), [allocate(1 << 20), allocate(1 << 20)]
    del blocks
    assert cd.cpu.max_memory_allocated() == before + (2 << 20)
    cd.cpu.reset_peak_memory_stats()
    assert cd.cpu.max_memory_allocated() == before


def test_threads_take_memory_without_the_interpreters_lock(rng: np.random.Generator) -> None:
    """Plans of several threads do so; afterwards the counters are what they were before."""
    store = launch("store", "bQ")
    sizes = [int(size) for size in rng.integers(1 << 18, 1 << 20, 20)]
    launches = tuple((store, 1, ((i, 0), i)) for i in range(20))
    run = plan(launches, (), tuple((size, i, min(i + 3, 19)) for i, size in enumerate(sizes)))
    release()
    before = statistics()
    threads = [threading.Thread(target=lambda: [run([]) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    release()
    assert (statistics()["allocated"], statistics()["reserved"]) == (before["allocated"], before["reserved"])


def test_memory_that_does_not_exist_is_refused() -> None:
    """A size beyond the address space is an error of memory."""
    for size in (1 << 62, 1 << 70):
        with pytest.raises(OutOfMemoryError, match=f"cannot allocate {size} bytes on the CPU"):
            allocate(size)
    with pytest.raises(TypeError, match="int"):
        allocate("1")


def test_bfloat16_passes_without_a_format() -> None:
    """A dtype that the buffer protocol has no format for has an address."""
    x = np.ones(4, ml_dtypes.bfloat16)
    assert address_of(x) == x.ctypes.data
    assert payload(strided(x, ENGINE)).dtype == x.dtype


def test_rows_of_plain_arrays_have_sizes() -> None:
    """Arrays of one shape a row, in C order and apart in memory, are passed to a kernel as they are."""
    parameters, gradients = [np.ones((2, 3)), np.ones(0), np.ones(())], [np.ones((2, 3)), np.ones(0), np.ones(())]
    assert dense_rows((parameters, gradients)) == [6, 0, 1]


@pytest.mark.parametrize(
    "columns",
    [
        ([np.ones((2, 3))], [np.ones((3, 2))]),
        ([np.ones(3)], [np.ones(3, np.float32)]),
        ([np.ones((3, 2)).T], [np.ones((2, 3))]),
        ([np.broadcast_to(np.ones(1), (1,))], [np.ones(1)]),
        ([np.frombuffer(bytearray(25), np.float64, 3, 1)], [np.ones(3)]),
        ([SHARED[:4]], [SHARED[3:7]]),
        ([SHARED[:2], SHARED[4:6]], [SHARED[2:4], SHARED[1:3]]),
        ([np.ones(3)], [np.ones(3), np.ones(3)]),
        ([np.ones(3)], (np.ones(3),)),
        ([np.ones(3)], [None]),
        (),
        ([], []),
    ],
    ids=["shapes", "dtypes", "transposed", "read-only", "misaligned", "overlapping", "across rows", "lengths", "tuple",
         "no array", "no columns", "no rows"],
)  # fmt: skip
def test_rows_of_other_arrays_have_none(columns: tuple[list[np.ndarray], ...]) -> None:
    """Anything else is served array by array, which finds what is wrong, or copies."""
    assert dense_rows(columns) is None


def test_copies_of_large_arrays_keep_their_dtype() -> None:
    """Large arrays are copied as integers of the same size by all processors; the copy has the dtype of the array."""
    x = cd.arange(PARALLEL_COPY_SIZE // 4, dtype=cd.float32) / 8
    copy = x.clone()
    assert copy.numpy().dtype == np.float32
    assert np.array_equal(copy.numpy(), x.numpy())
    assert cd.sin(copy).equal(cd.sin(x))
