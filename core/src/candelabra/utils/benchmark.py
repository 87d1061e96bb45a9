"""Measure the time of small programs: ``Timer``, and the ``Measurement`` that it returns.

The names and arguments are those of ``torch.utils.benchmark``. The time of work on an accelerator is measured to its
end. ``Compare``, fuzzers and Callgrind are not supported.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import floor, log10, sqrt
from statistics import fmean, median
from time import perf_counter
from timeit import Timer as Loop

from candelabra import accelerator
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._switches import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Measurement", "TaskSpec", "Timer", "timer"]

Callback = Callable[[int, float], None]
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
LEAST_SHARE = 1000
"""A block lasts at least this many times as long as reading the clock."""
LARGEST_IQR = 0.1
"""A larger interquartile range, in medians, is reported as an influence of the environment."""


def timer() -> float:
    """Return the time in seconds, when all work on the accelerator has ended."""
    if _has_accelerator():
        accelerator.synchronize()
    return perf_counter()


@cache
def _has_accelerator() -> bool:
    return accelerator.is_available()


@dataclass(frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label with the sub-label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{textwrap.indent(self.stmt, '  ')}"


@dataclass(frozen=True)
class Measurement:
    """The times of a program: ``raw_times`` of blocks of ``number_per_run`` calls each, in seconds."""

    number_per_run: int
    raw_times: Sequence[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None, compare=False)

    @property
    def times(self) -> list[float]:
        """The mean time of a call in each block, in seconds."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of ``times``."""
        return fmean(self.times)

    @property
    def median(self) -> float:
        """The median of ``times``."""
        return median(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range of ``times``, with linear interpolation."""
        low, high = self._quartiles()
        return high - low

    def _quartiles(self) -> tuple[float, float]:
        times = sorted(self.times)
        found = []
        for share in (0.25, 0.75):
            place = share * (len(times) - 1)
            left = floor(place)
            right = min(left + 1, len(times) - 1)
            found.append(times[left] + (times[right] - times[left]) * (place - left))
        return found[0], found[1]

    @property
    def significant_figures(self) -> int:
        """An estimate of the digits of the median that would not change if the measurement were repeated.

        Times are taken as normally distributed: their deviation is ``iqr / 1.349``, that of the median of n times about
        1.253 / √n of it.
        """
        deviation = 1.253 / 1.349 * self.iqr / sqrt(len(self.raw_times))
        if not deviation or not self.median:
            return 4
        return max(1, min(4, floor(log10(self.median / deviation))))

    @property
    def has_warnings(self) -> bool:
        """Whether the interquartile range is more than a tenth of the median."""
        return self.iqr > LARGEST_IQR * self.median

    @property
    def title(self) -> str:
        """The title of the task."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment that the task names."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The sub-label, or the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        spec, count = self.task_spec, len(self.raw_times)
        scale, unit = next((pair for pair in UNITS if self.median >= pair[0]), UNITS[-1])
        lines = [f"<{type(self).__module__}.{type(self).__name__} object>", self.title]
        if spec.description is not None and spec.label is not None:
            lines.append(spec.description)
        if spec.setup != "pass":
            lines.append(
                f"setup:\n{textwrap.indent(spec.setup, '  ')}" if "\n" in spec.setup else f"setup: {spec.setup}"
            )
        median_text = f"{self.median / scale:.2f} {unit}"
        if count > 1:
            low, high = self._quartiles()
            lines.append(f"  Median: {median_text}")
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        else:
            lines.append(f"  {median_text}")
        runs = f"{self.number_per_run} runs{' per measurement' if count > 1 else ''}"
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {runs}, {spec.num_threads} "
            f"thread{'s' if spec.num_threads > 1 else ''}"
        )
        if self.has_warnings:
            share = f"{self.iqr / self.median:.0%}"
            lines.append(f"  WARNING: the interquartile range is {share} of the median: other work may have run.")
        return "\n".join(lines)


class Timer:
    """Measure the time of the statement ``stmt``, which ``setup`` prepares.

    ``globals`` are the names that both see. ``label``, ``sub_label``, ``description`` and ``env`` are shown with the
    result. ``num_threads``: the threads of operators during the measurement. Raises ``NotImplementedError`` for another
    ``language`` than Python, ``ValueError`` for a ``global_setup``, which is C++ only.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if str(getattr(language, "value", language)).lower() not in ("python", "py"):
            raise NotImplementedError(
                f"Timer: language must be 'python', got {language!r}: other programs are not timed"
            )
        if global_setup:
            raise ValueError("global_setup is C++ only, see `stmt` and `setup`")
        stmt, setup = (textwrap.dedent(text).strip() or "pass" for text in (stmt, setup))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._loop = Loop(stmt, setup, timer, {} if globals is None else dict(globals))
        self._timer = timer

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Return the time of ``number`` calls, after a hundredth of them, and at least two, as a warm-up."""
        with self._threads():
            self._loop.timeit(max(number // 100, 2))
            return self._measured(number, [self._loop.timeit(number)])

    def blocked_autorange(self, callback: Callback | None = None, min_run_time: float = 0.2) -> Measurement:
        """Return the times of blocks that take ``min_run_time`` seconds together. A block is so long that reading the
        clock does not count. ``callback`` gets the number of calls and the time of each block.
        """
        with self._threads():
            number = self._block_size(min_run_time)
            return self._measured(number, self._times(number, min_run_time, callback))

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:
        """Return the times of blocks, of which more are measured until the interquartile range is ``threshold`` of the
        median, or ``max_run_time`` seconds have passed.
        """
        with self._threads():
            number = self._block_size(0.05)
            times: list[float] = []
            while True:
                times += self._times(number, min_run_time, callback)
                found = self._measured(number, times)
                steady = len(times) > 3 and found.iqr < threshold * found.median
                if steady or sum(times) >= max_run_time:
                    return found

    @contextmanager
    def _threads(self) -> Iterator[None]:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            yield
        finally:
            set_num_threads(before)

    def _times(self, number: int, seconds: float, callback: Callback | None) -> list[float]:
        """Return the times of blocks of ``number`` calls that take some seconds together."""
        times: list[float] = []
        while sum(times) < seconds:
            times.append(self._loop.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return times

    def _block_size(self, seconds: float) -> int:
        """Return the number of calls in a block."""
        clock = median([-(self._timer() - self._timer()) for _ in range(5)])
        number = 1
        while True:
            took = self._loop.timeit(number)
            if took >= min(max(clock * LEAST_SHARE, 1e-4), seconds):
                return number
            number *= 10

    def _measured(self, number: int, times: Sequence[float]) -> Measurement:
        return Measurement(number, tuple(times), self._task_spec)


def __dir__() -> list[str]:
    return sorted(__all__)
