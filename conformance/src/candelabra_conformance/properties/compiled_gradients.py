"""Gradients through compiled calls: those of eager calls, whether the backward pass runs in the compiled function or
outside of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor, autograd
from candelabra.dtypes import dtype
from candelabra.library import Instance, Operator
from candelabra.random import fork_rng

from candelabra_conformance.calling import tensors_in
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED
from candelabra_conformance.properties.axes import each_category
from candelabra_conformance.properties.compiling import (
    BREAKS,
    PROGRAMS,
    TURNS,
    arguments_of_turns,
    breaks_allowed,
    near,
    of_programs,
)
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.gradients import (
    agreed,
    axes_of_callable,
    computed,
    cotangents,
    cotangents_with,
    differentiable_places,
    first_derivatives,
    has_gradient,
    leaves_of,
    on_host,
    outputs_of,
)
from candelabra_conformance.properties.registry import Axis, device_property, operator_property
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import LARGE, SEED, Sample
from candelabra_conformance.transport import Array, to_host

SIGNS: Final = (1, -1, 1)
"""The factors of the cotangents in each of :data:`TURNS`. The negative gradient of negative cotangents has the bits of
the gradient, unless a graph takes a cotangent for a constant."""
Gradients = Callable[[Any, Any, list[Tensor], list[Tensor]], Sequence[Tensor | None]]
"""A function of arguments, keyword arguments, the leaves among them, and cotangents."""
Compiled = Callable[[Callable[[Any, Any], list[Tensor]]], tuple[Any, Gradients]]
"""Returns a compiled function, and the gradients by it, for the function of the outputs that require grad."""


def _axes(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    """Yield the main floating and the main complex dtype; the first of them on transposed memory too, at level 3."""
    if has_gradient(op):
        for axis in each_category(2, (CONTIGUOUS, TRANSPOSED))(context, op):
            if axis.dtype is not None and (axis.dtype.is_floating_point or axis.dtype.is_complex):
                yield axis if axis.layout == CONTIGUOUS else axis._replace(level=3)


def _axes_of_callable(context: Context, op: CallableRecord) -> Iterator[Axis]:
    """Yield the axes of gradients at level 3, except for calls that draw."""
    for axis in axes_of_callable(context, op) if context.highest == 3 and not op.draws else ():
        if axis.layout in (CONTIGUOUS, TRANSPOSED):
            yield axis._replace(level=3)


@operator_property("compiled-gradient", _axes, _axes_of_callable)
def compiled_gradient(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """The backward pass of a compiled call has the gradients of the eager call: their bits, or values within the bound
    of gradients."""

    def outside(outputs: Callable[[Any, Any], list[Tensor]]) -> tuple[Any, Gradients]:
        form = cd.compile(outputs)
        return form, lambda args, kwargs, leaves, weights: _differentiated(form(args, kwargs), leaves, weights)

    return _hold(context, op, d, layout, outside)


@operator_property("compiled-backward", _axes, _axes_of_callable)
def compiled_backward(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """A compiled function that calls the operator and differentiates has the gradients of eager calls."""

    def inside(outputs: Callable[[Any, Any], list[Tensor]]) -> tuple[Any, Gradients]:
        form = cd.compile(lambda args, kwargs, leaves, weights: _differentiated(outputs(args, kwargs), leaves, weights))
        return form, form

    return _hold(context, op, d, layout, inside)


def _differentiated(
    outputs: Sequence[Tensor], leaves: list[Tensor], weights: list[Tensor]
) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor | None, ...] = autograd.grad(outputs, leaves, weights, allow_unused=True)
    return found


def _hold(context: Context, op: Record, d: dtype, layout: str, compiled: Compiled) -> float | None:
    """Compare the gradients of every sample in each of :data:`TURNS`, on new tensors."""
    worst, tried, ran = None, False, False
    kind = cotangents_with(layout)
    for sample in context.each(op, d, layout):
        if not sample.gradient or sample.kind == LARGE or not differentiable_places(op, sample):
            continue
        outputs, leaves = outputs_of(op, sample, layout, context.instance)
        if not outputs:
            continue
        weights = cotangents(outputs, op.name, context.instance, kind)
        due = _on_host(_differentiated(outputs, leaves, weights), leaves)
        form, gradients = compiled(_outputs(op, sample, context.instance))
        for turn, sign in zip(TURNS, SIGNS, strict=True):
            got = _signed(gradients, leaves_of(op, sample, layout, context.instance), weights, sign)
            if len(got) == len(due) and all(map(same, got, due)):
                continue
            try:
                worst = max(worst or 0.0, agreed(context, op, sample, layout, first_derivatives, d, got, kind))
            except Failure as failure:
                raise Failure(f"in the call {turn}: {failure}", sample, layout, **failure.details) from None
        tried, ran = True, ran or bool(form.programs)
    if not ran:
        raise NotApplicable(BREAKS if tried else "no sample has a derivative")
    return worst


def _outputs(op: Record, sample: Sample, instance: Instance) -> Callable[[Any, Any], list[Tensor]]:
    """Return the function from a sample's arguments to the outputs that require grad."""
    return lambda args, kwargs: [t for t in tensors_in(computed(op, sample, args, kwargs, instance)) if t.requires_grad]


def _signed(
    gradients: Gradients, arguments: tuple[Any, Any, list[Tensor]], weights: list[Tensor], sign: int
) -> tuple[Array, ...]:
    """Return the gradients for cotangents of a sign, times the sign."""
    with breaks_allowed():
        found = gradients(*arguments, [weight * sign for weight in weights])
    return tuple(array * array.dtype.type(sign) for array in _on_host(found, arguments[2]))


def _on_host(gradients: Sequence[Tensor | None], leaves: list[Tensor]) -> tuple[Array, ...]:
    return tuple(on_host(gradient, leaf) for gradient, leaf in zip(gradients, leaves, strict=True))


# -- programs of several operators ------------------------------------------------------------------------------------
@device_property("compiled-gradient", of_programs)
def compiled_gradients_of_programs(context: Context, d: dtype, layout: str) -> None:
    """A function of several operators has the gradients of eager calls, whether the backward passes run in the compiled
    function or after its last call."""

    def program(x: Tensor, y: Tensor) -> Any:
        return PROGRAMS[layout](x * 1, y)  # an operator's result: leaves cannot be written to

    def step(x: Tensor, y: Tensor) -> tuple[Tensor | None, ...]:
        return _of_squares(program(x, y), [x, y])

    ran = True
    for placement in (CONTIGUOUS, TRANSPOSED):
        form, whole = cd.compile(program), cd.compile(step)
        due = _of_turns(context, d, placement, lambda x, y: partial(_of_squares, program(x, y), [x, y]))
        for where, call in {
            "after the calls": lambda x, y, form=form: partial(_of_squares, form(x, y), [x, y]),
            "in the function": lambda x, y, whole=whole: partial(tuple, whole(x, y)),
        }.items():
            for turn, want, got in zip(TURNS, due, _of_turns(context, d, placement, call), strict=True):
                if not all(map(near, got, want)):
                    text = f"on {placement} tensors, with backward passes {where}, in the call {turn}"
                    raise Failure(f"{text}: other gradients come out than of eager calls")
        ran = ran and bool(form.programs and whole.programs)
    if not ran:
        raise NotApplicable(BREAKS)


def _of_squares(result: Any, leaves: list[Tensor]) -> tuple[Tensor | None, ...]:
    """Return the gradients of half the sum of the squares of a result's tensors, whose cotangents are the values."""
    outputs = tensors_in(result)
    return _differentiated(outputs, leaves, [t.detach() for t in outputs])


def _of_turns(
    context: Context, d: dtype, placement: str, call: Callable[[Tensor, Tensor], Callable[[], Any]]
) -> list[list[Array]]:
    """Return the gradients of each turn, which the results of ``call`` return, after the last call."""
    with fork_rng(), context.device, breaks_allowed():
        cd.manual_seed(SEED)
        operands = [[t.requires_grad_() for t in each] for each in arguments_of_turns(context, d, placement)]
        waiting = [call(*each) for each in operands]
        return [[to_host(gradient) for gradient in gradients()] for gradients in waiting]
