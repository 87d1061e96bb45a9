"""Values that a later event sets, as ``torch.futures``: results of collectives and of communication hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from candelabra._annotations import Any, Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value, or an error, that is set once. Callbacks run in the thread that sets it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._source: Future[Any] | None = None
        """The future whose callback sets this one. Waiting for this one waits for it first."""

    def done(self) -> bool:
        """Return whether the value or the error is set."""
        if self._source is not None:
            self._source.done()
        return self._set.is_set()

    def wait(self) -> T:
        """Return the value, once it is set. Raise the error."""
        self._finish()
        return self.value()

    def _finish(self) -> None:
        """Wait until the value or the error is set."""
        if self._source is not None and not self._set.is_set():
            self._source._finish()
        self._set.wait()

    def value(self) -> T:
        """Return the value, which must be set. Raise the error."""
        if not self._set.is_set():
            raise RuntimeError("Future.value(): the future is not completed; call wait()")
        if self._error is not None:
            raise self._error
        found: T = self._value
        return found

    def set_result(self, result: T) -> None:
        """Set the value and run the callbacks. Raise RuntimeError if it is set already."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which ``wait()`` and ``value()`` raise."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._set.is_set():
                raise RuntimeError("Future can only be marked completed once: it has a result already")
            self._value, self._error = value, error
            callbacks, self._callbacks = self._callbacks, []
            self._set.set()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future once it is completed, at once if it is."""
        with self._lock:
            if not self._set.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future of what ``callback(self)`` returns, or of the error that it raises."""
        chained: Future[S] = Future()
        chained._source = self

        def run(future: Future[T]) -> None:
            try:
                value = callback(future)
            except Exception as error:
                chained.set_exception(error)
            else:
                chained.set_result(value)

        self.add_done_callback(run)
        return chained


def collect_all(futures: Iterable[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of all futures, which is completed when the last of them is."""
    given = list(futures)
    found: Future[list[Future[Any]]] = _All(given)
    left, lock = [len(given)], threading.Lock()

    def count(_: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            found.set_result(given)

    if not given:
        found.set_result(given)
    for future in given:
        future.add_done_callback(count)
    return found


class _All(Future[T]):
    """The future of :func:`collect_all`."""

    def __init__(self, futures: list[Future[Any]]) -> None:
        super().__init__()
        self._futures = futures

    def done(self) -> bool:
        for future in self._futures:
            future.done()
        return self._set.is_set()

    def _finish(self) -> None:
        for future in self._futures:
            future._finish()
        super()._finish()


def wait_all(futures: Iterable[Future[Any]]) -> list[Any]:
    """Return the values of all futures, once all are completed. Raise the first error."""
    return [future.wait() for future in futures]


__all__ = ["Future", "collect_all", "wait_all"]


def __dir__() -> list[str]:
    return sorted(__all__)
