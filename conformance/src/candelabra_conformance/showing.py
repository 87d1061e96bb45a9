"""A progress bar: the number of finished cases, the current operator, and the number of failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from candelabra_conformance.model import BAD, Case, Result

INTERVAL: Final = 30.0
"""The time in seconds between two lines about the progress."""
Planned = Callable[[Sequence[Case]], None]
Finished = Callable[[Result], None]


@contextmanager
def shown(console: Console, device: str) -> Iterator[tuple[Planned, Finished]]:
    """Show the progress of :func:`~candelabra_conformance.running.run` as a bar on a terminal, elsewhere as a line
    every :data:`INTERVAL` seconds, so that the reader of a log sees a run that hangs.

    The result is the pair of callbacks for the planned cases and for each result.
    """
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{device}: planning", total=None, note="")
        failed = done = total = 0
        last = time.monotonic()

        def planned(cases: Sequence[Case]) -> None:
            nonlocal total
            total = len(cases)
            progress.update(task, description=device, total=total)

        def finished(result: Result) -> None:
            nonlocal failed, done, last
            failed += result.verdict in BAD
            done += 1
            if not console.is_terminal and time.monotonic() - last >= INTERVAL:
                last = time.monotonic()
                text = f"{device}: {done:,} of {total:,} cases, {failed} failed; the last: {result.case.id}"
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            note = result.case.operator + (f", [red]{failed} failed[/red]" if failed else "")
            progress.update(task, advance=1, note=note)

        yield planned, finished
