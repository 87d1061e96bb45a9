"""Launches in forked processes, which is how many data loaders make their workers."""

from __future__ import annotations

import pytest

from tests.native.compiled import run

HEAD = """
import multiprocessing, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
cl.set_num_threads({threads})
visit = launch("visit", "bb")

def works():
    for _ in range(20):
        visits, totals = np.zeros(1000, np.uint8), np.zeros(1000, np.uint64)
        visit(1000, visits, totals)
        assert visits.tolist() == [1] * 1000
    # As many work-items as threads wait for each other.
    present, met = np.zeros(1, np.uint64), np.zeros(cl.get_num_threads(), np.uint64)
    launch("meet", "bQb")(len(met), present, len(met), met)
    assert met.all(), met

def child(target=works):
    pid = os.fork()
    if not pid:
        try:
            target()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
each_number = pytest.mark.parametrize("threads", [1, 2, 3])


@each_number
def test_a_child_after_use(threads: int) -> None:
    """A child starts threads of its own, its children too, and the parent goes on with its threads."""
    program = HEAD.format(threads=threads) + "works()\nchild()\nchild(child)\nworks()\nprint('done')"
    assert run(program).stdout == "done\n"


@each_number
def test_a_child_before_use(threads: int) -> None:
    """A child of a process whose threads have not started works too."""
    assert run(HEAD.format(threads=threads) + "child()\nworks()\nprint('done')").stdout == "done\n"


def test_children_while_another_thread_is_inside_a_launch() -> None:
    """The launch goes on in the parent. It does not exist in the child, which can use all threads."""
    program = """
flags = np.zeros(2, np.uint64)
holder = threading.Thread(target=launch("hold", "b"), args=(2, flags))
holder.start()
while not flags[0]: pass
for _ in range(3): child()
flags[1] = 1
holder.join()
works()
print("done")
"""
    assert run(HEAD.format(threads=2) + program).stdout == "done\n"


def test_children_while_launches_start_and_end() -> None:
    """Whatever the other threads do at the moment of the fork, locks included, the child works."""
    program = """
stop = []
def loop():
    visits, totals = np.zeros(64, np.uint8), np.zeros(64, np.uint64)
    while not stop: visit(64, visits, totals)
loops = [threading.Thread(target=loop) for _ in range(3)]
for thread in loops: thread.start()
for _ in range(20): child()
stop.append(True)
for thread in loops: thread.join()
print("done")
"""
    assert run(HEAD.format(threads=2) + program).stdout == "done\n"


def test_workers_of_multiprocessing() -> None:
    """Workers that multiprocessing forks launch kernels."""
    program = """
def work(i):
    works()
    return i
works()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(4)))
"""
    assert run(HEAD.format(threads=2) + program).stdout == "[0, 1, 2, 3]\n"
