"""Time on a device: that of the host for launching work, and that of the device for executing it, from its events."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Protocol


class Clock(Protocol):
    """The interface for waiting for a device and for recording events in its queue."""

    def synchronize(self) -> None:
        """Wait for all work."""

    def record(self) -> Any:
        """Return an event at the current position of the queue. ``query()`` returns whether the device has passed
        it.
        """

    def between(self, start: Any, end: Any) -> float:
        """Return the seconds between two events that the device has passed."""


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
    """An event of a device whose calls return when their work is done."""

    def __init__(self) -> None:
        self.time = perf_counter()

    def query(self) -> bool:
        return True


class HostClock:
    """The clock of devices whose calls return when their work is done."""

    def synchronize(self) -> None:
        """Do nothing: no work is pending."""

    def record(self) -> Moment:
        return Moment()

    def between(self, start: Moment, end: Moment) -> float:
        return end.time - start.time


def clock(library: str, device: str) -> Clock:
    """Return the clock of a device for a library. Raise ``RuntimeError`` if PyTorch does not support the device."""
    kind, _, index = device.partition(":")
    if library == "torch":
        torch = import_module("torch")
        if kind in ("cuda", "rocm"):
            if not torch.cuda.is_available():
                raise RuntimeError(f"PyTorch {torch.__version__} sees no GPU: install its build for this driver's CUDA")
            return TorchClock(torch)
        return HostClock()
    from candelabra.library import plugins

    backend, _ = plugins.backend(kind)
    try:
        backend.current_stream(int(index or 0))
    except NotImplementedError:  # its calls return when their work is done
        return HostClock()
    return StreamClock(backend, int(index or 0))


def host_time(call: Callable[[], object], clock: Clock, batches: int, calls: int) -> float:
    """Return the host's seconds for launching one call: the median over ``batches`` of ``calls`` each."""
    times = []
    for i in range(batches + 1):
        clock.synchronize()
        start = perf_counter()
        for _ in range(calls):
            call()
        if i:  # the first one warms up
            times.append((perf_counter() - start) / calls)
    clock.synchronize()
    return median(times)


def device_time(call: Callable[[int], object], clock: Clock, batches: int, most: int = 20) -> float:
    """Return the device's seconds for one call: the median over ``batches``.

    ``call`` gets the number of the call, by which it rotates its inputs. A batch has as many calls as take about 50 ms,
    at most ``most``, so that the launches overlap with the work of the device.
    """
    for turn in range(3):
        call(turn)
    clock.synchronize()
    start = perf_counter()
    call(0)
    clock.synchronize()
    count = min(most, max(1, int(0.05 / max(perf_counter() - start, 1e-6))))
    times = []
    for _ in range(batches):
        begin = clock.record()
        for turn in range(count):
            call(turn)
        end = clock.record()
        clock.synchronize()
        times.append(clock.between(begin, end) / count)
    return median(times)
