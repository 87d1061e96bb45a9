"""The causes of the cases that did not pass: groups of failures, and the kernels to write or to repair next."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from candelabra_conformance.model import BAD, BLOCKED, CRASHED, DEVICE, FAILED, TIMED_OUT, NextKernel, Result

BROKEN: Final = frozenset({FAILED, CRASHED, TIMED_OUT})
"""The verdicts with which a kernel that exists is broken. An unexpected pass is not among them."""


def roots(results: Iterable[Result]) -> dict[str, Result]:
    """Return for the id of each blocked case the result that blocks it, which is not blocked itself."""
    by_id = {result.case.id: result for result in results}
    found = {}
    for name, result in by_id.items():
        cause, known = result, {name}
        while cause.verdict == BLOCKED and cause.blocked_by in by_id and cause.blocked_by not in known:
            known.add(cause.blocked_by)
            cause = by_id[cause.blocked_by]
        if result.verdict == BLOCKED and cause.verdict != BLOCKED:
            found[name] = cause
    return found


# -- groups -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CauseGroup:
    """The cases of one operator with one verdict whose messages differ in numbers and samples only."""

    results: tuple[Result, ...]
    """Sorted by level and case."""
    blocks: int
    """The number of cases that these results block."""

    @property
    def first(self) -> Result:
        return self.results[0]

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(sorted({r.case.dtype for r in self.results if r.case.dtype}))

    @property
    def properties(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.case.property for r in self.results))


def grouped(results: Sequence[Result], verdicts: Collection[str] = BAD) -> list[CauseGroup]:
    """Return the results with these verdicts by operator, verdict and message, the group that blocks most first.

    Of groups that block equally many cases, the one of the lower level is first, then the larger one.
    """
    blocks = Counter(cause.case.id for cause in roots(results).values())
    found: dict[tuple[str, str, str], list[Result]] = {}
    for result in sorted(results, key=lambda r: (r.case.level, r.case)):
        if result.verdict in verdicts:
            found.setdefault((result.case.operator, result.verdict, _kind(result.message)), []).append(result)
    groups = [CauseGroup(tuple(each), sum(blocks[r.case.id] for r in each)) for each in found.values()]
    return sorted(groups, key=lambda g: (-g.blocks, g.first.case.level, -len(g.results), g.first.case))


def _kind(message: str) -> str:
    """Return the first line of a message without its numbers and places and without the sample."""
    line = message.partition("\n")[0].partition(", for (")[0]
    line = re.sub(r" at \[[\d, ]*\]", "", line)
    line = re.sub(r"\b(nan|inf|True|False)\b", "0", line)
    line = re.sub(r"\b(bool|u?int\d+|b?float\d+|complex\d+)\b", "dtype", line)
    line = re.sub(r"-?\d[\d.]*(e[-+]?\d+)?j?", "0", line)
    return re.sub(r"[\[(][0, +-]*[\])]", "0", line)


# -- kernels ----------------------------------------------------------------------------------------------------------
def next_kernels(results: Sequence[Result]) -> tuple[NextKernel, ...]:
    """Return the kernels to write or to repair next, each with the operators that it completes, the most useful first.

    An operator lacks the kernels that were missing in its cases, its own kernel if its cases fail, and the broken
    kernel of the operator that blocks its cases.
    """
    causes = roots(results)
    declining = {operator_of(text) for text in declined(results)}
    lacking: dict[str, set[str]] = {}
    dtypes: dict[str, set[str]] = {}
    broken: set[str] = set()
    for result in results:
        if result.case.operator == DEVICE:
            continue
        needed = set(result.missing)
        for name in result.missing:
            dtypes.setdefault(name, set()).add(result.case.dtype)
        cause = causes.get(result.case.id, result)
        if _has_broken_kernel(cause):
            name = cause.case.operator
            needed.add(name)
            broken.add(name)
            dtypes.setdefault(name, set()).add(cause.case.dtype)
        if needed:
            lacking.setdefault(result.case.operator, set()).update(needed)
    return tuple(
        NextKernel(name, ready, tuple(sorted(dtypes[name] - {""})), name in broken, name in declining - broken)
        for name, ready in _most_useful_first(lacking)
    )


PROGRAMMING_ERRORS: Final = (TypeError, AttributeError, NameError, LookupError, AssertionError, ImportError)
"""Errors that Python raises in a faulty kernel. A library that lacks a kernel usually raises others."""


def declined(results: Iterable[Result]) -> list[str]:
    """Return the kernels that declined calls, each with the dtype and the reason of its first one.

    Reasons that are :data:`PROGRAMMING_ERRORS` are first, then the others, both by operator.
    """
    found: dict[str, str] = {}
    for result in sorted(results, key=lambda r: r.case):
        for text in result.declined:
            found.setdefault(text.partition(":")[0], text)  # each worker may have had a first call
    return sorted(found.values(), key=lambda text: (not _is_programming_error(text), text))


def _is_programming_error(text: str) -> bool:
    """Return whether the reason of an entry of :func:`declined` begins with the name of such an error."""
    error = getattr(builtins, text.partition(": ")[2].partition(":")[0], None)
    return isinstance(error, type) and issubclass(error, PROGRAMMING_ERRORS)


def operator_of(text: str) -> str:
    """Return the operator of an entry of :func:`declined`. The kernel ``add_`` serves ``add`` in place."""
    return text.partition(" ")[0].removesuffix("_")


def _has_broken_kernel(result: Result) -> bool:
    """Return whether a result shows that a kernel of the device is broken. A process that died has no route."""
    if result.verdict not in BROKEN or result.case.operator == DEVICE:
        return False
    return result.route == "native" or result.verdict != FAILED


def _most_useful_first(lacking: Mapping[str, set[str]]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield each kernel with the operators that lack nothing else, given the kernels before it."""
    left = dict(lacking)
    while left:
        alone = Counter(next(iter(needed)) for needed in left.values() if len(needed) == 1)
        every = Counter(name for needed in left.values() for name in needed)
        kernel = min(every, key=lambda name: (-alone[name], -every[name], name))
        yield kernel, tuple(sorted(op for op, needed in left.items() if needed == {kernel}))
        left = {op: rest for op, needed in left.items() if (rest := needed - {kernel})}
