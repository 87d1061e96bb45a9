"""``candelabra.compile``: compiled calls and programs have the values, the writes and the draws of eager ones, and
memory of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import Operator
from candelabra.random import fork_rng

from candelabra_conformance.calling import at, called, split, tensors_in
from candelabra_conformance.context import MAIN, Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED, placed, to_layout
from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.properties.axes import of_callable, some
from candelabra_conformance.properties.effects import differing, given_tensors, same
from candelabra_conformance.properties.forms import fits, has_inplace
from candelabra_conformance.properties.registry import Axis, callable_property, device_property, operator_property
from candelabra_conformance.properties.value import agree, same_others
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import SEED, Sample
from candelabra_conformance.tolerance import SAFETY, eps, wide
from candelabra_conformance.transport import Array, to_device, to_host

TURNS: Final = ("that is traced", "that runs the graph", "that runs the graph again")
"""The calls of a compiled function, in order."""
BREAKS: Final = "no graph can repeat the operator's calls, which run eagerly"


@operator_property(
    "compiled",
    some(3, dtypes=2, layouts=(CONTIGUOUS, TRANSPOSED), when=lambda op: bool(op.schema.tensors)),
    of_callable(3, (CONTIGUOUS, TRANSPOSED), when=lambda op: not op.draws),
)
def compiled(context: Context, op: Record, d: dtype, layout: str) -> float | None:
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
            with breaks_allowed():
                results.append(form(args, kwargs))
                values, others = split(sample, results[-1], context.reference)
            try:
                worst = max(worst or 0.0, agree(context, op, d, sample, layout, values))
                same_others(others, context.oracle.answer(op, sample).others, sample, layout)
            except Failure as failure:
                raise Failure(f"in the call {turn}: {failure}", sample, layout, **failure.details) from None
            # The graph runs on other tensors than those of the trace. Public callables may write their arguments, or
            # share the memory of arrays among them.
            if len(results) == 1 or isinstance(op, CallableRecord):
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
            with breaks_allowed():
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
            if not all(map(near, got, due)):
                raise Failure(f"in the call {turn}: the random numbers are not those of the eager call", sample, layout)
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS)


def _drawn(context: Context, sample: Sample, layout: str, function: Any) -> list[list[Array]]:
    """Return the tensors of a call's result and of its arguments, for a call of each turn after one seed."""
    found = []
    with fork_rng(), context.device, breaks_allowed():
        cd.manual_seed(SEED)
        for _ in TURNS:
            args, kwargs = _placed(context, sample, layout)
            out = function(args, kwargs)
            found.append([to_host(t) for t in (*tensors_in(out), *given_tensors([args, kwargs]))])
    return found


def near(got: Array, due: Array) -> bool:
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
def breaks_allowed() -> Iterator[None]:
    """Ignore the warning that what a graph cannot repeat runs eagerly."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "candelabra.compile", UserWarning)
        yield


def _placed(context: Context, sample: Sample, layout: str) -> tuple[Any, Any]:
    """Return new arguments. Arrays and other objects of the host are created here, outside of the compiled function."""
    given = placed(sample.args, layout, context.instance), placed(dict(sample.kwargs), layout, context.instance)
    return at(given[0], context.device), at(given[1], context.device)


def _kept(context: Context, earlier: Any, last: Any, arguments: list[Tensor], where: tuple[Sample, str]) -> None:
    """Write into the last results of a graph that are no views of arguments. The earlier ones must stay the same."""

    def own(result: Any) -> list[Tensor]:
        return [t for t in tensors_in(result) if t.numel() and not any(t._counter is g._counter for g in arguments)]

    before = [to_host(t) for t in own(earlier)]
    for tensor in own(last):
        tensor.copy_(to_device(differing(to_host(tensor)), context.instance))
    if not all(map(same, map(to_host, own(earlier)), before)):
        raise Failure("a result of the graph is other after a write into the result of its next run", *where)


# -- programs of several operators ------------------------------------------------------------------------------------
def _written(x: Tensor, y: Tensor) -> Tensor:
    """Write into the first tensor twice, the second time into some of its rows, and return what depends on it."""
    x.mul_(y)
    x[1:].sub_(y[1:])
    return x + y


PROGRAMS: Final[dict[str, Callable[[Tensor, Tensor], Any]]] = {
    "pointwise": lambda x, y: (x - y).exp() * x.maximum(y),
    "rows": lambda x, y: ((x - y).softmax(0), (x * y).sum(0), (x + y).cumsum(0)),
    "product": lambda x, y: (x @ y.transpose(0, 1) + 0.5).relu(),
    "written": _written,
    "drawn": lambda x, y: cd.rand_like(x) * y + x,
}
"""Functions of two matrices by name, which stands in the place of the layout in the ids of cases."""


def of_programs(context: Context) -> Iterator[Axis]:
    """Yield :data:`PROGRAMS`, in the first floating dtype."""
    floating = next((d for name in MAIN[:4] if context.computes(d := BY_NAME[name])), None)
    for name in PROGRAMS if floating is not None else ():
        yield Axis(floating, name, 2)


@device_property("compiled", of_programs)
def compiled_programs(context: Context, d: dtype, layout: str) -> None:
    """A function of several operators gives the results, the writes and the draws of eager calls when it is traced and
    whenever its graph runs on other values. All results exist at once, and are read last."""
    ran = False
    for placement in (CONTIGUOUS, TRANSPOSED):
        form = cd.compile(PROGRAMS[layout])
        eager = _turns(context, PROGRAMS[layout], d, placement)
        for turn, due, got in zip(TURNS, eager, _turns(context, form, d, placement), strict=True):
            if not all(near(to_host(a), to_host(b)) for a, b in zip(got, due, strict=True)):
                raise Failure(f"on {placement} tensors, in the call {turn}: other values come out than of eager calls")
        ran = ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS)


def _turns(context: Context, function: Callable[..., Any], d: dtype, placement: str) -> list[list[Tensor]]:
    """Return the results and the arguments of a call for each turn, on different values, after one seed."""
    found = []
    with fork_rng(), context.device, breaks_allowed():
        cd.manual_seed(SEED)
        for arguments in arguments_of_turns(context, d, placement):
            found.append([*tensors_in(function(*arguments)), *arguments])
    return found


def arguments_of_turns(context: Context, d: dtype, placement: str) -> Iterator[list[Tensor]]:
    """Yield the arguments of one of :data:`PROGRAMS` for each turn: different values, exact in every dtype."""
    random = np.random.Generator(np.random.Philox(SEED))
    for _ in TURNS:
        values = np.round(random.uniform(-1, 1, (2, 5, 7)) * 8) / 8
        yield [to_layout(each.astype(host_dtype(d)), placement, context.instance) for each in values]
