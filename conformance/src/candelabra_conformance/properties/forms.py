"""In-place and ``out=`` forms: they compute the functional form and write it, with its history, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from candelabra import Tensor, autograd
from candelabra.dtypes import can_cast, dtype
from candelabra.library import Instance, Operator, own_kernels, real_part

from candelabra_conformance.calling import called, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import (
    ALIASED,
    CONTIGUOUS,
    MEMORY,
    MIXED,
    PLACEMENTS,
    REPEATING,
    STEP,
    TRANSPOSED,
    layout_of,
    placed,
    to_layout,
)
from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.properties.axes import main_on_all_layouts, of_callable, some
from candelabra_conformance.properties.effects import same, storage
from candelabra_conformance.properties.gradients import (
    Cotangents,
    compare_gradients,
    cotangents,
    cotangents_with,
    first_derivatives,
    has_gradient,
    leaves_of,
)
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.tolerance import eps, wide
from candelabra_conformance.transport import Array, to_device, to_host

WRITABLE = tuple(layout for layout in MEMORY if layout not in (*REPEATING, ALIASED))


def has_inplace(op: Operator[..., Any]) -> bool:
    """Return whether a form writes into the first argument."""
    return op.inplace


@operator_property("inplace", main_on_all_layouts(2, has_inplace, layouts=WRITABLE, more=(MIXED,)))
def inplace(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The in-place form writes the function's result into the given tensor, returns it, and increments its version.

    The memory around a target that is a slice does not change. In ``mixed`` its layout is not that of the operands.
    """
    worst = None
    for sample in context.each(op, d, layout):
        args = placed(sample.args, layout, context.instance)
        if not fits(op, context, sample, d) or not isinstance(args[0], Tensor):
            continue
        target = args[0]
        apart = [to_layout(to_host(a), layout, context.instance, 1) if a is target else a for a in args[1:]]
        around = storage(target)
        version = target._version
        kwargs = placed(dict(sample.kwargs), layout, context.instance)
        back = called(op, [target, *apart], kwargs, context.instance, op.form("inplace"))
        if back is not target:
            raise Failure("in place: the result is not the tensor that was given", sample, layout)
        if target._version == version:
            raise Failure("in place: the version counter did not move", sample, layout)
        got = to_host(target)
        worst = max(worst or 0.0, agree(context, op, d, sample, layout, (got,), d))
        _around(target, around, got, sample, layout)
    return worst


def _around(target: Tensor, before: Array, got: Array, sample: Sample, layout: str) -> None:
    """Check that a write changed no element of the storage outside the target."""
    found = PLACEMENTS.get(layout_of(got, layout))
    if found is None or not hasattr(target, "_base"):
        return
    due = before.copy()  # on the host, since the device may write outside the target
    found.view(due, got.shape)[...] = got
    if not same(storage(target), due):
        raise Failure("in place: memory other than the target was written to", sample, layout)


def fits(op: Record, context: Context, sample: Sample, d: dtype) -> bool:
    """Return whether the result can be written into the first argument, by its shape and its dtype."""
    first = sample.args[0] if sample.args else None
    if not isinstance(first, np.ndarray) or sample.of is not None:
        return False
    answer = context.oracle.answer(op, sample)
    if isinstance(op, Operator) and op.results[0] is real_part and d.is_complex:
        return False
    return len(answer.want) == 1 and answer.want[0].shape == first.shape and can_cast(answer.dtypes[0], d)


@operator_property(
    "inplace-gradient",
    some(
        2,
        dtypes=2,
        layouts=(CONTIGUOUS, TRANSPOSED, STEP),
        floating=True,
        when=lambda op: has_inplace(op) and has_gradient(op),
    ),
)
def inplace_gradient(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The in-place form and the function have equal derivatives."""
    worst = None
    for sample in context.each(op, d, layout):
        if (
            not sample.gradient
            or sample.kind == LARGE
            or not fits(op, context, sample, d)
            or not _first_is_leaf(op, sample)
        ):
            continue
        if context.oracle.answer(op, sample).dtypes[0] is not d:
            continue
        got = _through_inplace(op, sample, layout, context.instance)
        widened = with_arrays(sample, wide)
        with own_kernels():
            want = first_derivatives(op, widened, CONTIGUOUS, context.reference, Cotangents())
        size = max((float(np.max(np.abs(w), initial=0.0)) for w in want), default=0.0)
        spread = [np.full(w.shape, 4 * eps(d) * size) for w in want]
        worst = max(worst or 0.0, compare_gradients(sample, layout, d, got, want, spread))
    return worst


def _first_is_leaf(op: Operator[..., Any], sample: Sample) -> bool:
    from candelabra_conformance.properties.gradients import differentiable_places

    return op.schema.parameters[0].name in differentiable_places(op, sample)


def _through_inplace(op: Operator[..., Any], sample: Sample, layout: str, instance: Instance) -> tuple[Array, ...]:
    args, kwargs, leaves = leaves_of(op, sample, layout, instance)
    source = args[0]
    target = source * 1  # an operator's result: leaves cannot be written to
    rest = [target if a is source else a for a in args[1:]]
    called(op, [target, *rest], kwargs, instance, op.form("inplace"))
    given = cotangents([target], op.name, instance, cotangents_with(layout))
    grads = autograd.grad([target], leaves, given, allow_unused=True)
    return tuple(to_host(g) if g is not None else np.zeros(leaf.shape) for g, leaf in zip(grads, leaves, strict=True))


@operator_property(
    "out", some(2, dtypes=2, when=lambda op: op.out), of_callable(2, (CONTIGUOUS,), when=lambda op: op.out)
)
def out(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """``out=`` gets the values: a tensor that fits, one without elements (which is resized), and one of another layout.

    Several results are written into a tuple of tensors. With a target of another layout, the operands have different
    layouts, and the memory around the target does not change. The target may be the first operand.
    """
    for number, sample in enumerate(context.each(op, d, layout)):
        answer = context.oracle.answer(op, sample)
        if sample.of is not None or not answer.want:
            continue
        other = OUT_LAYOUTS[number % len(OUT_LAYOUTS)]
        each = [
            targets(w.shape, due, other, context.instance) for w, due in zip(answer.want, answer.dtypes, strict=True)
        ]
        for given, placing in zip(zip(*each, strict=True), (CONTIGUOUS, CONTIGUOUS, MIXED), strict=True):
            fit = placing == CONTIGUOUS or not sample.layouts or placing in sample.layouts
            args, kwargs = placed([sample.args, dict(sample.kwargs)], placing if fit else CONTIGUOUS, context.instance)
            around = [storage(t) for t in given]
            _written(context, op, d, sample, layout, args, kwargs, given)
            if placing == MIXED:
                for target, before in zip(given, around, strict=True):
                    _around(target, before, to_host(target), sample, other)
        if number == 0 and fits(op, context, sample, d) and answer.dtypes[0] is device_dtype(sample.args[0].dtype):
            args, kwargs = placed([sample.args, dict(sample.kwargs)], CONTIGUOUS, context.instance)
            _over_an_operand(context, op, d, sample, layout, args, kwargs)
    return None


def _written(
    context: Context,
    op: Record,
    d: dtype,
    sample: Sample,
    layout: str,
    args: Any,
    kwargs: Any,
    receivers: Sequence[Tensor],
) -> None:
    """Call the operator with ``out=`` and check the results."""
    versions = [t._version for t in receivers]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("default", message="operator .* has no kernel")
        receiver = receivers[0] if len(receivers) == 1 else tuple(receivers)
        back = tensors_in(called(op, args, {**kwargs, "out": receiver}, context.instance))
    if len(back) != len(receivers) or any(b is not t for b, t in zip(back, receivers, strict=True)):
        raise Failure("out=: the result is not the tensor that was given", sample, layout)
    itself = any(t is a for t in receivers for a in args)  # positive(x, out=x) has nothing to write
    if not itself and any(t._version == version for t, version in zip(receivers, versions, strict=True)):
        raise Failure("out=: the version counter did not move", sample, layout)
    agree(context, op, d, sample, layout, tuple(to_host(t) for t in receivers))


def _over_an_operand(
    context: Context, op: Record, d: dtype, sample: Sample, layout: str, args: Any, kwargs: Any
) -> None:
    """Write over the first operand. A refusal with a RuntimeError that names the memory is right too."""
    target: Tensor = args[0]
    before = storage(target)
    try:
        _written(context, op, d, sample, layout, args, kwargs, [target])
    except RuntimeError as error:
        if "memory" not in str(error) or not same(storage(target), before):
            raise
    except Failure as failure:
        words = f"out= is the first operand: {failure}"
        raise Failure(words, sample, layout, **failure.details) from None


OUT_LAYOUTS: Final = tuple(layout for layout in WRITABLE if layout not in (CONTIGUOUS, MIXED))
"""The layouts of targets, in turn."""


def targets(shape: tuple[int, ...], d: dtype, layout: str, instance: Instance) -> list[Tensor]:
    """Return tensors for ``out=``: one that fits, one without elements, one of another layout."""
    blank = np.ones(shape, host_dtype(d))
    return [
        to_device(blank, instance),
        to_device(np.ones((0,), host_dtype(d)), instance),
        to_layout(blank, layout, instance),
    ]
