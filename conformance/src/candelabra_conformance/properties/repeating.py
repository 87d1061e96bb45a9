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
from candelabra_conformance.properties.value import agree, results
from candelabra_conformance.recording import operators_called
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.threads import in_threads
from candelabra_conformance.transport import Array

RUNS: Final = 4
THREADS: Final = 4


@operator_property("determinism", some(3, dtypes=2, layouts=(CONTIGUOUS, TRANSPOSED, LARGE)))
def determinism(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """Several runs have the same bits, unless the call uses an operator that the backend declares non-deterministic."""
    by_chance = 0
    for sample in context.each(op, d, layout):
        if declared(context, op, sample, layout):
            by_chance += 1
            continue
        first = results(context, op, sample, layout)
        for _ in range(RUNS):
            _same_bits(first, results(context, op, sample, layout), sample, layout, "another run")
    if by_chance and by_chance == len(context.laid_out(op, d, layout)):
        raise NotApplicable("the backend declares the operator, or one that it calls, non-deterministic")
    return None


def declared(context: Context, op: Operator[..., Any], sample: Sample, layout: str) -> bool:
    """Return whether a call uses an operator that the backend declares non-deterministic, itself or in its body."""
    by_chance = context.instance.capabilities.nondeterministic
    if not by_chance or op.name in by_chance:
        return bool(by_chance)
    return not by_chance.isdisjoint(operators_called(lambda: results(context, op, sample, layout)))


def _same_bits(first: tuple[Array, ...], again: tuple[Array, ...], sample: Sample, layout: str, who: str) -> None:
    for a, b in zip(first, again, strict=True):
        if not same(a, b):
            raise Failure(f"{who} gives other bits", sample, layout)


@operator_property("threads", some(3, dtypes=1))
def threads(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """Several threads that call the operator concurrently get the result of one thread.

    A call that uses an operator that the backend declares non-deterministic has right values instead of equal bits.
    """
    samples = context.laid_out(op, d, layout)
    alone = [results(context, op, found, layout) for found in context.each(op, d, layout)]
    concurrent: list[list[tuple[Array, ...]]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        for found in samples:
            context.current = (found, layout)
            concurrent[number].append(results(context, op, found, layout))

    in_threads(THREADS, work)
    for each in zip(samples, alone, *concurrent, strict=True):
        _same_in_threads(context, op, d, layout, *each)
    return None


def _same_in_threads(
    context: Context, op: Operator[..., Any], d: dtype, layout: str,
    sample: Sample, alone: tuple[Array, ...], *concurrent: tuple[Array, ...],
) -> None:  # fmt: skip
    by_chance = declared(context, op, sample, layout)
    for got in concurrent:
        if by_chance:
            agree(context, op, d, sample, layout, got)
        else:
            _same_bits(alone, got, sample, layout, "a thread beside others")
