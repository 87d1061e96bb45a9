"""A device ``odd`` with one replaced kernel, for runs in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra_conformance.mutants.mirror import Mirror

CHOSEN = ("tanh/value/float32/contiguous", "tanh/result/float32/0-d", "cos/value/float32/contiguous")
"""The ids of the cases that the tests run."""


class ReplacedKernel(Mirror):
    """A correct backend with one replaced kernel."""

    def __init__(self, kernel: str, replacement: Callable[..., Any]) -> None:
        super().__init__("odd")
        self.kernel, self.replacement = kernel, replacement

    def kernels(self) -> Any:
        right = super().kernels()
        return {**right, self.kernel: lambda *args: self.replacement(right[self.kernel], *args)}
