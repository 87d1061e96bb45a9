"""Every mutant against the suite, in worker processes: the kill matrix."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import Finding, hunt, hunt_operator
from candelabra_conformance.mutants.mirror import Mirror

RENEWED: Final = 40
"""Tasks that a process does, on average, before others take over: each device makes the dispatch keys longer."""
Task = Callable[[], list[Finding]]


def chosen(patterns: Sequence[str]) -> list[str]:
    """The mutants of the catalogue whose name or family matches a pattern; all without one.

    Raises ``ValueError`` for a pattern that matches none.
    """
    catalogue = load()
    for pattern in patterns:
        if not any(fnmatchcase(m.name, pattern) or fnmatchcase(m.family, pattern) for m in catalogue.values()):
            families = ", ".join(sorted({m.family for m in catalogue.values()}))
            raise ValueError(f"no mutant and no family of mutants is called {pattern!r}; the families: {families}")
    return [
        m.name
        for m in sorted(catalogue.values(), key=lambda m: (m.family, m.name))
        if not patterns or any(fnmatchcase(m.name, p) or fnmatchcase(m.family, p) for p in patterns)
    ]


def operators_with_kernels(patterns: Sequence[str] = ("*",)) -> list[str]:
    """The operators that systematic mutants can be made of: those that the reference device has a kernel for."""
    table = Mirror("mirror", views=True).table
    names = sorted({name.removesuffix("_") for name in table})
    found = [name for name in names if any(fnmatchcase(name, p) for p in patterns)]
    if not found:
        raise ValueError(f"no operator with a kernel matches {' '.join(patterns)}")
    return found


def tasks(mutants: Sequence[str], operators: Sequence[str], thorough: bool) -> dict[str, Task]:
    """What is to be done, by what to call it while it runs."""
    found: dict[str, Task] = {name: partial(_one, name, thorough) for name in mutants}
    found.update({f"{name} (systematic)": partial(hunt_operator, name) for name in operators})
    return found


def _one(name: str, thorough: bool) -> list[Finding]:
    return [hunt(name, thorough)]


def run(todo: dict[str, Task], jobs: int = 2) -> Iterator[tuple[str, list[Finding]]]:
    """Do the tasks in ``jobs`` processes, or in this one; what each found as soon as it is done."""
    if jobs <= 1:
        for name, task in todo.items():
            yield name, task()
        return
    names = list(todo)
    for start in range(0, len(names), jobs * RENEWED):
        # Fresh processes for each batch: the executor's own max_tasks_per_child can stop for ever (CPython, gh-115634).
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, initializer=_quiet) as pool:
            batch = {pool.submit(todo[name]): name for name in names[start : start + jobs * RENEWED]}
            for future in as_completed(batch):
                yield batch[future], future.result()


def _quiet() -> None:
    # A broken backend gives what NumPy warns about; the verdict says what is wrong.
    warnings.simplefilter("ignore")
