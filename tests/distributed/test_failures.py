"""Ranks that fail, are late, or call something else. Ranks are threads."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra.distributed import _checking, _failures, _threads, threads

HERE = re.escape(os.path.basename(__file__))


@pytest.fixture
def detail() -> Iterator[None]:
    """Compare every collective of all ranks."""
    dist.set_debug_level("DETAIL")
    yield
    _checking._set.clear()


def test_a_rank_that_raises_releases_the_others() -> None:
    """The run raises its error; the others' error names it, the collective and the user's line."""
    errors: list[str] = []

    def program() -> None:
        if dist.get_rank() == 1:
            raise KeyError("no such batch")
        try:
            dist.all_reduce(cd.ones(2, 3))
        except dist.DistBackendError as error:
            errors.append(str(error))
            raise

    with pytest.raises(KeyError, match="no such batch") as raised:
        threads.run(program, 2)
    assert raised.value.__notes__ == ["This error was raised in rank 1 of 2."]
    expected = (
        rf"rank 0: all_reduce\(float32\[2, 3\], ReduceOp\.SUM\), number 1 of group 'world', called at {HERE}:\d+: "
        "rank 1 has ended with KeyError: 'no such batch'"
    )
    assert [bool(re.fullmatch(expected, text)) for text in errors] == [True]


def test_a_late_rank_is_an_error_within_the_timeout() -> None:
    """The group refuses further calls, since the ranks no longer agree on the next one."""
    arrived = threading.Event()

    def program() -> None:
        if dist.get_rank() == 1:
            assert arrived.wait(60)
            return
        text = rf"rank 0: barrier\(\), number 1 of group 'world', called at {HERE}:\d+, did not complete within 0\.1 s"
        with pytest.raises(dist.DistBackendError, match=text):
            dist.barrier()
        with pytest.raises(
            dist.DistBackendError, match="all_reduce: an earlier call of this group has failed: rank 0: barr"
        ):
            dist.all_reduce(cd.ones(1))
        with pytest.raises(dist.DistBackendError, match="isend: an earlier call of this group has failed"):
            dist.isend(cd.ones(1), 1)
        with pytest.raises(dist.DistBackendError, match="irecv: an earlier call of this group has failed"):
            dist.irecv(cd.ones(1), 1)
        arrived.set()

    threads.run(program, 2, timeout=timedelta(seconds=0.1))


def test_wait_takes_a_timeout_of_its_own() -> None:
    """A receive whose message does not come, and a collective."""
    arrived = threading.Event()

    def program() -> None:
        if dist.get_rank() == 0:
            limit = timedelta(seconds=0.05)
            with pytest.raises(
                dist.DistBackendError, match=r"irecv\(float32\[1\], src=1\).* did not complete within 0\.05 s"
            ):
                dist.irecv(cd.ones(1), 1, tag=1).wait(limit)
            arrived.set()
        assert arrived.wait(60)

    threads.run(program, 2)


def test_the_watchdog_ends_a_collective_for_which_nobody_waits() -> None:
    """Every rank is released with an error that names the collective that hangs."""
    released: list[str] = []

    def program() -> None:
        if dist.get_rank() == 0:
            dist.all_reduce(cd.ones(1), async_op=True)
        group = dist.group.WORLD
        assert group is not None
        # Rank 1 waits for a message, which never comes; the watchdog fails the whole job.
        with pytest.raises(dist.DistBackendError, match=r"did not complete within 0\.1 s") as raised:
            dist.irecv(cd.ones(1), 1 - dist.get_rank()).wait(timedelta(seconds=60))
        released.append(str(raised.value))

    threads.run(program, 2, timeout=timedelta(seconds=0.1))
    assert all("rank 0: all_reduce(float32[1], ReduceOp.SUM), number 1" in text for text in released)
    assert len(released) == 2


@pytest.mark.usefixtures("detail")
@pytest.mark.parametrize("kind", ["operation", "shape", "dtype", "root", "order"])
def test_debug_mode_names_calls_that_differ(kind: str) -> None:
    """Every rank gets an error with the calls of all, and their lines."""

    def call(x: Any) -> None:
        second = dist.get_rank() == 1
        if kind == "operation":
            dist.all_reduce(x, dist.ReduceOp.MAX if second else dist.ReduceOp.SUM)
        elif kind == "shape":
            dist.all_reduce(cd.ones(3) if second else x)
        elif kind == "dtype":
            dist.all_reduce(x.double() if second else x)
        elif kind == "root":
            dist.broadcast(x, int(second))
        elif second:
            dist.barrier()
        else:
            dist.all_reduce(x)

    def program() -> None:
        dist.all_reduce(cd.ones(2))  # equal calls pass
        calls = [rf"\n  rank {rank}: .* number 2 .*{HERE}:\d+" for rank in range(2)]
        text = f"the ranks have called different collectives:{''.join(calls)}"
        with pytest.raises(dist.DistBackendError, match=text) as raised:
            call(cd.ones(2))
        assert isinstance(raised.value.__cause__, dist.MismatchedCollective)

    threads.run(program, 2)


def test_debug_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a call, or from the environment, where PyTorch's variable serves too."""
    monkeypatch.delenv("CANDELABRA_DISTRIBUTED_DEBUG", raising=False)
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    assert dist.get_debug_level() == "OFF"
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level() == "DETAIL"
    monkeypatch.setenv("CANDELABRA_DISTRIBUTED_DEBUG", "info")
    assert dist.get_debug_level() == "INFO"
    monkeypatch.setenv("CANDELABRA_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(ValueError, match="CANDELABRA_DISTRIBUTED_DEBUG must be one of OFF, INFO, DETAIL, got 'LOUD'"):
        dist.get_debug_level()
    with pytest.raises(ValueError, match="the debug level must be one of OFF, INFO, DETAIL, got 3"):
        dist.set_debug_level(3)  # type: ignore[arg-type]


def test_sizes_that_differ_are_found_by_the_engine_too() -> None:
    """Without debug mode, the engine of threads compares numbers of bytes."""
    cases = {
        "the ranks have buffers of different sizes": lambda n: dist.all_reduce(cd.ones(n)),
        "the buffer has": lambda n: dist.broadcast(cd.ones(n), 0),
        "were expected from it": lambda n: dist.all_to_all([cd.ones(n), cd.ones(n)], [cd.ones(2), cd.ones(2)]),
    }
    for text, call in cases.items():

        def program(call: Any = call) -> None:
            call(2 + dist.get_rank())

        with pytest.raises(dist.DistBackendError, match=text):
            threads.run(program, 2)


def test_calls_that_differ_are_found_by_the_engine_too() -> None:
    """Without debug mode, every rank of the engine of threads gets the calls of all."""

    def program() -> None:
        if dist.get_rank():
            dist.broadcast(cd.ones(2), 0)
        else:
            dist.all_reduce(cd.ones(2))

    text = "the ranks make different calls: rank 0: all_reduce float32 sum; rank 1: broadcast from 0"
    with pytest.raises(dist.DistBackendError, match=text):
        threads.run(program, 2)


def test_uncaught_errors_end_all_ranks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The hooks print the rank and the traceback, then abort; they are installed once."""
    monkeypatch.setattr(_failures, "_installed", [])
    monkeypatch.setattr(sys, "excepthook", lambda *_: sys.stderr.write("the traceback\n"))
    monkeypatch.setattr(threading, "excepthook", lambda _: sys.stderr.write("of a thread\n"))
    codes: list[int] = []
    _failures.install_hook(3, codes.append)
    installed = sys.excepthook
    _failures.install_hook(4, codes.append)
    assert sys.excepthook is installed
    sys.excepthook(ValueError, ValueError("bad"), None)
    threading.excepthook(threading.ExceptHookArgs((ValueError, None, None, None)))
    said = capsys.readouterr().err
    assert said == (
        "rank 3 ends all ranks because of ValueError: bad\nthe traceback\n"
        "rank 3 ends all ranks because of an error in a thread\nof a thread\n"
    )
    assert codes == [1, 1]


def test_the_first_failure_of_a_job_stays() -> None:
    """Ranks that fail because of another do not hide it."""
    job = _threads.Job(2)
    job.fail("first")
    job.fail("second")
    with pytest.raises(_threads.RankFailed, match="first"):
        job.check()


def test_no_thread_is_left_behind() -> None:
    """Neither of groups that were closed, nor of those of ranks that have failed."""

    def program() -> None:
        dist.all_reduce(cd.ones(1))
        if dist.get_rank() == 1:
            raise KeyError("no such batch")
        dist.all_reduce(cd.ones(1))

    with pytest.raises(KeyError, match="no such batch"):
        threads.run(program, 2)
    for thread in threading.enumerate():
        if thread.name == "candelabra.distributed world":
            thread.join(60)
            assert not thread.is_alive()
