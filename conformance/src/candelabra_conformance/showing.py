"""A progress bar: the number of finished cases, the current operator, and the number of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from candelabra_conformance.model import BAD, Case, Result

Planned = Callable[[Sequence[Case]], None]
Finished = Callable[[Result], None]


@contextmanager
def shown(console: Console, device: str) -> Iterator[tuple[Planned, Finished]]:
    """Show the progress of :func:`~candelabra_conformance.running.run` as a bar on a terminal, and nothing elsewhere.

    The result is the pair of callbacks for the planned cases and for each result.
    """
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{device}: planning", total=None, note="")
        failed = 0

        def planned(cases: Sequence[Case]) -> None:
            progress.update(task, description=device, total=len(cases))

        def finished(result: Result) -> None:
            nonlocal failed
            failed += result.verdict in BAD
            note = result.case.operator + (f", [red]{failed} failed[/red]" if failed else "")
            progress.update(task, advance=1, note=note)

        yield planned, finished
