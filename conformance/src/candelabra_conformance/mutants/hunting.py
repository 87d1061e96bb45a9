"""Find the cases that catch a mutant: run the suite on broken backends, in this process."""

from __future__ import annotations

import contextlib
import fnmatch
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from candelabra.backend import Backend
from candelabra.library import OPERATORS, plugins

from candelabra_conformance.context import Context
from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.model import BAD, DEVICE, Case
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import Mutant
from candelabra_conformance.mutants.systematic import Switch, faults, kernels_of
from candelabra_conformance.suite import plan, run_case

KILLED, ELSEWHERE, SURVIVED = "killed", "killed by another case", "survived"
VERDICTS: Final = (KILLED, ELSEWHERE, SURVIVED)
SYSTEMATIC: Final = "systematic"


@dataclass(frozen=True)
class Finding:
    """The outcome of a mutant."""

    mutant: str
    family: str
    fault: str
    verdict: str
    caught_by: str = ""
    """The id of the first case that caught it, preferably one that names the fault."""
    properties: dict[str, str] = field(default_factory=dict)
    """Every property that catches it, and the id of the first such case."""
    message: str = ""
    differed: bool = True
    """For a systematic mutant, whether it gave other bits than the correct kernel anywhere in the run."""
    seconds: float = 0.0


@contextlib.contextmanager
def installed(backend: Backend) -> Iterator[Context]:
    """Install the backend for a ``with`` block, and return a context for its first device."""
    remove = plugins.add_backend(backend)
    try:
        yield Context(f"{backend.name}:0")
    finally:
        remove()


class Healthy:
    """Correct backends of the kinds that mutants are based on. A case that fails on these too catches nothing."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[type, bool], Context] = {}
        self._known: dict[tuple[object, str], bool] = {}

    def fails(self, mutant: Backend, case: Case) -> bool:
        """Return whether a correct backend of the mutant's kind fails the case."""
        kind = FakeAccelerator if isinstance(mutant, FakeAccelerator) else Mirror
        key = kind, mutant.capabilities.mutable
        if (key, case.id) not in self._known:
            if key not in self._contexts:
                name = f"healthy_{kind.__name__.lower()}_{'mutable' if key[1] else 'immutable'}"
                mirror = FakeAccelerator(name) if kind is FakeAccelerator else Mirror(name, mutable=key[1])
                plugins.add_backend(mirror)
                self._contexts[key] = Context(f"{name}:0")
            result = run_case(self._contexts[key], case, explained=False)
            self._known[key, case.id] = result.verdict in BAD
        return self._known[key, case.id]


HEALTHY: Final = Healthy()


# -- the catalogue ----------------------------------------------------------------------------------------------------
def hunt(name: str, thorough: bool = False) -> Finding:
    """Run the suite on a mutant of the catalogue until a case that names its fault catches it.

    If ``thorough``, continue until every property has caught it or has run completely.
    """
    mutant = load()[name]
    started = time.perf_counter()
    backend = mutant.make()
    with installed(backend) as context:
        caught, message = _caught(context, backend, mutant, _ordered(context, mutant), thorough)
    named = next((case for case in caught.values() if mutant.named_by(case)), "")
    verdict = KILLED if named else ELSEWHERE if caught else SURVIVED
    first = named or next(iter(caught.values()), "")
    return Finding(
        name, mutant.family, mutant.fault, verdict, first, caught, message, seconds=time.perf_counter() - started
    )


def _ordered(context: Context, mutant: Mutant) -> list[Case]:
    """Return the cases of the operators that the mutant breaks, those that name its fault first, of any operator."""
    heads = {pattern.split("/")[0] for pattern in mutant.caught_by}
    plain = {head for head in heads if head in OPERATORS or head == DEVICE}
    named = {n for head in heads - plain - {"*"} for n in OPERATORS if fnmatch.fnmatchcase(n, head)}
    operators = dict.fromkeys((*mutant.operators, *sorted(plain | (named & set(mutant.operators))), DEVICE))
    cases = plan(context, operators=list(operators))
    return sorted(cases, key=lambda case: not mutant.named_by(case.id))


def _caught(
    context: Context, backend: Backend, mutant: Mutant, cases: list[Case], thorough: bool
) -> tuple[dict[str, str], str]:
    caught: dict[str, str] = {}
    message = ""
    for case in cases:
        group = case.property if case.operator != DEVICE else f"{DEVICE} {case.property}"
        if group in caught or (caught and not thorough and not mutant.named_by(case.id)):
            continue
        result = run_case(context, case, forbid_fallback=mutant.forbid_fallback, explained=False)
        if result.verdict in BAD and not HEALTHY.fails(backend, case):
            message = message or result.message.splitlines()[0]
            caught[group] = case.id
            if mutant.named_by(case.id) and not thorough:
                break
    return caught, message


# -- systematic -------------------------------------------------------------------------------------------------------
def hunt_operator(operator: str) -> list[Finding]:
    """Run the suite on every systematic mutant of an operator's kernels, each until a case catches it."""
    mirror = Mirror(f"systematic_{operator}", views=True)
    switches = {name: Switch(mirror, mirror.table[name]) for name in kernels_of(operator, mirror)}
    mirror.table.update(switches)
    findings: list[Finding] = []
    with installed(mirror) as context:
        cases = plan(context, operators=[operator])
        sound = [case for case in cases if run_case(context, case, explained=False).verdict not in BAD]
        for name, switch in switches.items():
            for fault in faults(name, switch):
                switch.fault, switch.differed = fault, False
                findings.append(_hunted(context, fault.id, fault.name, switch, sound))
                switch.fault = None
                if findings[-1].caught_by:  # the case that caught one mutant often catches the next
                    sound.sort(key=lambda case, hit=findings[-1].caught_by: case.id != hit)  # type: ignore[misc]
    return findings


def _hunted(context: Context, name: str, words: str, switch: Switch, cases: list[Case]) -> Finding:
    started = time.perf_counter()
    for case in cases:
        result = run_case(context, case, explained=False)
        if result.verdict in BAD:
            caught = {case.property: case.id}
            return Finding(name, SYSTEMATIC, words, KILLED, case.id, caught, seconds=time.perf_counter() - started)
    return Finding(name, SYSTEMATIC, words, SURVIVED, differed=switch.differed, seconds=time.perf_counter() - started)
