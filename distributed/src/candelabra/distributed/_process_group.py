"""Process groups: their ranks, and the queue of their collectives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from candelabra.distributed._alone import AloneCommunicator
from candelabra.distributed._checking import debug_level, fingerprint
from candelabra.distributed._memory import Queue
from candelabra.distributed._state import ranks as current
from candelabra.distributed._work import WATCHDOG, DistBackendError, Progress, Work
from candelabra.distributed.engine import Communicator, DeviceCommunicator, DeviceEngine


class Queued(NamedTuple):
    """Work on a device that is perhaps not complete."""

    event: Any
    deadline: float
    description: str


class ProcessGroup:
    """Some of the ranks, which call collectives together. ``init_process_group`` and ``new_group`` create them."""

    def __init__(
        self,
        communicator: Communicator,
        ranks: Sequence[int],
        engine: str,
        timeout: timedelta,
        name: str,
        devices: Mapping[str, DeviceEngine] | None = None,
    ) -> None:
        self.communicator = communicator
        self.devices = dict(devices or {})
        """The engines that take memory of devices as it is, by device type."""
        self.device_id: Any = None
        """The device of this rank, if the program has named it."""
        self._ends: dict[Any, DeviceCommunicator] = {}
        self._queues: dict[Any, Queue] = {}
        self._queued: deque[Queued] = deque()
        self.ranks = list(ranks)
        self.engine = engine
        self.timeout = timeout
        self.group_name = name
        self.global_rank = self.ranks[communicator.rank]
        self.failure: str | None = None
        self._count = 0
        self._progress: Progress | None = None
        if self.size() > 1 or self.devices:
            WATCHDOG.watch(self)

    def rank(self) -> int:
        """Return this rank's place in the group."""
        return self.communicator.rank

    def size(self) -> int:
        """Return the number of ranks."""
        return self.communicator.size

    def name(self) -> str:
        """Return the name of the engine."""
        return self.engine

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r}: rank {self.rank()} of {self.size()}, engine {self.engine!r}>"

    def late(self, now: float) -> str | None:
        """Return the description of a call that is not complete in time and for which no rank waits, or None."""
        work = None if self._progress is None else self._progress.current
        if work is not None and work.late(now):
            work.reported = True
            return work.describe()
        while self._queued and self._queued[0].event.query():
            self._queued.popleft()
        first = next(iter(self._queued), None)
        return first.description if first is not None and now > first.deadline else None

    def connect(self, device_id: Any) -> None:
        """Connect the ranks for memory of a device of theirs, if an engine serves its type."""
        self.device_id = device_id
        if device_id is not None and device_id.type in self.devices:
            self.submit("connect", "", lambda: self.on_device(device_id)).wait()

    def connected(self, device: Any) -> bool:
        """Return whether the ranks are connected for a device, or will be when the works under way are complete."""
        return device in self._ends or device in self._queues

    def on_device(self, device: Any) -> DeviceCommunicator:
        """Return this rank's end for a device, whose type an engine serves. Called on the group's thread."""
        if device not in self._ends:
            self._ends[device] = self.devices[device.type].connect(self.communicator, str(device))
        return self._ends[device]

    def next_number(self) -> int:
        """Count the calls, for errors."""
        self._count += 1
        return self._count

    def fail(self, reason: str) -> None:
        """Refuse further calls: after a failure the ranks no longer agree on the next one."""
        self.failure = self.failure or reason

    def check(self, name: str) -> None:
        """Raise if an earlier call has failed."""
        if self.failure is not None:
            raise DistBackendError(
                f"{name}: an earlier call of this group has failed: {self.failure}; destroy_process_group() and "
                "init_process_group() start again"
            )

    def abort(self, reason: str) -> None:
        """End all ranks of the job."""
        self.fail(reason)
        self.communicator.abort(reason)

    def submit(
        self,
        name: str,
        signature: str,
        task: Callable[[], Any],
        finish: Callable[[], Any] | None = None,
        device: Any = None,
    ) -> Work:
        """Run ``task`` on the group's thread after the earlier ones, and return its work.

        ``finish`` runs once, in the thread that waits. Debug mode compares ``signature``, which all ranks have. With a
        device, the task submits work to the group's stream, after that of the calling thread.
        """
        self.check(name)
        work = Work(self, f"{name}({signature})", finish)
        if self.size() == 1 and device is None:  # no other rank to wait for
            work.run(task)
            return work
        if self._progress is None:
            self._progress = Progress(self.group_name)
        if debug_level() == "DETAIL":
            described, inner = work.describe(), task

            def task() -> None:
                fingerprint(self.communicator, f"{name}({signature})", described)
                inner()

        self._progress.submit(work, task if device is None else self._on_stream(work, task, device))
        return work

    def _on_stream(self, work: Work, task: Callable[[], Any], device: Any) -> Callable[[], Any]:
        if device not in self._queues:
            self._queues[device] = Queue(device)
        queue = self._queues[device]
        before = queue.mark()

        def queued() -> None:
            work.event = queue.run(before, task)
            if work.event is not None:
                self._queued.append(Queued(work.event, work.deadline, work.describe()))

        return queued

    def close(self, wait: bool = True) -> None:
        """Complete the works under way, and release the communicator. Every rank calls it.

        After a failure, and with ``wait=False``, only end the group's thread as soon as it is idle.
        """
        WATCHDOG.leave(self)
        good = wait and self.failure is None
        if self._progress is not None:
            good = self._progress.stop(self.timeout.total_seconds() if good else 0.0) and good
        if good:
            for end in self._ends.values():
                end.close()
            self.communicator.close()


SELF: Final = "self"
"""The name of the group of this rank alone."""


def own_group() -> ProcessGroup:
    """Return the group of this rank alone, which exists without ``init_process_group``."""
    here = current()
    if here.alone is None:
        here.alone = ProcessGroup(AloneCommunicator(), [0], "none", timedelta(minutes=30), SELF)
    return here.alone


def group_named(name: str) -> ProcessGroup:
    """Return this rank's group of a name, or raise ValueError."""
    if name == SELF:
        return own_group()
    for found in current().groups:
        if found.group_name == name:
            return found
    names = ", ".join(repr(each.group_name) for each in current().groups)
    raise ValueError(f"rank has no process group {name!r}: there are {names or 'none, before init_process_group'}")


def unique_name(name: str) -> str:
    """Return a name that no group of this rank has: the given one, or with a number."""
    here = current()
    here.created += 1
    return f"{name} ({here.created})" if name in (SELF, *(each.group_name for each in here.groups)) else name


NON_GROUP_MEMBER: Any = object()
"""What ``new_group`` returns on ranks outside the group."""


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks, or None before ``init_process_group``."""
        return current().default


class group(metaclass=_WorldMeta):
    """The groups that PyTorch names: ``WORLD``, all ranks."""


class GroupMember(metaclass=_WorldMeta):
    """``WORLD``, and ``NON_GROUP_MEMBER``, which ``new_group`` returns on ranks outside the group."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


def default_group() -> ProcessGroup:
    """Return the group of all ranks. Raise ValueError before ``init_process_group``."""
    found = current().default
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def resolved(group: Any, name: str) -> ProcessGroup:
    """Return the group of a call, None for the default one. Raise ValueError if this rank is not in it."""
    if group is current().alone and group is not None:
        return own_group()
    default = default_group()
    if group is None:
        return default
    if group is NON_GROUP_MEMBER:
        raise ValueError(
            f"Running {name} on global rank {default.global_rank} which does not belong to the given group."
        )
    if not isinstance(group, ProcessGroup) or group not in current().groups:
        raise ValueError("Invalid process group specified or has been destroyed.")
    return group
