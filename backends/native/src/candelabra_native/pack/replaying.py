"""Find the kernels that calls need, by making the calls on a processor that launches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from candelabra_clike import C, Engine, Launch, Source
from candelabra_clike.device_errors import DeviceErrors
from candelabra_clike.kernels import table

from candelabra_native.pack.calls import RecordedCall, arguments
from candelabra_native.processor import traits_of

_ONE: Final = (1).to_bytes(8, "little")


class UntouchedMemory:
    """A block of memory that is never accessed."""

    __slots__ = ()


class NoErrors(DeviceErrors):
    """The errors of kernels that do not run."""

    def check(self) -> None:
        """Do nothing."""


class DryEngine(Engine):
    """The processor without memory: it records the kernels that calls would launch.

    What a call reads of its arrays is the integer 1, so that a selection has one element.
    """

    dialect = C
    index = 0

    def __init__(self, level: str | None) -> None:
        self.traits = traits_of(level)
        self.errors = NoErrors(self)
        self.sources: Final[dict[Source, None]] = {}
        """The kernels, each once, in the order of their first use."""

    def allocate(self, nbytes: int) -> UntouchedMemory:
        return UntouchedMemory()

    def read(self, buffer: UntouchedMemory, offset: int, nbytes: int) -> memoryview:
        return memoryview((_ONE * (nbytes // 8 + 1))[:nbytes])

    def write(self, buffer: UntouchedMemory, offset: int, data: memoryview) -> None:
        """Do nothing."""

    def copy(self, destination: UntouchedMemory, to: int, source: UntouchedMemory, start: int, nbytes: int) -> None:
        """Do nothing."""

    def compile(self, source: Source) -> Launch:
        self.sources[source] = None
        return launch_nothing

    def synchronize(self) -> None:
        """Do nothing: no work is pending."""


def launch_nothing(count: Any, /, *arguments: Any) -> None:
    """Do nothing, in the place of a compiled kernel."""


class EngineReplay:
    """Calls on a new engine, one after another."""

    def __init__(self, level: str | None) -> None:
        self.engine: Final = DryEngine(level)
        self._kernels: Final[Mapping[str, Any]] = table(lambda index: self.engine)

    def added(self, call: RecordedCall) -> list[Source]:
        """Make a call, and return the kernels that no call before it needed.

        Its errors are ignored: kernels that check values find none here. There is no kernel if the operator has none.
        """
        before = len(self.engine.sources)
        kernel = self._kernels.get(call.operator)
        choose = getattr(kernel, "for_dtype", None)
        function = kernel if choose is None else choose(call.dtype)
        if function is not None:
            try:
                function(*arguments(call, self.engine))
            except Exception:
                pass
        return list(self.engine.sources)[before:]


def needed_sources(calls: Iterable[RecordedCall], level: str | None) -> list[Source]:
    """Return the kernels of these calls on a processor of a level, each once."""
    replay = EngineReplay(level)
    for call in calls:
        replay.added(call)
    return list(replay.engine.sources)


def minimal(calls: Iterable[RecordedCall], levels: Sequence[str]) -> list[RecordedCall]:
    """Return calls that need the same kernels on processors of these levels, of which each adds at least one to those
    of the others.
    """
    kept = list(calls)
    for _ in range(2):  # from the front, then from the back
        replays = [EngineReplay(level) for level in levels]
        # Each level's replay makes every call: what a later call adds depends on it.
        kept = [call for call in kept if sum(len(replay.added(call)) for replay in replays)]
        kept.reverse()
    return kept
