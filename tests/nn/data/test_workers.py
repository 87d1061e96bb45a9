"""Worker processes: their seeds, their errors, their deaths, and their end."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from random import getstate as python_state
from typing import Any

import candelabra as cd
import pytest
from candelabra.utils.data import DataLoader, IterableDataset, get_worker_info
from candelabra.utils.data._utils import worker_pool
from numpy.random import get_state as numpy_state

from tests.lantern import LanternBackend
from tests.nn.data.samples import Calls, Numbers, Stream, TwoArguments, array, die, drawn, leave

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def workers() -> Callable[[], int]:
    """Returns the number of workers that this test has started and that have not ended."""
    earlier = {process.pid for process in multiprocessing.active_children()}

    def count() -> int:
        processes = multiprocessing.active_children()
        return sum(p.name.startswith("DataLoader worker") and p.pid not in earlier for p in processes)

    return count


# -- what a worker knows ----------------------------------------------------------------------------------------------
def test_workers_are_processes_with_a_worker_info() -> None:
    """worker_init_fn runs first in each process; the info has the number, the count, the seed and the data set."""
    started = []

    def describe(index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        assert info.dataset.n == 4
        return info.id, info.num_workers, info.seed, os.getpid(), started

    loader = DataLoader(Calls(describe, 4), None, num_workers=2, worker_init_fn=started.append, prefetch_factor=3)
    rows = list(loader)
    assert [row[:2] for row in rows] == [[0, 2], [1, 2], [0, 2], [1, 2]]
    assert rows[1][2] == rows[0][2] + 1
    assert len({os.getpid(), rows[0][3], rows[1][3]}) == 3
    assert [row[4] for row in rows] == [[0], [1], [0], [1]]
    assert started == []
    assert get_worker_info() is None


def test_a_worker_has_its_own_copy_of_the_data_set() -> None:
    """What a worker does to its data set is not seen by the program."""
    dataset = Numbers(4)

    def change(_: int) -> None:
        info = get_worker_info()
        assert info is not None
        info.dataset.n = 1

    with pytest.raises(IndexError, match="no number 1"):
        list(DataLoader(dataset, num_workers=1, worker_init_fn=change))
    assert dataset.n == 4


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_seeds_of_workers_repeat_and_differ(method: str) -> None:
    """Python's, NumPy's and candelabra's generators are seeded with the base seed + the worker's number."""
    runs = []
    for _ in range(2):
        generator = cd.Generator().manual_seed(11)
        loader = DataLoader(
            Calls(drawn, 4), None, num_workers=2, generator=generator, multiprocessing_context=method, collate_fn=tuple
        )
        runs.append(list(loader))
    first, second = [[row[:4] for row in run] for run in runs]
    assert first == second
    assert first[1][3] == first[0][3] + 1
    for numbers in list(zip(*first))[:3]:
        assert len(set(numbers)) == 4
    assert len({row[4] for run in runs for row in run}) == 4


def test_each_epoch_has_seeds_of_its_own() -> None:
    """Random augmentation differs between epochs, and repeats with the default generator's seed."""

    def epochs() -> list[list[float]]:
        loader = DataLoader(Calls(drawn, 2), None, num_workers=1, collate_fn=tuple)
        return [[row[0] for row in loader] for _ in range(2)]

    cd.manual_seed(1)
    first = epochs()
    cd.manual_seed(1)
    assert epochs() == first
    assert first[0] != first[1]


def random_state() -> Any:
    """The states of the program's generators."""
    return python_state(), numpy_state()[1].tolist()


def test_the_program_keeps_its_random_state() -> None:
    """What workers draw does not move the program's generators; a loader draws its base seed and nothing else."""
    before = random_state()
    cd.manual_seed(1)
    list(DataLoader(Numbers(3)))
    expected = cd.get_rng_state().tolist()
    cd.manual_seed(1)
    list(DataLoader(Calls(drawn, 3), num_workers=1, collate_fn=len))
    assert cd.get_rng_state().tolist() == expected
    assert random_state() == before


def test_workers_create_tensors_on_the_programs_default_device(lantern: LanternBackend) -> None:
    """Collated numbers are on the same device with workers as without."""
    with cd.device("lantern:1"):
        loader = DataLoader(Numbers(4), 2, num_workers=1, multiprocessing_context=FORK)
        batches = list(loader)
    assert [str(batch.device) for batch in batches] == ["lantern:1"] * 2
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3]]


# -- order ------------------------------------------------------------------------------------------------------------
def test_batches_come_as_they_are_ready_if_any_order_will_do() -> None:
    """With in_order=False a batch that waits does not hold up the others; each comes once."""
    released = FORK.Event()

    def wait(index: int) -> int:
        if index == 0:
            released.wait()
        return index

    loader = DataLoader(
        Calls(wait), None, num_workers=2, in_order=False, prefetch_factor=1, multiprocessing_context=FORK
    )
    batches = iter(loader)
    early = [next(batches) for _ in range(7)]
    assert sorted(early) == [1, 2, 3, 4, 5, 6, 7]
    released.set()
    assert list(batches) == [0]


def test_streams_of_unlike_lengths_end_each_for_itself() -> None:
    """A worker whose stream has ended gets no more orders; the others go on in turn."""

    class Unlike(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            info = get_worker_info()
            assert info is not None
            return iter(range(info.id * 100, info.id * 100 + (1, 5)[info.id]))

    for in_order in (True, False):
        loader = DataLoader(Unlike(), batch_size=None, num_workers=2, in_order=in_order)
        found = list(loader)
        assert sorted(found) == [0, 100, 101, 102, 103, 104]
        if in_order:
            assert found == [0, 100, 101, 102, 103, 104]


def test_large_orders_and_results_pass_the_pipes() -> None:
    """Orders and results that fill their pipes at the same time do not block each other."""
    many = [list(range(100_000))] * 4
    loader = DataLoader(Numbers(100_000), batch_sampler=many, num_workers=1, collate_fn=str, prefetch_factor=4)
    assert [len(batch) for batch in loader] == [len(str(many[0]))] * 4


# -- persistent workers -----------------------------------------------------------------------------------------------
def test_persistent_workers_serve_every_epoch(workers: Callable[[], int]) -> None:
    """The processes stay, and their generators go on; an epoch that was left early leaves nothing behind."""
    loader = DataLoader(Calls(drawn, 8), None, num_workers=2, persistent_workers=True, collate_fn=tuple)
    epochs = [list(loader) for _ in range(2)]
    assert workers() == 2
    pids = [[row[4] for row in epoch] for epoch in epochs]
    assert pids[0] == pids[1]
    assert epochs[0][0][3] == epochs[1][0][3]
    assert epochs[0][0][0] != epochs[1][0][0]
    for row in loader:
        assert row[4] == pids[0][0]
        break
    assert [row[4] for row in loader] == pids[0]
    del loader
    gc.collect()
    assert workers() == 0


def test_persistent_workers_read_a_stream_anew() -> None:
    """Each epoch begins the stream again."""
    loader = DataLoader(Stream(5), None, num_workers=2, persistent_workers=True)
    assert [list(loader) for _ in range(3)] == [[0, 1, 2, 3, 4]] * 3


def test_persistent_workers_serve_one_iteration_at_a_time() -> None:
    """An iteration that a later one has interrupted is an error, and the later one is complete."""
    loader = DataLoader(Numbers(20), None, num_workers=1, persistent_workers=True)
    first, second = iter(loader), iter(loader)
    with pytest.raises(RuntimeError, match="the persistent workers serve a later iteration of this DataLoader"):
        next(first)
    assert list(second) == list(range(20))


# -- errors -----------------------------------------------------------------------------------------------------------
def raised_by(function: Any, **options: Any) -> pytest.ExceptionInfo[Exception]:
    """The exception that a loader raises whose items a function computes."""
    with pytest.raises(Exception, match="in DataLoader worker process") as info:
        list(DataLoader(Calls(function), num_workers=2, **options))
    return info


def test_an_exception_of_a_worker_is_raised_with_its_traceback() -> None:
    """The program gets an exception of the same class, whose message has the worker's traceback."""

    def fail(index: int) -> int:
        raise KeyError(f"no key {index}")

    info = raised_by(fail)
    assert info.type is KeyError
    text = str(info.value)
    assert text.startswith(
        "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last)"
    )
    assert "\n    raise KeyError" in text
    assert "no key 0" in text


def test_classes_that_cannot_be_made_anew_become_runtime_errors() -> None:
    """An exception of two arguments, or of a class inside of a function, is a RuntimeError with the traceback."""

    class Local(Exception):
        pass

    def fail(error: Exception) -> Any:
        def item(_: int) -> None:
            raise error

        return item

    for error in (TwoArguments(1, 2), Local("hidden")):
        info = raised_by(fail(error))
        assert info.type is RuntimeError
        assert type(error).__name__ in str(info.value)


def test_errors_of_every_function_in_a_worker_are_raised() -> None:
    """worker_init_fn, collate_fn, the stream's iter and a batch that cannot be pickled fail as an item does."""

    def fail(_: Any) -> Any:
        raise ValueError("refused")

    class Unready(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return fail(0)  # type: ignore[no-any-return]

    loaders: list[DataLoader[Any]] = [
        DataLoader(Numbers(3), num_workers=1, worker_init_fn=fail),
        DataLoader(Numbers(3), num_workers=1, collate_fn=fail),
        DataLoader(Unready(), num_workers=1),
    ]
    for loader in loaders:
        with pytest.raises(ValueError, match=r"(?s)Caught ValueError in DataLoader worker process 0.*refused"):
            list(loader)
    unpicklable = DataLoader(Numbers(3), num_workers=1, collate_fn=lambda _: lambda: 0)
    with pytest.raises(Exception, match="in DataLoader worker process 0") as info:
        list(unpicklable)
    assert "local object" in str(info.value)  # "can't pickle" it or "can't get" it, from Python 3.13 on


def test_tensors_of_a_graph_cannot_leave_their_process() -> None:
    """A batch that requires grad and is no leaf is refused; a leaf keeps requires_grad."""
    graph = DataLoader(Numbers(1), num_workers=1, collate_fn=lambda _: cd.ones(2, requires_grad=True) * 2)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        list(graph)
    leaf = DataLoader(Numbers(1), num_workers=1, collate_fn=lambda _: cd.ones(2, requires_grad=True))
    assert next(iter(leaf)).requires_grad


def test_an_iteration_goes_on_after_an_exception() -> None:
    """The batches after one that failed can still be had."""

    def fail(index: int) -> int:
        if index == 1:
            raise ValueError("one")
        return index

    batches = iter(DataLoader(Calls(fail, 4), None, num_workers=2))
    assert next(batches) == 0
    with pytest.raises(ValueError, match="one"):
        next(batches)
    assert list(batches) == [2, 3]


# -- deaths -----------------------------------------------------------------------------------------------------------
def segfault(_: int) -> None:
    """An item that reads where nothing is."""
    faulthandler.disable()  # which pytest enables
    os.kill(os.getpid(), signal.SIGSEGV)


def overrun(_: int) -> None:
    """An item that ends as a write to a full file system does."""
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGBUS)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (die, r"DataLoader worker \(pid \d+\) is killed by signal: Killed\. This might be .* too little memory"),
        (segfault, r"DataLoader worker \(pid \d+\) is killed by signal: Segmentation fault"),
        (overrun, r"is killed by signal: Bus error\. This might be caused by insufficient shared memory \(shm\)\."),
        (leave, r"DataLoader worker \(pid \d+\) exited unexpectedly with exit code 3\. Details are lost due to"),
        (lambda _: os._exit(0), r"DataLoader worker \(pid \d+\) exited unexpectedly with exit code 0\."),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_dies_is_an_error(function: Any, text: str, count: int, workers: Callable[[], int]) -> None:
    """The error says how the worker ended, no worker is left, and the next iteration starts new ones."""
    loader = DataLoader(Calls(function), None, num_workers=count, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=text):
            list(loader)
        assert workers() == 0


def test_a_worker_that_dies_while_it_is_not_asked_is_an_error() -> None:
    """A worker that is killed between two epochs shows in the next one."""
    loader = DataLoader(Calls(drawn, 4), None, num_workers=1, persistent_workers=True, collate_fn=tuple)
    pid = [row[4] for row in loader].pop()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="is killed by signal: Killed"):
        list(loader)
    assert len(list(loader)) == 4


def test_a_batch_that_takes_too_long_is_an_error(workers: Callable[[], int]) -> None:
    """After the time that timeout allows, the workers are killed and an error is raised."""
    loader = DataLoader(Calls(lambda _: signal.pause()), num_workers=2, timeout=0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(loader)
    assert workers() == 0


# -- the end ----------------------------------------------------------------------------------------------------------
def test_workers_stop_with_their_iteration(workers: Callable[[], int]) -> None:
    """At its end, when the program leaves the loop, and when an exception in the loop has been handled."""
    loader = DataLoader(Numbers(100), num_workers=2)
    assert len(list(loader)) == 100
    assert workers() == 0
    for _ in loader:
        assert workers() == 2
        break
    assert workers() == 0

    def fail() -> None:
        for _ in loader:
            raise ValueError("in the loop")

    with pytest.raises(ValueError, match="in the loop") as info:
        fail()
    del info
    gc.collect()
    assert workers() == 0


def test_a_worker_that_does_not_stop_is_terminated(monkeypatch: pytest.MonkeyPatch, workers: Callable[[], int]) -> None:
    """A worker that is in the midst of an endless item is terminated when the program leaves the loop."""
    monkeypatch.setattr(worker_pool, "STOP_SECONDS", 0.1)
    monkeypatch.setattr(worker_pool.WorkerPool.close, "__defaults__", (0.1,))
    loader = DataLoader(Calls(lambda index: index and signal.pause()), None, num_workers=1)
    for _ in loader:
        break
    assert workers() == 0


def test_loaders_within_loaders_stop_each_for_itself(workers: Callable[[], int]) -> None:
    """Workers that were forked while others ran hold nothing of them: each loader's workers end without a delay."""
    outer = DataLoader(Numbers(4), num_workers=1, persistent_workers=True)
    list(outer)
    inner = DataLoader(Numbers(4), num_workers=1, persistent_workers=True)
    list(inner)
    pool = outer._pool
    assert pool is not None
    for connection in (*pool._orders, *pool._results):
        connection.close()
    pool._processes[0].join(60)
    assert pool._processes[0].exitcode == 0
    del outer, inner, pool
    gc.collect()
    assert workers() == 0


PROGRAM = """
    import os, signal, sys
    sys.path[:0] = {path!r}
    from candelabra.utils.data import DataLoader
    from tests.nn.data.samples import Numbers

    if __name__ == "__main__":
        for batch in DataLoader(Numbers(1000), num_workers=2, multiprocessing_context={method!r}):
            print("first batch", batch.item(), flush=True)
            {end}
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize(
    ("end", "status"),
    [("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL), ("os._exit(5)", 5), ("sys.exit(6)", 6)],
)
def test_workers_end_with_the_program(tmp_path: Any, method: str, end: str, status: int) -> None:
    """However the program ends, its workers end too: no process holds its output open any more."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM.format(path=sys.path, method=method, end=end)))
    # communicate() returns when the last process that has the output's other end has ended.
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "first batch 0\n"
    assert done.returncode == status


# -- how workers start ------------------------------------------------------------------------------------------------
def test_workers_are_forked_unless_a_device_in_use_forbids_it(lantern: LanternBackend) -> None:
    """A device that computes asynchronously, once it is used, makes workers start in fresh processes."""
    assert worker_pool.start_context().get_start_method() == "fork"
    assert worker_pool.devices_without_fork() == []
    cd.ones(2, device="lantern:1")
    assert worker_pool.devices_without_fork() == ["lantern:1"]
    assert worker_pool.start_context().get_start_method() == "forkserver"
    batches = list(DataLoader(Calls(array, 4), 2, num_workers=1))
    assert [batch[:, 0, 0].tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_a_program_chooses_how_workers_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start method that the program has set serves the loader too."""
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none: "spawn")
    assert worker_pool.start_context().get_start_method() == "spawn"


def test_what_cannot_be_pickled_is_explained(lantern: LanternBackend, workers: Callable[[], int]) -> None:
    """Where workers cannot be forked, the error says why a data set is pickled, and what to do."""
    cd.ones(2, device="lantern")
    with pytest.raises(Exception, match=r"(?i)pickle") as info:
        list(DataLoader(Calls(lambda index: index), num_workers=2))
    [note] = info.value.__notes__
    assert re.fullmatch(
        "DataLoader workers start by forkserver because lantern:0, in use, cannot be forked, so the dataset, "
        "collate_fn and worker_init_fn are pickled: define their classes and functions at the top level of a module, "
        "or use num_workers=0",
        note,
    )
    assert workers() == 0
