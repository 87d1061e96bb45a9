"""Find the cases that catch a mutant: run the suite on broken backends, in this process."""

from __future__ import annotations

import contextlib
import fnmatch
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from candelabra.backend import Backend
from candelabra.library import OPERATORS, add_contribution, plugins

from candelabra_conformance.context import Context
from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.model import BAD, DEVICE, Case
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import Mutant, operator_of
from candelabra_conformance.mutants.systematic import Fault, Switch, faults, kernels_of
from candelabra_conformance.running.quick import quick
from candelabra_conformance.suite import plan, run_case

KILLED, ELSEWHERE, SURVIVED = "killed", "killed by another case", "survived"
VERDICTS: Final = (KILLED, ELSEWHERE, SURVIVED)
SYSTEMATIC: Final = "systematic"
QUICK_LEVEL: Final = 2
"""The level of the quick run whose share of caught mutants is reported."""


@dataclass(frozen=True)
class MutantOutcome:
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
    own: bool = False
    """Whether the operator's own cases catch it, those of ``--operator X``, for each operator X that it breaks."""
    quick: bool = False
    """Whether a case of ``--quick --level 2`` catches it, among the operator's own cases."""
    missed: tuple[str, ...] = ()
    """The operators that it breaks and whose own cases do not catch it."""
    of_family: str = ""
    """For a systematic mutant of all kernels of a family, which one of its operators has to catch, the family."""


def quick_of(context: Context, cases: Iterable[Case]) -> set[Case]:
    """Return the cases, of an operator or of the device, that ``--quick --level 2`` runs on a device."""
    return set(quick((case for case in cases if case.level <= QUICK_LEVEL), context.instance.kernels))


@contextlib.contextmanager
def installed(backend: Backend) -> Iterator[Context]:
    """Install the backend for a ``with`` block, and return a context for its first device."""
    undo = [plugins.add_backend(backend)]
    try:
        if getattr(backend, "contribution", None) is not None:
            undo.append(add_contribution(backend.name, backend.contribution, "mutant"))  # type: ignore[attr-defined]
        yield Context(f"{backend.name}:0")
    finally:
        for remove in reversed(undo):
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
def hunt(name: str, thorough: bool = False, quick: bool = False) -> MutantOutcome:
    """Run the suite on a mutant of the catalogue until a case that names its fault catches it, and until the own cases
    of each operator that it breaks do.

    If ``thorough``, continue until every property has caught it or has run completely. If ``quick``, run only the own
    cases of ``--quick --level 2``.
    """
    mutant = load()[name]
    started = time.perf_counter()
    backend = mutant.make()
    caught: dict[str, str] = {}
    message = ""
    with installed(backend) as context:
        if not quick:
            caught, message = _caught(context, backend, mutant, _ordered(context, mutant), thorough)
        several = mutant.make_one is not None and len(mutant.operators) > 1
        own = {} if several else {"": _caught_by_own(context, backend, mutant, mutant.operators, quick)}
    for operator in mutant.operators if several else ():
        assert mutant.make_one is not None
        backend = mutant.make_one(operator)
        with installed(backend) as context:
            own[operator] = _caught_by_own(context, backend, mutant, (operator,), quick)
    if quick:
        caught = {case.property: case.id for case, _ in filter(None, own.values())}
    named = next((case for case in caught.values() if mutant.named_by(case)), "")
    return MutantOutcome(
        name,
        mutant.family,
        mutant.fault,
        KILLED if named else ELSEWHERE if caught or any(own.values()) else SURVIVED,
        named or next(iter(caught.values()), "") or next((case.id for case, _ in filter(None, own.values())), ""),
        caught,
        message,
        seconds=time.perf_counter() - started,
        own=all(own.values()),
        quick=any(found is not None and found[1] for found in own.values()),
        missed=tuple(operator for operator, found in own.items() if operator and found is None),
    )


def _caught_by_own(
    context: Context, backend: Backend, mutant: Mutant, operators: Sequence[str], only_quick: bool
) -> tuple[Case, bool] | None:
    """Return the first own case of these operators that catches a mutant and whether ``--quick`` runs it, or None.

    Quick cases run first, so that the answer about them is right. The own cases of a mutant that is a broken backend,
    and not a broken kernel, are those of the device too.
    """
    planned = plan(context, operators=[*operators, *(() if mutant.make_one is not None else (DEVICE,))])
    cases = [case for case in planned if case.operator == DEVICE or case.operator in operators]
    quick = quick_of(context, cases)
    if only_quick:
        cases = [case for case in cases if case in quick]
    for case in sorted(cases, key=lambda case: (case not in quick, not mutant.named_by(case.id))):
        result = run_case(context, case, forbid_fallback=mutant.forbid_fallback, explained=False)
        if result.verdict in BAD and not HEALTHY.fails(backend, case):
            return case, case in quick
    return None


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
def hunt_operator(operator: str, only_quick: bool = False) -> list[MutantOutcome]:
    """Run the operator's own cases on every systematic mutant of its kernels, each until a case catches it.

    The cases run once on the correct kernels, to know which faults each case reaches; a mutant runs only those that
    reach it. Quick cases run first, so that a mutant that a later case catches is not caught by ``--quick``.
    """
    mirror = Mirror(f"systematic_{operator}", views=True)
    switches = {name: Switch(mirror, mirror.table[name]) for name in kernels_of(operator, mirror)}
    mirror.table.update(switches)
    every = {name: list(faults(name, switch)) for name, switch in switches.items()}
    with installed(mirror) as context:
        cases = plan(context, operators=[operator])
        quick = quick_of(context, cases)
        cases = [case for case in cases if case in quick or not only_quick]
        cases.sort(key=lambda case: case not in quick)
        reaching = _reaching(context, cases, switches, every)
        hunted = [
            _hunted(context, fault, switches[name], reaching[fault.id], quick)
            for name, found in every.items()
            for fault in found
            if reaching[fault.id] or not fault.only_if_reached
            if fault.parameter is None or not switches[name].serves_one(fault.parameter)
        ]
        return [finding for finding in hunted if finding is not None]


def _reaching(
    context: Context, cases: list[Case], switches: dict[str, Switch], every: dict[str, list[Fault]]
) -> dict[str, list[Case]]:
    """Return the cases that pass on the correct kernels and reach each fault, by the fault's id."""
    reaching: dict[str, list[Case]] = {fault.id: [] for found in every.values() for fault in found}
    for name, switch in switches.items():
        switch.watched = every[name]
    for case in cases:
        sound = run_case(context, case, explained=False).verdict not in BAD
        for switch in switches.values():
            for fault in switch.reached if sound else ():
                reaching[fault].append(case)
            switch.reached = set()
    for switch in switches.values():
        switch.watched = []
    return reaching


def _hunted(
    context: Context, fault: Fault, switch: Switch, cases: list[Case], quick: set[Case]
) -> MutantOutcome | None:
    """Return the finding of a mutant, or None if it is none: its fault matters to no call."""
    started = time.perf_counter()
    switch.fault, switch.differed = fault, False
    family = family_of(fault.kernel) if fault.of_family else ""
    try:
        for case in cases:
            if run_case(context, case, explained=False).verdict in BAD:
                return MutantOutcome(
                    fault.id,
                    SYSTEMATIC,
                    fault.name,
                    KILLED,
                    case.id,
                    {case.property: case.id},
                    seconds=time.perf_counter() - started,
                    own=True,
                    quick=case in quick,
                    of_family=family,
                )
        if not switch.differed and cases and fault.matters is not None:
            switch.fault = replace(fault, wrong=fault.matters)
            for case in cases:
                run_case(context, case, explained=False)
                if switch.differed:
                    break
            if not switch.differed:
                return None
            switch.differed = False
    finally:
        switch.fault = None
    seconds = time.perf_counter() - started
    return MutantOutcome(
        fault.id, SYSTEMATIC, fault.name, SURVIVED, differed=switch.differed, seconds=seconds, of_family=family
    )


def family_of(kernel: str) -> str:
    """Return the subject under which a kernel's operator is declared, such as ``reductions``, or ``nn``."""
    package, _, module = OPERATORS[operator_of(kernel)].declared_in.partition("._operators.")
    return module.partition(".")[0] if package == "candelabra" else package.rpartition(".")[2]


def combined(findings: Iterable[MutantOutcome]) -> list[MutantOutcome]:
    """Return the findings with those of one family and fault replaced by one: it is caught if one of them is."""
    made: list[MutantOutcome] = []
    families: dict[str, list[MutantOutcome]] = {}
    for finding in findings:
        if finding.of_family:
            families.setdefault(f"{finding.of_family}: {finding.fault}", []).append(finding)
        else:
            made.append(finding)
    for name, group in families.items():
        first = min(group, key=lambda f: (f.verdict != KILLED, not f.quick, not f.differed, f.mutant))
        made.append(replace(first, mutant=name, seconds=sum(f.seconds for f in group)))
    return made
