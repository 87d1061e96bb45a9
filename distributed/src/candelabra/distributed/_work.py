"""Works: collectives under way, the thread that runs them, and the thread that watches their time."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from candelabra.futures import Future
from candelabra.library import is_compiling, note_break

if TYPE_CHECKING:
    from candelabra import Tensor
    from candelabra.distributed._process_group import ProcessGroup
    from candelabra.distributed.engine import Request

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGES: Final = (_ROOT + os.sep, os.path.dirname(os.path.abspath(sys.modules["candelabra"].__file__ or "")) + os.sep)
_GRACE: Final = 1.0
"""Seconds by which the watchdog lets a waiting rank raise the error itself."""


class DistError(RuntimeError):
    """An error of ``candelabra.distributed``."""


class DistBackendError(DistError):
    """A collective has failed or was not completed in time. The text names rank, collective and the user's line."""


def users_line() -> str:
    """Return file and line of the innermost frame outside candelabra."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGES) and f"{os.sep}candelabra{os.sep}nn{os.sep}" not in file and file[0] != "<":
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


class Work:
    """A collective under way, as PyTorch's: after ``wait()`` its tensors have their values for all further work."""

    def __init__(self, group: ProcessGroup, name: str, finish: Callable[[], Any] | None = None) -> None:
        if is_compiling():
            note_break(f"{name} is a call of a process group that no operator stands for")
        self._group = group
        self._number = group.next_number()
        self._name = name
        self._line = users_line()
        self._finish = finish
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._error: BaseException | None = None
        self.deadline = time.monotonic() + group.timeout.total_seconds()
        self.event: Any = None
        """The end of the work on a device. ``wait()`` lets the current stream wait for it, and not the host."""
        self.tensors: list[Tensor] = []
        self.source: int | None = None
        """The rank from which a device receives."""
        self.reported = False
        """Whether an error of this work has been raised to the program."""

    def describe(self) -> str:
        """Return rank, collective and the user's line, for errors."""
        return (
            f"rank {self._group.global_rank}: {self._name}, number {self._number} of group {self._group.group_name!r}, "
            f"called at {self._line}"
        )

    def run(self, task: Callable[[], Any]) -> None:
        """Run the task, on the group's thread."""
        try:
            task()
        except BaseException as error:
            self._error = error
            self._group.fail(f"{self.describe()}: {error}")
        self._done.set()

    def late(self, now: float) -> bool:
        """Return whether the time of this work, and the grace of the watchdog, are over."""
        return not self._done.is_set() and not self.reported and now > self.deadline + _GRACE

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the work is complete and the tensors have their values. Return True.

        Raises :class:`DistBackendError` if the work has failed, or if it has not completed within its group's timeout.
        """
        given = self.deadline - time.monotonic() if timeout is None else timeout.total_seconds()
        if not self._arrived(max(given, 0)):
            self.reported = True
            limit = self._group.timeout if timeout is None else timeout
            reason = (
                f"{self.describe()}, did not complete within {limit.total_seconds():g} s: another rank is late, has "
                "ended, or calls other collectives"
            )
            self._group.fail(reason)
            raise DistBackendError(reason)
        self._complete()
        return True

    def _arrived(self, seconds: float) -> bool:
        """Wait for the work at most so long, and return whether it is complete."""
        return self._done.wait(seconds)

    def _complete(self) -> None:
        if self._error is not None:
            self.reported = True
            raise DistBackendError(f"{self.describe()}: {self._error}") from self._error
        if self.event is not None:
            self.event.wait()
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None:
                finish()

    def is_completed(self) -> bool:
        """Return whether the work is complete, without waiting."""
        return self._done.is_set() and (self.event is None or self.event.query())

    def is_success(self) -> bool:
        """Return whether the work is complete without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error of the work, if it has one."""
        return self._error

    def result(self) -> list[Tensor]:
        """Return the tensors that the collective writes."""
        return self.tensors

    def get_future(self) -> Future[list[Tensor]]:
        """Return a future of the tensors. Its callbacks run in the thread that waits for it."""
        return WorkFuture(self)

    def source_rank(self) -> int:
        """Return the rank that a receive has received from."""
        assert self.source is not None
        return self.source

    def synchronize(self) -> None:
        """Wait, as :meth:`wait` does."""
        self.wait()


class WorkFuture(Future["list[Tensor]"]):
    """The future of a work, which is completed by waiting for the work."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def done(self) -> bool:
        """Return whether the work is complete. If so, the callbacks have been called."""
        if self._work.is_completed():
            self._finish()
        return super().done()

    def _finish(self) -> None:
        if self._set.is_set():
            return
        try:
            self._work.wait()
        except DistBackendError as error:
            self.set_exception(error)
        else:
            self.set_result(self._work.tensors)


class PointToPoint(Work):
    """A send or a receive under way, which the waiting thread polls."""

    def __init__(self, group: ProcessGroup, name: str, request: Request, finish: Callable[[], Any] | None) -> None:
        super().__init__(group, name, finish)
        self.request = request

    def is_completed(self) -> bool:
        """Return whether the message has been sent or has arrived."""
        with self._lock:
            if not self._done.is_set():
                try:
                    done = self.request.test()
                except Exception as error:
                    self._error, done = error, True
                if done:
                    self._done.set()
        return self._done.is_set()

    def _arrived(self, seconds: float) -> bool:
        end, pause = time.monotonic() + seconds, 0.0
        while not (done := self.is_completed()) and time.monotonic() < end:
            time.sleep(pause)  # 0 at first: it gives way to other threads
            pause = min(pause + 1e-5, 1e-3)
        return done

    def source_rank(self) -> int:
        """Return the rank that a completed receive has received from."""
        return self._group.ranks[self.request.source()]


class Progress:
    """The thread of a group, which runs its collectives one after another."""

    def __init__(self, name: str) -> None:
        self.current: Work | None = None
        self._tasks: queue.SimpleQueue[tuple[Work, Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"candelabra.distributed {name}", daemon=True)
        self._thread.start()

    def submit(self, work: Work, task: Callable[[], Any]) -> None:
        """Run a task after those that have been submitted."""
        self._tasks.put((work, task))

    def stop(self, seconds: float) -> bool:
        """End the thread after the tasks that have been submitted, and wait for it at most so long.

        Return whether it has ended. A thread that hangs in the engine is left alone.
        """
        self._tasks.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while (found := self._tasks.get()) is not None:
            work, task = found
            self.current = work
            work.run(task)
            self.current = None
            del found, work, task  # they hold tensors, and the next task may come late


class Watchdog:
    """One thread per process, which ends all ranks if a collective hangs for which no rank waits."""

    def __init__(self) -> None:
        self._groups: list[ProcessGroup] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def watch(self, group: ProcessGroup) -> None:
        """Watch a group until it is closed."""
        with self._changed:
            self._groups.append(group)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="candelabra.distributed watchdog", daemon=True)
                self._thread.start()

    def leave(self, group: ProcessGroup) -> None:
        """Watch a group no longer."""
        with self._changed:
            if group in self._groups:
                self._groups.remove(group)
            self._changed.notify_all()

    def _serve(self) -> None:
        with self._changed:
            while self._groups:
                now = time.monotonic()
                for group in list(self._groups):
                    late = group.late(now)
                    if late is not None:
                        group.abort(f"{late}, did not complete within {group.timeout.total_seconds():g} s")
                shortest = min(group.timeout.total_seconds() for group in self._groups)
                self._changed.wait(min(max(shortest / 4, 0.05), 1.0))
            self._thread = None


WATCHDOG: Final = Watchdog()
