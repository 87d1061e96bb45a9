"""Work in several threads at once."""

import threading

import pytest
from candelabra_conformance.threads import in_threads


def test_all_of_them_are_at_work_at_the_same_time() -> None:
    """Each waits for the others in its work, and all return."""
    meeting = threading.Barrier(4, timeout=30)
    seen: set[int] = set()

    def work(number: int) -> None:
        meeting.wait()
        seen.add(number)

    in_threads(4, work)
    assert seen == {0, 1, 2, 3}


def test_an_error_of_one_is_raised_after_the_others_have_ended() -> None:
    """The caller sees what went wrong, and nothing goes on behind its back."""
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
