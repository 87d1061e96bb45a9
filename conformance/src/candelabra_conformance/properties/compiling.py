"""``candelabra.compile``: compiled calls have the values, the writes and the draws of the operator, and memory of their
own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.library import Operator
from candelabra.random import fork_rng

from candelabra_conformance.calling import at, called, determined, tensors, tensors_in
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED, placed
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.properties.axes import of_callable, some
from candelabra_conformance.properties.effects import differing, given_tensors, same
from candelabra_conformance.properties.forms import fits, has_inplace
from candelabra_conformance.properties.registry import callable_property, operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.records import CallableRecord
from candelabra_conformance.samples.sample import SEED, Sample
from candelabra_conformance.tolerance import SAFETY, eps, wide
from candelabra_conformance.transport import Array, to_device, to_host

TURNS = ("that is traced", "that runs the graph", "that runs the graph again")
"""The calls of a compiled function, in order."""
BREAKS = "no graph can repeat the operator's calls, which run eagerly"


@operator_property(
    "compiled", some(3, dtypes=2, layouts=(CONTIGUOUS, TRANSPOSED), when=lambda op: bool(op.schema.tensors))
)
def compiled(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A function that calls the operator gives the same values when it is traced, when its graph runs, and when the
    graph runs again on the same tensors. A write into the last result changes no earlier one."""
    worst, ran = None, False
    for sample in context.each(op, d, layout):

        def function(args: Any, kwargs: Any) -> Any:
            return called(op, args, kwargs, context.instance)

        form = cd.compile(function)
        args, kwargs = _placed(context, sample, layout)
        results = []
        for turn in TURNS:
            with _breaks_allowed():
                results.append(form(args, kwargs))
                values = determined(sample, results[-1], context.reference)
            try:
                worst = max(worst or 0.0, agree(context, op, d, sample, layout, values))
            except Failure as failure:
                raise Failure(f"in the call {turn}: {failure}", sample, layout, **failure.details) from None
            if len(results) == 1:  # the graph runs on other tensors than those of the trace
                args, kwargs = _placed(context, sample, layout)
        if form.programs and context.instance.capabilities.mutable:
            _kept(context, results[1], results[2], given_tensors([args, kwargs]), (sample, layout))
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS)
    return worst


@operator_property("compiled-inplace", some(3, layouts=(CONTIGUOUS, TRANSPOSED), when=has_inplace))
def compiled_inplace(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A function that writes its argument in place writes the same values when its graph runs as when it is traced."""
    worst, ran = None, False
    for sample in context.each(op, d, layout):
        if not fits(op, context, sample, d):
            continue

        def function(target: Tensor, args: Any, kwargs: Any) -> None:
            called(op, [target, *args], kwargs, context.instance, op.form("inplace"))

        form = cd.compile(function)
        for turn in TURNS:
            args, kwargs = _placed(context, sample, layout)
            with _breaks_allowed():
                form(
                    args[0], [to_device(to_host(a), context.instance) if a is args[0] else a for a in args[1:]], kwargs
                )
            try:
                worst = max(worst or 0.0, agree(context, op, d, sample, layout, (to_host(args[0]),), d))
            except Failure as failure:
                raise Failure(f"in the call {turn}: {failure}", sample, layout, **failure.details) from None
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS)
    return worst


@callable_property("compiled-draws", of_callable(3, (CONTIGUOUS,), when=lambda op: op.draws))
def compiled_draws(context: Context, op: CallableRecord, d: dtype, layout: str) -> None:
    """Every run of a graph draws the next random numbers, which are those of eager calls after the same seed."""
    ran = False
    for sample in context.each(op, d, layout):

        def function(args: Any, kwargs: Any) -> Any:
            return op.function(*at(tuple(args), context.device), **at(dict(kwargs), context.device))

        form = cd.compile(function)
        eager = _drawn(context, sample, layout, function)
        for turn, due, got in zip(TURNS, eager, _drawn(context, sample, layout, form), strict=True):
            if not all(map(_near, got, due)):
                raise Failure(f"in the call {turn}: the random numbers are not those of the eager call", sample, layout)
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS)


def _drawn(context: Context, sample: Sample, layout: str, function: Any) -> list[list[Array]]:
    """Return the tensors of a call's result and of its arguments, for a call of each turn after one seed."""
    found = []
    with fork_rng(), context.device, _breaks_allowed():
        cd.manual_seed(SEED)
        for _ in TURNS:
            args, kwargs = _placed(context, sample, layout)
            out = function(args, kwargs)
            found.append([to_host(t) for t in (*tensors_in(out), *given_tensors([args, kwargs]))])
    return found


def _near(got: Array, due: Array) -> bool:
    """Return whether two draws are equal up to the rounding of computations that follow the draw."""
    if got.shape != due.shape or got.dtype != due.dtype:
        return False
    if got.dtype.kind in "biu":
        return same(got, due)
    a, b = wide(got), wide(due)
    allowed = SAFETY * eps(device_dtype(due.dtype)) * np.maximum(np.abs(b), 1)
    with np.errstate(invalid="ignore"):
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed)))


@contextmanager
def _breaks_allowed() -> Iterator[None]:
    """Ignore the warning that what a graph cannot repeat runs eagerly."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
        yield


def _placed(context: Context, sample: Sample, layout: str) -> tuple[Any, Any]:
    return placed(sample.args, layout, context.instance), placed(dict(sample.kwargs), layout, context.instance)


def _kept(context: Context, earlier: Any, last: Any, arguments: list[Tensor], where: tuple[Sample, str]) -> None:
    """Write into the last results of a graph that are no views of arguments. The earlier ones must stay the same."""

    def own(result: Any) -> list[Tensor]:
        return [t for t in tensors(result) if t.numel() and not any(t._counter is g._counter for g in arguments)]

    before = [to_host(t) for t in own(earlier)]
    for tensor in own(last):
        tensor.copy_(to_device(differing(to_host(tensor)), context.instance))
    if not all(map(same, map(to_host, own(earlier)), before)):
        raise Failure("a result of the graph is other after a write into the result of its next run", *where)
