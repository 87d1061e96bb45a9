"""A divergence: a call under a shadow whose result is not the reference's."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import candelabra


@dataclass(frozen=True)
class Divergence:
    """One call whose result differs from that of the reference device.

    ``property`` names the difference: ``value``, ``result`` (number, dtype, shape, device of the outputs), ``inputs``
    (one was written to), ``inplace``, ``aliasing``, ``determinism``, ``random``, ``errors``.
    """

    operator: str
    """The operator's name, with the suffix ``_`` for the in-place form."""
    property: str
    device: str
    reference: str
    message: str
    inputs: str
    """The arguments, one per line."""
    ulp: float | None
    """The largest error in units in the last place of the result's dtype, or None if no values were compared."""
    reproducer: str
    """A program that shows the divergence; empty if none could be written."""
    where: str
    """The line of the user's program, as ``file:line``; empty if there is no such line."""
    number: int
    """The number of the call under this shadow, from 1."""

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        lines = [
            f"{self.operator} on {self.device} diverges from {self.reference} ({self.property})",
            f"  call {self.number} under the shadow{place}",
            *_indented(self.message),
            *([f"  largest error: {self.ulp:.4g} ULP"] if self.ulp is not None else []),
            *(["  inputs:", *("  " + line for line in _indented(self.inputs))] if self.inputs else []),
            *(["  reproducer:", *_indented(self.reproducer, "    ")] if self.reproducer else []),
        ]
        return "\n".join(lines)


class DivergenceError(AssertionError):
    """A call diverged from the reference. ``divergence`` has the facts that the text contains."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(str(divergence))
        self.divergence = divergence


class DivergenceWarning(UserWarning):
    """A call diverged from the reference under a shadow with ``on_divergence="log"``."""


def _indented(text: str, by: str = "  ") -> list[str]:
    return [by + line if line else line for line in text.splitlines()]


_OURS: Final = tuple({str(Path(path).resolve()) for path in [*candelabra.__path__, str(Path(__file__).parents[1])]})


def user_line(stack: Sequence[traceback.FrameSummary] | None = None) -> str:
    """Return the innermost line of the stack that is neither candelabra's nor generated, as ``file:line``."""
    frames = traceback.extract_stack() if stack is None else stack
    for frame in reversed(frames):
        if frame.filename.startswith("<") or frame.filename.startswith(_OURS):
            continue
        return f"{frame.filename}:{frame.lineno}"
    return ""
