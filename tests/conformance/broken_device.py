"""A device that is correct but for what a test breaks in it, and programs that are run where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from candelabra.library import plugins
from candelabra_conformance.mutants.mirror import Mirror

Break = Callable[..., None]
"""``broken(operator=fault)`` puts ``fault(kernel)`` in a kernel's place; what was broken before is whole again."""


@contextmanager
def breakable() -> Iterator[Break]:
    """The device ``broken``, for as long as the block lasts."""
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
    """Run a program as ``python program.py`` would."""
    exec(compile(text, "reproducer", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - it is to run
