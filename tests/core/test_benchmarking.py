"""``utils.benchmark``: programs are run as often as asked, and the statistics of their times."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest
from candelabra.utils.benchmark import Measurement, TaskSpec, Timer, timer

SPEC = TaskSpec("x + 1", "pass")


class Clock:
    """A clock that advances when it is read, and when the program calls it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0

    def __call__(self) -> float:
        self.now += 1e-9
        return self.now

    def work(self, seconds: float) -> None:
        """Take some seconds."""
        self.calls += 1
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    """Return a clock at 0."""
    return Clock()


def timed(clock: Clock, seconds: float, **options: Any) -> Timer:
    """Return the timer of a statement that takes some seconds by the clock."""
    return Timer("work(seconds)", timer=clock, globals={"work": clock.work, "seconds": seconds}, **options)


def test_timeit_runs_the_statement_after_a_warm_up(clock: Clock) -> None:
    """A hundredth of the calls, at least two, come before the measured ones."""
    found = timed(clock, 0.5).timeit(300)
    assert clock.calls == 303
    assert found.number_per_run == 300
    assert found.median == found.mean == pytest.approx(0.5)
    assert timed(clock, 0.5).timeit(4).times == pytest.approx([0.5])
    assert clock.calls == 303 + 6


def test_setup_sees_the_globals_and_texts_are_dedented() -> None:
    """The setup runs once for each block, before the statement."""
    log: list[int] = []
    text = """
        log.append(value)
        log.append(value)
    """
    Timer(text, "value = len(log) + start", globals={"log": log, "start": 10}).timeit(1)
    assert log == [10] * 4 + [14] * 2


def test_blocks_fill_the_time(clock: Clock) -> None:
    """A block has as many calls as make reading the clock negligible; each is reported."""
    blocks: list[tuple[int, float]] = []
    found = timed(clock, 1e-5).blocked_autorange(lambda number, took: blocks.append((number, took)), min_run_time=0.01)
    assert found.number_per_run == 10
    assert len(blocks) == len(found.raw_times)
    assert sum(took for _, took in blocks) == pytest.approx(0.01, rel=0.02)
    assert {number for number, _ in blocks} == {10}


def test_more_blocks_are_measured_until_their_times_agree(clock: Clock) -> None:
    """Steady times end after the first blocks; times that vary last until the limit."""
    steady = timed(clock, 1e-3).adaptive_autorange(min_run_time=0.01)
    assert steady.iqr < 0.1 * steady.median
    varying = iter(range(10**6))
    unsteady = Timer(
        "work(1e-2 if next(varying) % 2 else 1e-3)", timer=clock, globals={"work": clock.work, "varying": varying}
    ).adaptive_autorange(min_run_time=0.01, max_run_time=0.5)
    assert sum(unsteady.raw_times) >= 0.5
    assert unsteady.has_warnings


def test_operators_run_with_the_threads_of_the_timer() -> None:
    """The number of threads is restored, also after an error."""
    before, seen = cd.get_num_threads(), []
    Timer("see()", globals={"see": lambda: seen.append(cd.get_num_threads())}, num_threads=2).timeit(1)
    assert set(seen) == {2}
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0", num_threads=2).timeit(1)
    assert cd.get_num_threads() == before


def test_statistics_of_times() -> None:
    """Medians and interquartile ranges are those of a call, in seconds."""
    found = Measurement(10, [0.1, 0.2, 0.3, 0.4, 1.0], SPEC)
    assert found.times == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.1])
    assert (found.median, found.mean, found.iqr) == pytest.approx((0.03, 0.04, 0.02))
    assert found.has_warnings
    assert found.significant_figures == 1
    assert Measurement(1, [1.0, 1.001, 0.999] * 9, SPEC).significant_figures == math.floor(
        math.log10(1 / (1.253 / 1.349 * 0.002 / math.sqrt(27)))
    )
    assert Measurement(1, [2.0], SPEC).significant_figures == 4


def test_a_measurement_shows_its_task() -> None:
    """Title, setup, times in a readable unit, and a warning if other work has influenced them."""
    spec = TaskSpec("f(x)", "x = 1\ny = 2", label="sums", sub_label="small", description="float32", num_threads=2)
    found = Measurement(100, [2e-3, 2e-3, 3e-3, 2e-3], spec)
    assert repr(found).splitlines()[1:] == [
        "sums: small", "float32", "setup:", "  x = 1", "  y = 2", "  Median: 20.00 us",
        "  IQR:    2.50 us (20.00 to 22.50)", "  4 measurements, 100 runs per measurement, 2 threads",
        "  WARNING: the interquartile range is 12% of the median: other work may have run.",
    ]  # fmt: skip
    assert (found.title, found.as_row_name, found.env) == ("sums: small", "small", "Unspecified env")
    once = Measurement(3, [6.0], TaskSpec("a\nb", "pass", env="here"))
    assert repr(once).splitlines()[1:] == ["stmt:", "  a", "  b", "  2.00 s", "  1 measurement, 3 runs, 1 thread"]
    assert once.env == "here"


def test_what_is_not_measured_is_refused() -> None:
    """Programs in C++ and their global setup."""
    with pytest.raises(NotImplementedError, match=r"Timer: language must be 'python', got 'c\+\+'"):
        Timer(language="c++")
    with pytest.raises(ValueError, match=r"global_setup is C\+\+ only, see `stmt` and `setup`"):
        Timer(global_setup="#include <cmath>")


def test_the_default_clock_advances() -> None:
    """It counts seconds, after the work of an accelerator."""
    first = timer()
    assert timer() >= first
