"""The form of an operator over rows, with which optimizers update all parameters by one call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra import Tensor, autograd
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, MIXED, to_layout
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.properties.axes import main_on_all_layouts, some
from candelabra_conformance.properties.effects import same, storage
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.samples.sample import Sample
from candelabra_conformance.transport import Array, to_device, to_host

MANY: Final = 130
"""A number of rows beyond those that one launch of usual kernels takes as arguments."""

ROLLS: Final = 4
"""The number of distinct rows of one shape."""
STEPS: Final = 30
"""The number of steps of a training."""


def has_rows(op: Operator[..., Any]) -> bool:
    """Return whether an operator is called over rows: its in-place form is not a public one."""
    return op.inplace_body is not None and not op.inplace


@operator_property("rows", main_on_all_layouts(2, has_rows, layouts=(CONTIGUOUS, MIXED), more=(MIXED,)))
def rows(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The form over rows gives every row the values of the function, and writes the tensors of outputs only.

    It is called with one row, with rows of all shapes, and with many rows. In ``mixed`` the rows contain views.
    """
    worst = None
    for samples in _lists(context, op, d, layout):
        worst = max(worst or 0.0, _step(context, op, d, layout, samples))
    return worst


def _lists(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> Iterator[list[Sample]]:
    """Yield lists of samples with the same options: their tensors are the rows of one call."""
    by_options: dict[Any, list[Sample]] = {}
    for sample in context.samples(op, d):
        by_options.setdefault(_options(op, sample), []).append(sample)
    for number, samples in enumerate(by_options.values()):
        yield samples
        if not number and layout == CONTIGUOUS:
            yield samples[:1]
            small = [s for s in samples if 0 < np.size(s.args[0]) < 100]
            distinct = [with_arrays(s, partial(_rolled, by=by)) for by in range(ROLLS) for s in small]
            yield [distinct[place % len(distinct)] for place in range(MANY)]


def _rolled(array: Array, by: int) -> Array:
    """Return an array of the same values in another order, so that rows of one shape differ."""
    return np.roll(array.reshape(-1), by).reshape(array.shape)


def _tensors(op: Operator[..., Any]) -> int:
    """Return the number of tensors of a row. They are the first parameters of the record."""
    return len(op.schema.tensors)


def _options(op: Operator[..., Any], sample: Sample) -> tuple[Any, ...]:
    return (*sample.args[_tensors(op) :], *sample.kwargs.items())


def _step(context: Context, op: Operator[..., Any], d: dtype, layout: str, samples: list[Sample]) -> float:
    """Run one call over the samples' rows, check every tensor, and return the largest error in ULP."""
    named = [p.name for p in op.schema.tensors]
    written = [named.index(name) if name in named else 0 for name in op.schema.outputs]
    given = [_row(context, op, sample, layout, number) for number, sample in enumerate(samples)]
    around = [[storage(t) for t in row] for row in given]
    versions = [[t._version for t in row] for row in given]
    with autograd.no_grad():
        op.over_rows(given, *samples[0].args[_tensors(op) :])
    worst = 0.0
    for number, (sample, row) in enumerate(zip(samples, given, strict=True)):
        context.current = (sample, layout)
        about = f"row {number} of {len(given)}"
        for place, tensor in enumerate(row):
            moved = tensor._version != versions[number][place]
            if moved != (place in written):
                words = "did not move" if place in written else "moved, although it is not an output"
                raise Failure(f"{about}: the version counter of {named[place]!r} {words}", sample, layout)
            if place not in written and not same(storage(tensor), around[number][place]):
                raise Failure(f"{about}: {named[place]!r} was written to", sample, layout)
        try:
            got = tuple(to_host(row[place]) for place in written)
            worst = max(worst, agree(context, op, d, sample, layout, got))
        except Failure as failure:
            raise Failure(f"{about}: {failure}", sample, layout, **failure.details) from None
    return worst


def _row(context: Context, op: Operator[..., Any], sample: Sample, layout: str, number: int) -> tuple[Tensor, ...]:
    """Return a row's tensors. In ``mixed``, those of every second row are views."""
    chosen = layout if number % 2 == 0 else CONTIGUOUS
    arrays: list[Array] = list(sample.args[: _tensors(op)])
    return tuple(to_layout(a, chosen, context.instance, place) for place, a in enumerate(arrays))


# -- training ---------------------------------------------------------------------------------------------------------
def is_step(op: Operator[..., Any]) -> bool:
    """Return whether an operator with a form over rows is an optimizer's step: it takes a parameter and a gradient."""
    return has_rows(op) and [p.name for p in op.schema.tensors[:2]] == ["param", "grad"]


@operator_property("training", some(2, floating=True, when=is_step))
def training(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> None:
    """Thirty steps of a linear model's weight and bias by gradients of the device at least halve the loss."""
    random = np.random.Generator(np.random.Philox(17))
    points = np.round(random.uniform(-2, 2, (16, 3)) * 8) / 8
    due = points @ np.array([[1.0], [-2.0], [0.5]]) + 0.25
    inputs, targets = (to_device(a.astype(host_dtype(d)), context.instance) for a in (points, due))
    names = [p.name for p in op.schema.parameters[_tensors(op) :]]
    options = dict(zip(names, _options(op, context.laid_out(op, d, layout)[0]), strict=True))
    parameters = [to_device(np.zeros(s, host_dtype(d)), context.instance).requires_grad_() for s in ((3, 1), (1,))]
    state = [
        [to_device(np.zeros(tuple(p.shape), host_dtype(d)), context.instance) for p in parameters]
        for _ in op.schema.tensors[2:]
    ]
    losses: list[float] = []
    for turn in range(1, STEPS + 1):
        loss = ((inputs @ parameters[0] + parameters[1] - targets) ** 2).mean()
        grads = autograd.grad(loss, parameters)
        losses.append(loss.item())
        if "step" in options:
            options["step"] = turn
        with autograd.no_grad():
            op.over_rows(list(zip(parameters, grads, *state, strict=True)), *options.values())
    if not losses[-1] < losses[0] / 2:
        raise Failure(f"a loss of {losses[0]:.4g} is {losses[-1]:.4g} after {STEPS - 1} steps; less than half is due")
