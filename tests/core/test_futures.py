"""candelabra.futures: values that a later event sets."""

from __future__ import annotations

import threading

import pytest
from candelabra.futures import Future, collect_all, wait_all


def test_a_value_is_set_once() -> None:
    """Another thread sets it; callbacks run then, or at once afterwards."""
    future: Future[int] = Future()
    seen: list[int] = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not future.done()
    with pytest.raises(RuntimeError, match=r"the future is not completed; call wait\(\)"):
        future.value()
    thread = threading.Thread(target=future.set_result, args=(3,))
    thread.start()
    assert future.wait() == 3
    thread.join()
    future.add_done_callback(lambda f: seen.append(10 * f.value()))
    assert seen == [3, 30]
    assert future.done()
    with pytest.raises(RuntimeError, match="Future can only be marked completed once"):
        future.set_result(4)


def test_chains() -> None:
    """``then`` gives a future of the callback's result, or of its error."""
    first: Future[int] = Future()
    doubled = first.then(lambda f: 2 * f.value())
    failing = doubled.then(lambda f: f.value() // 0)
    assert not doubled.done()
    first.set_result(4)
    assert doubled.done()
    assert doubled.wait() == 8
    with pytest.raises(ZeroDivisionError):
        failing.wait()


def test_errors() -> None:
    """``wait`` raises the error that was set, which must be an exception."""
    future: Future[int] = Future()
    with pytest.raises(TypeError, match="no error is of type <class 'str'>, not an Exception"):
        future.set_exception("no error")  # type: ignore[arg-type]
    future.set_exception(LookupError("gone"))
    with pytest.raises(LookupError, match="gone"):
        future.wait()


def test_several() -> None:
    """``collect_all`` is completed with the last; ``wait_all`` returns the values."""
    futures: list[Future[int]] = [Future(), Future()]
    every = collect_all(futures)
    futures[1].set_result(1)
    assert not every.done()
    futures[0].set_result(0)
    assert every.done()
    assert [f.value() for f in every.wait()] == [0, 1]
    assert wait_all(futures) == [0, 1]
    assert collect_all([]).wait() == []
