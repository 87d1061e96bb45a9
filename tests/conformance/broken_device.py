"""A device whose kernels a test replaces with faulty ones, and a runner for programs given as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from candelabra.library import plugins
from candelabra_conformance.mutants.mirror import Mirror

Break = Callable[..., None]
"""``broken(operator=fault)`` replaces the operator's kernel by ``fault(kernel)`` and undoes earlier replacements."""


@contextmanager
def breakable() -> Iterator[Break]:
    """Install the device ``broken`` for the duration of the block."""
    removals: list[Callable[[], None]] = []

    def install(**faults: Callable[[Any], Any]) -> None:
        while removals:
            removals.pop()()
        made = Mirror("broken")
        made.table.update({name: fault(made.table[name]) for name, fault in faults.items()})
        removals.append(plugins.add_backend(made))

    install()
    try:
        yield install
    finally:
        removals.pop()()


def run(text: str) -> None:
    """Run a program as ``python program.py`` does."""
    exec(compile(text, "reproducer", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - it is to run
