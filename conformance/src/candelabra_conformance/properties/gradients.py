"""First and second derivatives: compare the device with the reference in float64, and the reference with differences.

The gradients of a device without float64 are checked too: its float32 values are compared with the oracle, with a bound
that is derived from the change of the gradient when the inputs change.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra import Tensor, autograd
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import Instance, Operator

from candelabra_conformance.calling import called, tensors_in
from candelabra_conformance.comparing import described, error_in_ulp, wrong
from candelabra_conformance.context import MAIN, Context, Failure
from candelabra_conformance.layouts import (
    BASIC,
    BROADCAST,
    BROADCAST_ALL,
    CHANNELS_LAST,
    CONTIGUOUS,
    MIXED,
    OFFSET,
    ROWS,
    STEP,
    TRANSPOSED,
    placed,
    repeated,
    to_layout,
)
from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.oracle import DIRECTIONS, as_given
from candelabra_conformance.perturbation import perturbed, with_arrays
from candelabra_conformance.properties.axes import main_on_all_layouts, usual
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.properties.value import scale_of
from candelabra_conformance.records import CallableRecord, Record, arguments_of, parameter_names, takes_tensors
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.tolerance import eps, wide
from candelabra_conformance.transport import Array, to_host

DIFFERENCED: Final = 200
"""The maximum number of elements for finite differences. Larger samples would only take more time."""
TWICE: Final = ("float32", "float64", "complex64", "complex128", "float16")
"""The dtypes of second derivatives. On the reference, those of 8 and 16 bytes are compared with finite differences."""
LAYOUTS: Final = (*BASIC, MIXED, ROWS, CHANNELS_LAST)
"""The layouts of first derivatives. Values that are all equal are left out: they are ties or kinks of many
functions."""
LAYOUTS_TWICE: Final = (CONTIGUOUS, TRANSPOSED, STEP)
COTANGENTS: Final = {
    TRANSPOSED: ROWS,
    OFFSET: BROADCAST_ALL,
    STEP: TRANSPOSED,
    BROADCAST: STEP,
    MIXED: CHANNELS_LAST,
    ROWS: STEP,
}
"""The layout of the cotangents, by the layout of the inputs; with any other they are contiguous. ``broadcast-all`` is
that of the cotangent of a sum, whose values are equal."""


def has_gradient(op: Operator[..., Any]) -> bool:
    """Return whether a result of an operator has a gradient, by its own rules or those of its body."""
    differentiable = op.differentiable or (op.body is not None and op.not_differentiable is None)
    return differentiable and bool(op.schema.differentiable)


def _twice(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    """Yield the full dtypes on contiguous memory, and the first of them on other layouts too."""
    if has_gradient(op):
        able = [d for d in context.dtypes(op) if d.name in TWICE]
        for place, d in enumerate(able):
            level = 2 if usual(context, d) else 3
            for layout in LAYOUTS_TWICE if place == 0 else LAYOUTS_TWICE[:1]:
                if level <= context.highest and context.laid_out(op, d, layout):
                    yield Axis(d, layout, level)


def axes_of_callable(context: Context, op: CallableRecord) -> Iterator[Axis]:
    """As :func:`_twice`, but the reference compares the dtypes of 8 and 16 bytes with finite differences."""
    if op.entry.factory:
        return
    levels = {BY_NAME[name]: 3 for name in dict.fromkeys((*MAIN, *TWICE)) if name in TWICE}
    levels |= {d: 2 for d in levels if usual(context, d)}
    able = (d for d, level in levels.items() if level <= context.highest and context.accepts(op, d))
    for place, d in enumerate(d for d in able if context.samples(op, d)):
        for layout in LAYOUTS_TWICE if place == 0 else LAYOUTS_TWICE[:1]:
            samples = (s for s in context.laid_out(op, d, layout) if s.gradient and s.kind != LARGE)
            if any(differentiable_places(op, s) for s in samples):
                yield Axis(d, layout, levels[d])


@operator_property("gradient", main_on_all_layouts(2, has_gradient, floating=True, layouts=LAYOUTS), axes_of_callable)
def gradient(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """The vector-Jacobian product with fixed cotangents is right for every differentiable input.

    A floating result of a public callable without a derivative is a failure, unless the sample declares it.
    """
    return _hold(context, op, d, layout, first_derivatives)


@operator_property("gradient2", _twice)
def gradient2(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The derivative of the vector-Jacobian product with respect to inputs and cotangents is right."""
    return _hold(context, op, d, layout, second_derivatives)


class Cotangents(NamedTuple):
    """How the cotangents of a sample are made: their layout, and whether all values of each are equal.

    Equal values may cancel (in the gradient of softmax). For the bound, each is then changed by ``step``, up or down,
    in the random direction of ``seed``. ``moved``: so are values that differ, since their terms may cancel, too.
    """

    layout: str = CONTIGUOUS
    equal: bool = False
    step: float = 0.0
    seed: int = 0
    moved: bool = False


Derivatives = Callable[[Record, Sample, str, Instance, Cotangents], tuple[Array, ...]]


def cotangents_with(layout: str) -> Cotangents:
    """Return the kind of cotangents that is used with a layout of the inputs."""
    chosen = COTANGENTS.get(layout, CONTIGUOUS)
    return Cotangents(chosen, chosen == BROADCAST_ALL)


def _hold(context: Context, op: Record, d: dtype, layout: str, derivatives: Derivatives) -> float | None:
    worst = None
    kind = cotangents_with(layout)
    for sample in context.each(op, d, layout):
        if not sample.gradient or sample.kind == LARGE or not differentiable_places(op, sample):
            continue
        got = derivatives(op, sample, layout, context.instance, kind)
        if context.oracle.itself and d.itemsize == (16 if d.is_complex else 8):
            _against_differences(op, sample, layout, context.instance, twice=derivatives is second_derivatives)
        worst = max(worst or 0.0, agreed(context, op, sample, layout, derivatives, d, got, kind))
    return worst


def agreed(
    context: Context,
    op: Record,
    sample: Sample,
    layout: str,
    derivatives: Derivatives,
    d: dtype,
    got: Any,
    kind: Cotangents,
) -> float:
    """Return the largest error, with the inputs perturbed in as many directions as necessary."""

    def compared(directions: int) -> float:
        expected = _expected(context, op, sample, derivatives, d, directions, kind)
        return compare_gradients(sample, layout, d, got, *expected)

    for directions in DIRECTIONS[:-1]:
        with contextlib.suppress(Failure):
            return compared(directions)
    try:
        return compared(DIRECTIONS[-1])
    except Failure as failure:
        about = f"with {kind.layout} cotangents, " if kind.layout != CONTIGUOUS else ""
        raise Failure(f"{about}{failure}", sample, layout, **failure.details) from None


def _expected(
    context: Context,
    op: Record,
    sample: Sample,
    derivatives: Derivatives,
    d: dtype,
    directions: int,
    cotangents_kind: Cotangents,
) -> tuple[tuple[Array, ...], list[Array]]:
    """Return the reference's derivatives in the widest precision, and their change. They do not depend on layouts."""
    equal = cotangents_kind.equal
    key = (derivatives.__name__, id(sample), directions, equal)
    kind = Cotangents(equal=equal, moved=cotangents_kind.moved)

    def make() -> tuple[tuple[Array, ...], list[Array]]:
        widened = sample if as_given(op) else with_arrays(sample, wide)
        want = derivatives(op, widened, CONTIGUOUS, context.reference, kind)
        # Equal cotangents may cancel exactly; the terms are as large as a gradient by other ones.
        terms = derivatives(op, widened, CONTIGUOUS, context.reference, Cotangents()) if equal else want
        sizes = [np.max(np.abs(t), initial=0.0, where=np.isfinite(t)) if equal else 0.0 for t in terms]
        sensitivity = [np.full(w.shape, eps(d) * size) for w, size in zip(want, sizes, strict=True)]
        for seed in range(directions):
            beside = kind._replace(step=eps(d) if equal or cotangents_kind.moved else 0.0, seed=seed)
            moved = derivatives(op, perturbed(op, widened, eps(d), seed), CONTIGUOUS, context.reference, beside)
            with np.errstate(all="ignore"):
                sensitivity = [
                    np.maximum(s, np.nan_to_num(np.abs(m - w), nan=np.inf)) for s, m, w in zip(sensitivity, moved, want)
                ]
        return want, sensitivity

    found_answer: tuple[tuple[Array, ...], list[Array]] = context.oracle.remembered(op, key, sample, make)
    return found_answer


def compare_gradients(
    sample: Sample, layout: str, d: dtype, got: tuple[Array, ...], want: tuple[Array, ...], sensitivity: list[Array]
) -> float:
    """Return the largest error in ULP of gradients. Raise Failure if an error exceeds its bound ``sensitivity``."""
    if len(got) != len(want):
        raise Failure(f"{len(got)} gradients, {len(want)} are due", sample, layout)
    worst = 0.0
    for place, (values, truth, moved) in enumerate(zip(got, want, sensitivity, strict=True)):
        if values.shape != truth.shape:
            raise Failure(
                f"gradient {place} has shape {list(values.shape)}, {list(truth.shape)} is due", sample, layout
            )
        due = device_dtype(values.dtype)
        # A gradient sums over what was broadcast, and its terms are as large as its largest neighbour.
        size = np.max(np.abs(truth), initial=0.0, where=np.isfinite(truth))
        allowed = moved + eps(due) * size
        bad = wrong(values, truth, allowed, values.size, due)
        if bad.any():
            words = described(values, truth, bad, due, allowed, values.size)
            raise Failure(f"gradient {place}: {words}", sample, layout, expected=truth, got=values, dtype=due)
        worst = max(worst, error_in_ulp(values, truth, due, np.maximum(size, scale_of(moved, due))))
    return worst


# -- derivatives of a sample ------------------------------------------------------------------------------------------
def differentiable_places(op: Record, sample: Sample) -> list[str]:
    """Return the parameters whose arrays can require grad."""
    given = arguments_of(op, sample)
    return [
        p.name
        for p in op.schema.parameters
        if takes_tensors(op, p) and p.name not in sample.constant and _floats(given.get(p.name))
    ]


def _floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_floats(v) for v in value)
    return isinstance(value, np.ndarray) and value.dtype.kind not in "biu"


def leaves_of(op: Record, sample: Sample, layout: str, instance: Instance) -> tuple[Any, Any, list[Tensor]]:
    """Return the arguments on the device, and the leaves among them: the tensors that require grad."""
    names = parameter_names(op, len(sample.args))
    chosen = differentiable_places(op, sample)
    args, kwargs = placed([list(sample.args), dict(sample.kwargs)], layout, instance)
    leaves: list[Tensor] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(leaf(v) for v in value)
        if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
            if not value.requires_grad:
                value = value.detach()
                value.requires_grad_()
            if not any(value is known for known in leaves):
                leaves.append(value)
        return value

    args = [leaf(a) if name in chosen else a for name, a in zip(names, args)]
    kwargs = {name: leaf(v) if name in chosen else v for name, v in kwargs.items()}
    return args, kwargs, leaves


def outputs_of(op: Record, sample: Sample, layout: str, instance: Instance) -> tuple[list[Tensor], list[Tensor]]:
    """Return the outputs that require grad, and the leaves."""
    args, kwargs, leaves = leaves_of(op, sample, layout, instance)
    made = tensors_in(computed(op, sample, args, kwargs, instance))
    outputs = [t for t in made if t.requires_grad]
    if not outputs and isinstance(op, CallableRecord) and any(t.is_floating_point() or t.is_complex() for t in made):
        raise Failure("no result requires grad: the sample says gradient=False where none is due", sample, layout)
    return outputs, leaves


def replaced(value: Any, by: dict[int, Tensor]) -> Any:
    """Return arguments with other tensors in place of leaves, whose ids are the keys."""
    if isinstance(value, dict):
        return {name: replaced(v, by) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(v, by) for v in value)
    return by.get(id(value), value)


def computed(op: Record, sample: Sample, args: Any, kwargs: Any, instance: Instance) -> Any:
    """Return the results of a sample that are differentiated."""
    if isinstance(op, CallableRecord) and op.writes:
        args = [args[0] * 1, *args[1:]]  # an operator's result: leaves cannot be written to
    if sample.call is not None:
        return called(op, args, kwargs, instance, partial(sample.call, op.function))
    made = called(op, args, kwargs, instance)
    return made if sample.of is None else sample.of(made)


def cotangents(outputs: list[Tensor], seed: str, instance: Instance, kind: Cotangents) -> list[Tensor]:
    """Return fixed cotangents in the outputs' dtypes, with the same values in every precision down to float16."""
    random = np.random.Generator(np.random.Philox(zlib.crc32(seed.encode())))
    made = []
    for out in outputs:
        shape = tuple(out.shape)
        values = np.round(random.uniform(0.5, 1.5, shape) * random.choice((-1, 1), shape) * 64) / 64
        if out.is_complex():
            values = values + 1j * np.round(random.uniform(-1.5, 1.5, shape) * 64) / 64
        array = np.asarray(values).astype(host_dtype(out.dtype))
        if kind.equal and array.ndim:
            array = np.ascontiguousarray(repeated(array, BROADCAST_ALL))
        if kind.step and array.ndim:
            signs = np.random.Generator(np.random.Philox(kind.seed)).choice((-1, 1), shape)
            array = np.asarray(array * (1 + kind.step * signs), array.dtype)
        made.append(to_layout(array, kind.layout, instance))
    return made


def first_derivatives(
    op: Record, sample: Sample, layout: str, instance: Instance, kind: Cotangents
) -> tuple[Array, ...]:
    """Return the gradients of the leaves, with zeros for a leaf that no output depends on."""
    outputs, leaves = outputs_of(op, sample, layout, instance)
    if not outputs:
        return ()
    grads = autograd.grad(outputs, leaves, cotangents(outputs, op.name, instance, kind), allow_unused=True)
    return tuple(on_host(g, leaf) for g, leaf in zip(grads, leaves, strict=True))


def second_derivatives(
    op: Record, sample: Sample, layout: str, instance: Instance, kind: Cotangents
) -> tuple[Array, ...]:
    """Return the gradients of the gradients with respect to the leaves and the cotangents."""
    outputs, leaves = outputs_of(op, sample, layout, instance)
    if not outputs:
        return ()
    given = [c.detach().requires_grad_() for c in cotangents(outputs, op.name, instance, kind)]
    grads = autograd.grad(outputs, leaves, given, create_graph=True, allow_unused=True)
    again = [g for g in grads if g is not None and g.requires_grad]
    if not again:
        return ()
    by = [*leaves, *given]
    twice = autograd.grad(again, by, cotangents(again, op.name + " twice", instance, kind), allow_unused=True)
    return tuple(on_host(g, leaf) for g, leaf in zip(twice, by, strict=True))


def on_host(gradient: Tensor | None, leaf: Tensor) -> Array:
    """Return a derivative of the dtype and device of ``leaf``; zeros if it is absent."""
    if gradient is None:
        return np.zeros(tuple(leaf.shape), to_host(leaf).dtype)
    if gradient.dtype is not leaf.dtype or gradient.device != leaf.device:
        raise Failure(
            f"a gradient is {gradient.dtype.name} on {gradient.device}, its leaf {leaf.dtype.name} on {leaf.device}"
        )
    return to_host(gradient)


def _against_differences(op: Record, sample: Sample, layout: str, instance: Instance, *, twice: bool) -> None:
    """Compare with finite differences along a random direction (Griewank and Walther 2008, ch. 1)."""
    args, kwargs, leaves = leaves_of(op, sample, layout, instance)
    if not 0 < sum(leaf.numel() for leaf in leaves) <= DIFFERENCED:
        return

    def call(*values: Tensor) -> Any:
        given = {id(leaf): value for leaf, value in zip(leaves, values, strict=True)}
        made = computed(op, sample, replaced(args, given), replaced(kwargs, given), instance)
        return tuple(t for t in tensors_in(made) if t.requires_grad)

    if not call(*leaves):
        return
    check = autograd.gradgradcheck if twice else autograd.gradcheck
    try:
        check(call, leaves, fast_mode=True)
    except Exception as error:
        raise Failure(f"finite differences disagree: {error}", sample, layout) from error
