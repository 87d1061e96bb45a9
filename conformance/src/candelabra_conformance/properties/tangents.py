"""Forward mode: the derivative along tangents equals the transposed vector-Jacobian product, and finite differences.

The tangent rules are the core's, and the operators that they call the device's. What is expected is computed by reverse
mode only, on the reference in float64: the vector-Jacobian product is linear in the cotangent, and its derivative along
the tangents is the Jacobian-vector product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra import Tensor, autograd, func
from candelabra.dtypes import dtype
from candelabra.library import Instance, Operator

from candelabra_conformance.calling import tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED
from candelabra_conformance.properties.axes import usual
from candelabra_conformance.properties.gradients import (
    DIFFERENCED,
    TWICE,
    Cotangents,
    agreed,
    computed,
    cotangents,
    differentiable_places,
    has_gradient,
    leaves_of,
    on_host,
    outputs_of,
    replaced,
)
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.transport import Array

TANGENTS: Final = Cotangents(moved=True)
"""Tangents differ, and a bound contains their rounding: their contributions to a result may cancel."""


def _axes(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    """Yield the full dtypes on contiguous memory, and the first of them on transposed memory too."""
    if has_gradient(op):
        able = [d for d in context.dtypes(op) if d.name in TWICE]
        for place, d in enumerate(able):
            for layout in (CONTIGUOUS, TRANSPOSED) if place == 0 else (CONTIGUOUS,):
                if context.laid_out(op, d, layout):
                    yield Axis(d, layout, 2 if usual(context, d) and layout == CONTIGUOUS else 3)


@operator_property("tangent", _axes)
def tangent(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The Jacobian-vector product with fixed tangents is right for every output that has a derivative."""
    worst = None
    for sample in context.each(op, d, layout):
        if not sample.gradient or sample.kind == LARGE or not differentiable_places(op, sample):
            continue
        got = along_tangents(op, sample, layout, context.instance, TANGENTS)
        if context.oracle.itself and d.itemsize == (16 if d.is_complex else 8):
            _against_differences(op, sample, layout, context.instance)
        try:
            worst = max(worst or 0.0, agreed(context, op, sample, layout, transposed_product, d, got, TANGENTS))
        except Failure as failure:
            raise Failure(f"in forward mode, as gradients: {failure}", sample, layout, **failure.details) from None
    return worst


def along_tangents(op: Record, sample: Sample, layout: str, instance: Instance, kind: Cotangents) -> tuple[Array, ...]:
    """Return the tangents of the outputs that have derivatives, by forward mode."""
    function, leaves = _function_of(op, sample, layout, instance)
    if not function(*leaves):
        return ()
    primals = tuple(leaf.detach() for leaf in leaves)
    outputs, tangents = func.jvp(function, primals, tuple(tangents_of(op, leaves, instance, kind)))
    return tuple(on_host(t, out) for t, out in zip(tangents, outputs, strict=True))


def transposed_product(
    op: Record, sample: Sample, layout: str, instance: Instance, kind: Cotangents
) -> tuple[Array, ...]:
    """Return the same by reverse mode twice."""
    outputs, leaves = outputs_of(op, sample, layout, instance)
    if not outputs:
        return ()
    probes = [c.detach().requires_grad_() for c in cotangents(outputs, op.name, instance, Cotangents())]
    products = autograd.grad(outputs, leaves, probes, create_graph=True, allow_unused=True)
    along = tangents_of(op, leaves, instance, kind)
    pairs = [(p, t) for p, t in zip(products, along, strict=True) if p is not None and p.requires_grad]
    found: tuple[Tensor | None, ...] = (None,) * len(outputs)
    if pairs:
        found = autograd.grad([p for p, _ in pairs], probes, [t for _, t in pairs], allow_unused=True)
    return tuple(on_host(t, out) for t, out in zip(found, outputs, strict=True))


def tangents_of(op: Record, leaves: list[Tensor], instance: Instance, kind: Cotangents) -> list[Tensor]:
    """Return fixed tangents in the dtypes of the leaves, with the same values in every precision."""
    return cotangents(leaves, f"{op.name} along", instance, kind)


def _function_of(op: Record, sample: Sample, layout: str, instance: Instance) -> tuple[Any, list[Tensor]]:
    """Return the outputs with a derivative as a function of the leaves, and the leaves."""
    args, kwargs, leaves = leaves_of(op, sample, layout, instance)
    kept = [t.requires_grad for t in tensors_in(computed(op, sample, args, kwargs, instance))]

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        given = {id(leaf): value for leaf, value in zip(leaves, values, strict=True)}
        made = tensors_in(computed(op, sample, replaced(args, given), replaced(kwargs, given), instance))
        return tuple(t for t, keep in zip(made, kept, strict=True) if keep)

    return function, leaves


def _against_differences(op: Record, sample: Sample, layout: str, instance: Instance) -> None:
    """Compare with finite differences along a random direction for each leaf."""
    function, leaves = _function_of(op, sample, layout, instance)
    if not 0 < sum(leaf.numel() for leaf in leaves) <= DIFFERENCED or not function(*leaves):
        return
    try:
        autograd.gradcheck(function, leaves, fast_mode=True, check_forward_ad=True, check_backward_ad=False)
    except Exception as error:
        raise Failure(f"finite differences disagree with forward mode: {error}", sample, layout) from error
