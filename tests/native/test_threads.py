"""The thread pool: work-items on several threads, from several threads, with the same results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from candelabra_native.launch import get_num_threads, set_num_threads

from tests.native.compiled import launch, run


@pytest.fixture(autouse=True)
def _number_of_threads() -> Iterator[None]:
    """Restore the number of threads."""
    before = get_num_threads()
    yield
    set_num_threads(before)


def test_number_of_threads() -> None:
    """It is what was set, up to the most that the pool has; only positive integers are accepted."""
    set_num_threads(3)
    assert get_num_threads() == 3
    set_num_threads(10**6)
    assert get_num_threads() == 1024
    with pytest.raises(ValueError, match="set_num_threads expects a positive integer, got 0"):
        set_num_threads(0)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        set_num_threads("2")  # type: ignore[arg-type]
    assert get_num_threads() == 1024


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_each_work_item_runs_once(threads: int) -> None:
    """Whatever their number and that of the threads, and each sees the total."""
    set_num_threads(threads)
    visit = launch("visit", "bb")
    for count in (1, 2, 3, 7, 31, 32, 33, 64, 127, 128, 129, 1000, 4097):
        visits, totals = np.zeros(count + 1, np.uint8), np.zeros(count + 1, np.uint64)
        visit(count, visits, totals)
        assert visits.tolist() == [1] * count + [0]
        assert totals.tolist() == [count] * count + [0]


@pytest.mark.parametrize("count", [2**31 + 5, 2**32, 2**40 + 1, 2**63 - 1])
def test_huge_counts(count: int) -> None:
    """Ranges cover all work-items, without a loop over them."""
    for threads in (1, 2, 5):
        set_num_threads(threads)
        seen = np.zeros(3, np.uint64)
        launch("ranges", "b")(count, seen)
        assert seen[1:].tolist() == [count, count]
        assert seen[0] <= 16 * threads


def test_results_do_not_depend_on_the_number_of_threads(rng: np.random.Generator) -> None:
    """Sums of float32 have the same bits with any number of threads."""
    x = rng.standard_normal((61, 1001), dtype=np.float32)
    results = []
    for threads in (1, 2, 3, 4, 8):
        set_num_threads(threads)
        out = np.empty(61, np.float32)
        launch("sums", "bbQ")(61, x, out, 1001)
        results.append(out.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("threads", [2, 4])
def test_work_items_run_at_the_same_time(threads: int) -> None:
    """As many work-items as there are threads wait for each other, and meet."""
    set_num_threads(threads)
    for _ in range(3):
        present, met = np.zeros(1, np.uint64), np.zeros(threads, np.uint64)
        launch("meet", "bQb")(threads, present, threads, met)
        assert met.tolist() == [1] * threads


def _threads(count: int, rounds: int = 10000) -> set[int]:
    out = np.zeros(count, np.uint64)
    launch("threads", "bQ")(count, out, rounds)
    return {int(x) for x in out}


def test_no_more_threads_than_asked_for() -> None:
    """Also when there were more before: with one, everything runs in the caller's thread."""
    set_num_threads(4)
    assert len(_threads(64)) <= 4
    set_num_threads(2)
    assert len(_threads(64)) <= 2
    set_num_threads(1)
    assert _threads(64) == {threading.get_ident()}


def test_several_threads_launch_at_once(rng: np.random.Generator) -> None:
    """More threads than the pool has jobs launch at the same time, and each gets its results."""
    set_num_threads(3)
    x = rng.standard_normal((33, 200), dtype=np.float32)
    sums = launch("sums", "bbQ")
    expected = np.empty(33, np.float32)
    sums(33, x, expected, 200)

    def repeat(times: int) -> bool:
        out = np.empty(33, np.float32)
        for _ in range(times):
            out[:] = 0
            sums(33, x, out, 200)
            if out.tobytes() != expected.tobytes():
                return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(repeat, [300] * 12))


@contextmanager
def running_launch() -> Iterator[Callable[[], None]]:
    """Run another thread's launch with two threads, until the end or until the function that it yields is called."""
    set_num_threads(2)
    flags = np.zeros(2, np.uint64)
    # Two work-items, so that the job is posted; the second is the helper's or the caller's.
    holder = threading.Thread(target=launch("hold", "b"), args=(2, flags))
    holder.start()
    while not flags[0]:
        pass

    def finish() -> None:
        flags[1] = 1
        holder.join()

    try:
        yield finish
    finally:
        finish()


def test_callers_count_as_threads() -> None:
    """While another thread's kernel runs, a launch with two threads stays in its caller's: no more than two run."""
    with running_launch():
        assert _threads(64) == {threading.get_ident()}


def test_every_other_launch_runs_through_the_parts_of_its_threads_backwards() -> None:
    """What a launch wrote last, and a cache still has, is what the next launch begins with."""
    orders = []
    with running_launch():  # so there are no helpers: the caller takes its own part first, then the other one
        for _ in range(4):
            times, counter = np.zeros(32, np.uint64), np.zeros(1, np.uint64)
            launch("order", "bb")(32, times, counter)
            orders.append(np.argsort(times).tolist())
    forwards, backwards = [*range(32)], [*range(15, -1, -1), *range(31, 15, -1)]
    assert sorted(orders) == sorted([forwards, backwards] * 2)
    assert orders[0] != orders[1]


def test_helpers_join_a_running_launch() -> None:
    """A launch that began while another one ran gets its helper when the other one is done."""
    with running_launch() as finish:
        # The work-items wait for each other: a single thread does not get to the second one.
        present, met = np.zeros(1, np.uint64), np.zeros(2, np.uint64)
        meeting = threading.Thread(target=launch("meet", "bQb"), args=(2, present, 2, met))
        meeting.start()
        while not present[0]:
            pass
        finish()
        meeting.join()
    assert met.tolist() == [1, 1]


def test_helpers_round_as_their_caller() -> None:
    """If the caller's thread flushes denormal numbers, its helpers do too, and not afterwards."""
    program = """
import ctypes
flush = ctypes.CFUNCTYPE(None, ctypes.c_int)(function("flush_denormals"))
cl.set_num_threads(2)
out = np.ones(32, np.float32)
for on in (0, 1, 0):
    flush(on)
    launch("denormal", "b")(32, out)
    flush(0)
    print(len(set(out.tobytes()[i : i + 4] for i in range(0, 128, 4))), bool(out.view(np.uint32)[0]))
"""
    assert run(program).stdout == "1 True\n1 False\n1 True\n"


def test_helpers_handle_no_signals() -> None:
    """A helper blocks every signal but those of its own faults, so handlers run in the program's threads."""
    program = """
cl.set_num_threads(2)
caller, masks = [], set()
for _ in range(50):
    out = np.zeros(32, np.uint64)
    launch("blocked", "b")(32, out)
    masks |= {int(x) for x in out}
    if len(masks) > 1:
        break
print(sorted(s for s in range(1, 32) if not max(masks) >> s & 1), min(masks))
"""
    # SIGILL, SIGBUS, SIGFPE, SIGSEGV; SIGKILL and SIGSTOP cannot be blocked.
    assert run(program).stdout == "[4, 7, 8, 9, 11, 19] 0\n"


def _pause(seconds: float) -> float:
    """Return the processor time that all threads of this process use during a pause.

    Tests take the least of several: on a busy machine, a helper may not be asleep yet.
    """
    before = time.process_time()
    time.sleep(seconds)
    return time.process_time() - before


def test_idle_threads_sleep() -> None:
    """After work, four threads use next to no processor time."""
    set_num_threads(4)
    _threads(64, 1000)
    assert min(_pause(0.01) for _ in range(40)) < 0.001


def test_idle_threads_sleep_soon() -> None:
    """A pause right after work uses less than a millisecond of processor time."""
    set_num_threads(2)

    def pause_after_work() -> float:
        _threads(4, 10)
        return _pause(0.003)

    assert min(pause_after_work() for _ in range(40)) < 0.001


def test_threads_wake_again() -> None:
    """Threads that went to sleep take part again."""
    set_num_threads(2)
    for _ in range(3):
        present, met = np.zeros(1, np.uint64), np.zeros(2, np.uint64)
        launch("meet", "bQb")(2, present, 2, met)
        assert met.tolist() == [1, 1]
        time.sleep(0.01)


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_the_interpreter_exits_with_sleeping_threads(end: str) -> None:
    """However a program ends, with idle threads it ends at once and as it says."""
    program = "cl.set_num_threads(4)\nlaunch('threads', 'bQ')(64, np.zeros(64, np.uint64), 100)\ntime.sleep(0.01)\n"
    done = run(program + end, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (3 if end else 0, "")


def test_the_interpreter_exits_while_a_kernel_runs() -> None:
    """A daemon thread inside a launch does not keep the interpreter from ending."""
    program = """
import threading
cl.set_num_threads(2)
flags = np.zeros(2, np.uint64)
threading.Thread(target=launch("hold", "b"), args=(2, flags), daemon=True).start()
while not flags[0]: pass
"""
    done = run(program, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_cannot_start_are_done_without() -> None:
    """If the system refuses new threads, the caller does all work."""
    program = """
import resource
cl.set_num_threads(64)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
visits, totals = np.zeros(1000, np.uint8), np.zeros(1000, np.uint64)
launch("visit", "bb")(1000, visits, totals)
cl.set_num_threads(1024)
launch("visit", "bb")(1000, visits, totals)
print(set(visits.tolist()))
"""
    assert run(program).stdout == "{2}\n"


def test_the_pool_follows_the_number_of_the_program() -> None:
    """Once connected, the pool has the default number of threads, and each that `set_num_threads` sets."""
    program = """
import candelabra as cd
from candelabra_native import threads
threads.connect()
before = cl.get_num_threads() == cd.get_num_threads()
cd.set_num_threads(5)
threads.connect()
cd.set_num_threads(3)
print(before, cl.get_num_threads())
"""
    assert run(program).stdout == "True 3\n"
