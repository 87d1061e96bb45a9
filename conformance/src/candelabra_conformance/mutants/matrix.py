"""The kill matrix: run the suite on every mutant, in worker processes."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import MutantOutcome, hunt, hunt_operator
from candelabra_conformance.mutants.mirror import Mirror

RENEWED: Final = 40
"""The average number of tasks of a process before it is replaced, since each device makes the dispatch keys longer."""
Task = Callable[[], list[MutantOutcome]]


def chosen(patterns: Sequence[str]) -> list[str]:
    """Return the mutants of the catalogue whose name or family matches a pattern, or all if there is no pattern.

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
    """Return the operators with systematic mutants: those for which the reference device has a kernel."""
    table = Mirror("mirror", views=True).table
    names = sorted({name.removesuffix("_") for name in table})
    found = [name for name in names if any(fnmatchcase(name, p) for p in patterns)]
    if not found:
        raise ValueError(f"no operator with a kernel matches {' '.join(patterns)}")
    return found


def tasks(
    mutants: Sequence[str], operators: Sequence[str], thorough: bool = False, quick: bool = False
) -> dict[str, Task]:
    """Return the tasks, by the name that is shown while they run."""
    found: dict[str, Task] = {f"{name} (systematic)": partial(hunt_operator, name, quick) for name in operators}
    found.update({name: partial(_one, name, thorough, quick) for name in mutants})
    return found


def _one(name: str, thorough: bool, quick: bool) -> list[MutantOutcome]:
    return [hunt(name, thorough, quick)]


def run(todo: dict[str, Task], jobs: int = 2) -> Iterator[tuple[str, list[MutantOutcome]]]:
    """Run the tasks in ``jobs`` processes, or in this one, and yield the findings of each as soon as it is complete."""
    if jobs <= 1:
        for name, task in todo.items():
            yield name, task()
        return
    names = list(todo)
    for start in range(0, len(names), jobs * RENEWED):
        # Fresh processes for each batch: the executor's own max_tasks_per_child can deadlock (CPython, gh-115634).
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, initializer=_quiet) as pool:
            batch = {pool.submit(todo[name]): name for name in names[start : start + jobs * RENEWED]}
            for future in as_completed(batch):
                yield batch[future], future.result()


def _quiet() -> None:
    # A broken backend returns values that NumPy warns about; the verdict reports the error.
    warnings.simplefilter("ignore")
