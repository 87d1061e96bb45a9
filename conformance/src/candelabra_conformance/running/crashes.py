"""Find the call in which a worker process died: run the case again in another one, which reports before each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from candelabra_conformance.model import CRASHED, Case, Result

if TYPE_CHECKING:
    from candelabra_conformance.context import Context


@dataclass(frozen=True)
class Trace:
    """A request to run a case, and to send a :class:`SampleCall` for each sample and the names of called operators."""

    case: Case


@dataclass(frozen=True)
class Execute:
    """A request to execute a program."""

    program: str


@dataclass(frozen=True)
class SampleCall:
    """A sample in words, and the program of the call; an empty text if literals cannot express it."""

    words: str
    program: str


Request = Trace | Execute
Ask = Callable[[Request], tuple[list[Any], bool]]
"""Send a request to a new process, and return its answers and whether it died."""


# -- in the worker ----------------------------------------------------------------------------------------------------
def answer(context: Context, request: Request, send: Callable[[Any], None]) -> None:
    """Serve a request. Exceptions of the case or of the program are of no interest here."""
    if isinstance(request, Execute):
        from candelabra_conformance.program_trial import shows

        shows(request.program)
    else:
        _trace(context, request.case, send)


def _trace(context: Context, case: Case, send: Callable[[Any], None]) -> None:
    from candelabra_conformance.failure_program import call_program
    from candelabra_conformance.recording import operators_called
    from candelabra_conformance.reporting_failure import described_sample
    from candelabra_conformance.samples.sample import Sample
    from candelabra_conformance.suite import run_case

    def watch(sample: Sample, layout: str) -> None:
        send(SampleCall(described_sample(sample, layout), call_program(context, case, sample, layout)))

    context.watch = watch
    try:
        operators_called(lambda: run_case(context, case, explained=False), send)
    finally:
        context.watch = None


# -- in the process that reports --------------------------------------------------------------------------------------
def examined(case: Case, device: str, died: str, ask: Ask) -> Result:
    """Return the result of a case in which a process died, with the call and a reproducer if it dies again."""
    answers, again = ask(Trace(case))
    if not again:
        return Result(case, CRASHED, message=f"{died}\nAnother process that ran the case alone did not die.")
    calls = [found for found in answers if isinstance(found, SampleCall)]
    uses = tuple(dict.fromkeys(name for name in answers if isinstance(name, str) and name != case.operator))
    message = f"{died}, for {calls[-1].words}" if calls else died
    if answers and isinstance(answers[-1], str):
        message += f"\nThe operator {answers[-1]!r} was called last."
    program = calls[-1].program if calls else ""
    if not program or not ask(Execute(program))[1]:
        program = (
            f"# {case.id}, on {device}: the process dies\nfrom candelabra_conformance.rerun import check\n\n"
            f"check({device!r}, {case.id!r})\n"
        )
    return Result(case, CRASHED, message=message, reproducer=program, uses=uses)
