"""Concurrent calls in several threads."""

import threading

import pytest
from candelabra_conformance.threads import in_threads


def test_all_threads_run_at_the_same_time() -> None:
    """Each call waits for the others, and all return."""
    meeting = threading.Barrier(4, timeout=30)
    seen: set[int] = set()

    def work(number: int) -> None:
        meeting.wait()
        seen.add(number)

    in_threads(4, work)
    assert seen == {0, 1, 2, 3}


def test_an_error_of_one_is_raised_after_the_others_have_ended() -> None:
    """The caller gets the error, and no thread is still running."""
    failed = threading.Event()
    ended: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            failed.set()
            raise ValueError("the second one fails")
        assert failed.wait(30)
        ended.append(number)

    with pytest.raises(ValueError, match="the second one fails"):
        in_threads(3, work)
    assert sorted(ended) == [0, 2]
