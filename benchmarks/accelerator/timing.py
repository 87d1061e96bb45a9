"""Time on a device: of the host for giving it work, and of the device for doing it, by its own events."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Protocol


class Clock(Protocol):
    """A device as something that can be waited for, and be asked when it came to a place in its work."""

    def synchronize(self) -> None:
        """Wait for all work."""

    def record(self) -> Any:
        """An event: a place in the device's work. ``query()`` says whether the device has passed it."""

    def between(self, start: Any, end: Any) -> float:
        """Seconds between two events, both passed."""


class TorchClock:
    """PyTorch's CUDA events."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3


class StreamClock:
    """Events of a backend of candelabra that has streams."""

    def __init__(self, backend: Any, index: int) -> None:
        self._backend = backend
        self._index = index

    def synchronize(self) -> None:
        self._backend.synchronize(self._index)

    def record(self) -> Any:
        return self._backend.current_stream(self._index).record()

    def between(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3


class Moment:
    """What stands for an event where a call returns when its work is done."""

    def __init__(self) -> None:
        self.time = perf_counter()

    def query(self) -> bool:
        return True


class HostClock:
    """Of devices whose calls return when their work is done."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def record(self) -> Moment:
        return Moment()

    def between(self, start: Moment, end: Moment) -> float:
        return end.time - start.time


def clock(library: str, device: str) -> Clock:
    """The clock of a device as a library has it. ``RuntimeError`` where PyTorch cannot compute there."""
    kind, _, index = device.partition(":")
    if library == "torch":
        torch = import_module("torch")
        if kind in ("cuda", "rocm"):
            if not torch.cuda.is_available():
                raise RuntimeError(f"PyTorch {torch.__version__} sees no GPU: install its build for this driver's CUDA")
            return TorchClock(torch)
        return HostClock()
    from candelabra.library import plugins

    made, _ = plugins.backend(kind)
    try:
        made.current_stream(int(index or 0))
    except NotImplementedError:  # its calls return when their work is done
        return HostClock()
    return StreamClock(made, int(index or 0))


def host_time(call: Callable[[], object], clock: Clock, batches: int, calls: int) -> float:
    """Seconds of the host for giving one call to the device: the median over ``batches`` of ``calls`` each."""
    found = []
    for i in range(batches + 1):
        clock.synchronize()
        start = perf_counter()
        for _ in range(calls):
            call()
        if i:  # the first one warms up
            found.append((perf_counter() - start) / calls)
    clock.synchronize()
    return median(found)


def device_time(call: Callable[[int], object], clock: Clock, batches: int, most: int = 20) -> float:
    """Seconds of the device for one call: the median over ``batches``.

    ``call`` is told the number of the call, by which it rotates its inputs. A batch is as many calls as fill some
    50 ms, ``most`` at most, so that giving them to the device hides behind their work.
    """
    for turn in range(3):
        call(turn)
    clock.synchronize()
    start = perf_counter()
    call(0)
    clock.synchronize()
    count = min(most, max(1, int(0.05 / max(perf_counter() - start, 1e-6))))
    found = []
    for _ in range(batches):
        begin = clock.record()
        for turn in range(count):
            call(turn)
        end = clock.record()
        clock.synchronize()
        found.append(clock.between(begin, end) / count)
    return median(found)
