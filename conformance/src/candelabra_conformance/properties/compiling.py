"""``candelabra.compile``: a call that runs as a compiled graph has the values of the operator."""

from __future__ import annotations

import warnings
from typing import Any

import candelabra as cd
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.calling import called, determined
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import placed
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree


@operator_property("compiled", some(3, dtypes=2, when=lambda op: bool(op.schema.tensors)))
def compiled(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A function that calls the operator gives the same values when it is traced and when its graph runs."""
    worst, ran = None, False
    for sample in context.each(op, d, layout):

        def function(args: Any, kwargs: Any) -> Any:
            return called(op, args, kwargs, context.instance)

        form = cd.compile(function)
        for turn in ("that is traced", "that runs the graph"):
            args = placed(sample.args, layout, context.instance)
            kwargs = placed(dict(sample.kwargs), layout, context.instance)
            with warnings.catch_warnings():  # what a graph cannot repeat runs eagerly, with a warning
                warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
                result = determined(sample, form(args, kwargs), context.reference)
            try:
                worst = max(worst or 0.0, agree(context, op, d, sample, layout, result))
            except Failure as failure:
                raise Failure(f"in the call {turn}: {failure}", sample, layout, **failure.details) from None
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable("no graph can repeat the operator's calls, which run eagerly")
    return worst
