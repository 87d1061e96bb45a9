"""What the examples show while they train: a progress bar, the loss as a live curve, and the curve as an SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

BLOCKS = " ▁▂▃▄▅▆▇█"


class Display:
    """A context manager: ``with Display("digits", steps) as display: ... display.add(loss)``."""

    def __init__(self, title: str, steps: int, quantity: str = "loss", console: Console | None = None) -> None:
        self.title = title
        self.quantity = quantity
        self.values: list[float] = []
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[value]}"),
            TimeElapsedColumn(),
        )  # fmt: skip
        self._task = self._progress.add_task(title, total=steps, value="")
        self._live = Live(self._progress, console=console, refresh_per_second=8)

    def __enter__(self) -> Display:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)
        if not self._live.console.is_terminal:
            self._live.console.print()

    def add(self, value: float) -> None:
        """Add one value to the curve and advance the bar by one step."""
        self.values.append(value)
        self._progress.update(self._task, advance=1, value=f"{self.quantity} {value:.4g}")
        self._live.update(Group(self._progress, Text("\n".join(chart(self.values)), style="cyan")))

    def save(self, path: Path) -> None:
        """Write the curve as an SVG file."""
        path.write_text(svg(self.values, f"{self.title}: {self.quantity}"))


def chart(values: Sequence[float], width: int = 60, height: int = 5) -> list[str]:
    """Return a curve as lines of block characters, the top line first. Many values are averaged per column."""
    columns = averaged(values, width)
    low, high = min(columns), max(columns)
    levels = [round((v - low) / ((high - low) or 1.0) * (8 * height - 1)) + 1 for v in columns]
    rows = ["".join(BLOCKS[min(max(level - 8 * row, 0), 8)] for level in levels) for row in range(height)][::-1]
    rows[0] += f" {high:.4g}"
    rows[-1] += f" {low:.4g}"
    return rows


def averaged(values: Sequence[float], count: int) -> list[float]:
    """Return at most ``count`` means of consecutive values."""
    if len(values) <= count:
        return list(values)
    edges = [len(values) * i // count for i in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def svg(values: Sequence[float], title: str, width: int = 640, height: int = 320) -> str:
    """Return a curve over the steps as an SVG document, with the range of both axes."""
    left, top, right, bottom = 70, 40, width - 20, height - 40
    low, high = min(values), max(values)
    across = (right - left) / max(1, len(values) - 1)
    up = (bottom - top) / ((high - low) or 1.0)
    points = " ".join(f"{left + i * across:.1f},{bottom - (v - low) * up:.1f}" for i, v in enumerate(values))
    texts = [
        (width / 2, 24, "middle", title), (left - 8, top + 4, "end", f"{high:.4g}"),
        (left - 8, bottom + 4, "end", f"{low:.4g}"), (left, bottom + 20, "middle", "1"),
        (right, bottom + 20, "middle", str(len(values))),
    ]  # fmt: skip
    labels = "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>' for x, y, anchor, text in texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13"><rect width="{width}" height="{height}" fill="white"/>'
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="gray"/>'
        f'<polyline points="{points}" fill="none" stroke="#1668a8" stroke-width="1.5"/>{labels}</svg>\n'
    )
