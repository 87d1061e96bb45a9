"""``candelabra.compile``: compiled calls have the values of the operator, and memory of their own."""

from __future__ import annotations

import warnings
from typing import Any

import candelabra as cd
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.calling import called, determined, tensors
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED, placed
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.effects import differing, given_tensors, same
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.samples.sample import Sample
from candelabra_conformance.transport import to_device, to_host


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
        for turn in ("that is traced", "that runs the graph", "that runs the graph again"):
            with warnings.catch_warnings():  # what a graph cannot repeat runs eagerly, with a warning
                warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
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
        raise NotApplicable("no graph can repeat the operator's calls, which run eagerly")
    return worst


def _placed(context: Context, sample: Sample, layout: str) -> tuple[Any, Any]:
    return placed(sample.args, layout, context.instance), placed(dict(sample.kwargs), layout, context.instance)


def _kept(context: Context, earlier: Any, last: Any, arguments: list[cd.Tensor], where: tuple[Sample, str]) -> None:
    """Write into the last results of a graph that are no views of arguments. The earlier ones must stay the same."""

    def own(result: Any) -> list[cd.Tensor]:
        return [t for t in tensors(result) if t.numel() and not any(t._counter is g._counter for g in arguments)]

    before = [to_host(t) for t in own(earlier)]
    for tensor in own(last):
        tensor.copy_(to_device(differing(to_host(tensor)), context.instance))
    if not all(map(same, map(to_host, own(earlier)), before)):
        raise Failure("a result of the graph is other after a write into the result of its next run", *where)
