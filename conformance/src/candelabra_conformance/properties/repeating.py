"""Repeated calls: in several runs and in several threads."""

from __future__ import annotations

from typing import Any, Final

from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import results
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.threads import in_threads
from candelabra_conformance.transport import Array

RUNS: Final = 4
THREADS: Final = 4


@operator_property("determinism", some(3, dtypes=2, layouts=(CONTIGUOUS, TRANSPOSED, LARGE)))
def determinism(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """Several runs have the same bits, unless the backend declares the operator non-deterministic."""
    if op.name in context.instance.capabilities.nondeterministic:
        raise NotApplicable("the backend declares the operator non-deterministic")
    for sample in context.each(op, d, layout):
        first = results(context, op, sample, layout)
        for _ in range(RUNS):
            _agree(first, results(context, op, sample, layout), sample, layout, "another run")
    return None


def _agree(first: tuple[Array, ...], again: tuple[Array, ...], sample: Sample, layout: str, who: str) -> None:
    for a, b in zip(first, again, strict=True):
        if not same(a, b):
            raise Failure(f"{who} gives other bits", sample, layout)


@operator_property("threads", some(3, dtypes=1))
def threads(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """Several threads that call the operator concurrently get the result of one thread."""
    samples = context.laid_out(op, d, layout)
    alone = [results(context, op, found, layout) for found in samples]

    def work(number: int) -> None:
        for found, expected in zip(samples, alone, strict=True):
            _agree(expected, results(context, op, found, layout), found, layout, "a thread beside others")

    in_threads(THREADS, work)
    return None
