"""Derivatives: first and second, on the device against the reference in float64; of the reference against differences.

A device without float64 has its gradients checked all the same: what it computes in float32 is held against the oracle
with a bound that follows from how far the gradient moves when the inputs do.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra import Tensor, autograd
from candelabra.dtypes import dtype
from candelabra.library import Instance, Operator

from candelabra_conformance.calling import called, tensors_in
from candelabra_conformance.comparing import described, error_in_ulp, wrong
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, STEP, TRANSPOSED, placed
from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.oracle import DIRECTIONS, as_given
from candelabra_conformance.perturbation import perturbed, with_arrays
from candelabra_conformance.properties.axes import main_on_all_layouts, usual
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.properties.value import scale_of
from candelabra_conformance.records import CallableRecord, Record, arguments_of, parameter_names, takes_tensors
from candelabra_conformance.samples.sample import LARGE, Sample
from candelabra_conformance.tolerance import eps, wide
from candelabra_conformance.transport import Array, to_device, to_host

DIFFERENCED: Final = 200
"""Elements up to which finite differences are taken: a sample with more adds nothing to them but time."""
TWICE: Final = ("float32", "float64", "complex64", "complex128", "float16")
"""The dtypes of second derivatives. Those of 8 and 16 bytes are held against finite differences on the reference."""
LAYOUTS_TWICE: Final = (CONTIGUOUS, TRANSPOSED, STEP)


def has_gradient(op: Operator[..., Any]) -> bool:
    """Whether a result of an operator carries a gradient: by rules of its own or those of its body."""
    differentiable = op.differentiable or (op.body is not None and op.not_differentiable is None)
    return differentiable and bool(op.schema.differentiable)


def _twice(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    """The full dtypes on contiguous memory, the first of them on other layouts too."""
    if has_gradient(op):
        able = [d for d in context.dtypes(op) if d.name in TWICE]
        for place, d in enumerate(able):
            for layout in LAYOUTS_TWICE if place == 0 else LAYOUTS_TWICE[:1]:
                if context.laid_out(op, d, layout):
                    yield Axis(d, layout, 2 if usual(context, d) else 3)


def _of_callable(context: Context, op: CallableRecord) -> Iterator[Axis]:
    """As :func:`_twice`: the reference holds the dtypes of 8 and 16 bytes against finite differences."""
    if op.entry.factory:
        return
    able = list(dict.fromkeys([*context.main_dtypes(op, count=99), *context.dtypes(op)]))
    able = [d for d in able if d.name in TWICE]
    for place, d in enumerate(able):
        for layout in LAYOUTS_TWICE if place == 0 else LAYOUTS_TWICE[:1]:
            samples = (s for s in context.laid_out(op, d, layout) if s.gradient and s.kind != LARGE)
            if any(differentiable_places(op, s) for s in samples):
                yield Axis(d, layout, 2 if usual(context, d) else 3)


@operator_property("gradient", main_on_all_layouts(2, has_gradient, floating=True), _of_callable)
def gradient(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """The vector-Jacobian product with fixed cotangents, for every input that may ask for one.

    A sample says where a public callable has no derivative; else a floating result without one is a failure.
    """
    return _hold(context, op, d, layout, first_derivatives)


@operator_property("gradient2", _twice)
def gradient2(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The derivative of the vector-Jacobian product, by the inputs and by the cotangents."""
    return _hold(context, op, d, layout, second_derivatives)


Derivatives = Callable[[Record, Sample, str, Instance], tuple[Array, ...]]


def _hold(context: Context, op: Record, d: dtype, layout: str, derivatives: Derivatives) -> float | None:
    worst = None
    for found in context.each(op, d, layout):
        if not found.gradient or found.kind == LARGE or not differentiable_places(op, found):
            continue
        got = derivatives(op, found, layout, context.instance)
        if context.is_reference and d.itemsize == (16 if d.is_complex else 8):
            _against_differences(op, found, layout, context.instance, twice=derivatives is second_derivatives)
        worst = max(worst or 0.0, _agreed(context, op, found, layout, derivatives, d, got))
    return worst


def _agreed(
    context: Context, op: Record, found: Sample, layout: str, derivatives: Derivatives, d: dtype, got: Any
) -> float:
    """The largest error, with the inputs moved in as many directions as it takes."""
    for directions in DIRECTIONS[:-1]:
        with contextlib.suppress(Failure):
            return compare_gradients(found, layout, d, got, *_wanted(context, op, found, derivatives, d, directions))
    return compare_gradients(found, layout, d, got, *_wanted(context, op, found, derivatives, d, DIRECTIONS[-1]))


def _wanted(
    context: Context, op: Record, found: Sample, derivatives: Derivatives, d: dtype, directions: int
) -> tuple[tuple[Array, ...], list[Array]]:
    """The reference's derivatives in the widest precision, and how far they move. Layouts don't matter to it."""
    key = (derivatives.__name__, id(found), directions)

    def make() -> tuple[tuple[Array, ...], list[Array]]:
        widened = found if as_given(op) else with_arrays(found, wide)
        want = derivatives(op, widened, CONTIGUOUS, context.reference)
        spread = [np.zeros(w.shape) for w in want]
        for seed in range(directions):
            moved = derivatives(op, perturbed(op, widened, eps(d), seed), CONTIGUOUS, context.reference)
            with np.errstate(all="ignore"):
                spread = [
                    np.maximum(s, np.nan_to_num(np.abs(m - w), nan=np.inf)) for s, m, w in zip(spread, moved, want)
                ]
        return want, spread

    found_answer: tuple[tuple[Array, ...], list[Array]] = context.oracle.remembered(op, key, found, make)
    return found_answer


def compare_gradients(
    found: Sample, layout: str, d: dtype, got: tuple[Array, ...], want: tuple[Array, ...], spread: list[Array]
) -> float:
    """The largest error in ULP of gradients that may move by ``spread``; Failure where one lies farther off."""
    if len(got) != len(want):
        raise Failure(f"{len(got)} gradients, {len(want)} are due", found, layout)
    worst = 0.0
    for place, (values, truth, moved) in enumerate(zip(got, want, spread, strict=True)):
        if values.shape != truth.shape:
            raise Failure(f"gradient {place} has shape {list(values.shape)}, {list(truth.shape)} is due", found, layout)
        due = device_dtype(values.dtype)
        # A gradient sums over what was broadcast, and its terms are as large as its largest neighbour.
        size = np.max(np.abs(truth), initial=0.0, where=np.isfinite(truth))
        allowed = moved + eps(due) * size
        bad = wrong(values, truth, allowed, values.size, due)
        if bad.any():
            words = described(values, truth, bad, due, allowed, values.size)
            raise Failure(f"gradient {place}: {words}", found, layout, expected=truth, got=values, dtype=due)
        worst = max(worst, error_in_ulp(values, truth, due, np.maximum(size, scale_of(moved, due))))
    return worst


# -- derivatives of a sample ------------------------------------------------------------------------------------------
def differentiable_places(op: Record, found: Sample) -> list[str]:
    """The parameters whose arrays may ask for a gradient."""
    given = arguments_of(op, found)
    return [
        p.name
        for p in op.schema.parameters
        if takes_tensors(op, p) and p.name not in found.constant and _floats(given.get(p.name))
    ]


def _floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_floats(v) for v in value)
    return isinstance(value, np.ndarray) and value.dtype.kind not in "biu"


def leaves_of(op: Record, found: Sample, layout: str, instance: Instance) -> tuple[Any, Any, list[Tensor]]:
    """The arguments on the device, and the leaves among them: the tensors that ask for a gradient."""
    names = parameter_names(op, len(found.args))
    chosen = differentiable_places(op, found)
    args, kwargs = placed([list(found.args), dict(found.kwargs)], layout, instance)
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


def _outputs(op: Record, found: Sample, layout: str, instance: Instance) -> tuple[list[Tensor], list[Tensor]]:
    args, kwargs, leaves = leaves_of(op, found, layout, instance)
    made = tensors_in(_computed(op, found, args, kwargs, instance))
    outputs = [t for t in made if t.requires_grad]
    if not outputs and isinstance(op, CallableRecord) and any(t.is_floating_point() or t.is_complex() for t in made):
        raise Failure("no result requires grad: the sample says gradient=False where none is due", found, layout)
    return outputs, leaves


def _computed(op: Record, found: Sample, args: Any, kwargs: Any, instance: Instance) -> Any:
    """The results by which a sample is differentiated."""
    if isinstance(op, CallableRecord) and op.writes:
        args = [args[0] * 1, *args[1:]]  # an operator's result: leaves cannot be written to
    if found.call is not None:
        return called(op, args, kwargs, instance, partial(found.call, op.function))
    made = called(op, args, kwargs, instance)
    return made if found.of is None else found.of(made)


def cotangents(outputs: list[Tensor], seed: str, instance: Instance) -> list[Tensor]:
    """Fixed cotangents in the outputs' dtypes, the same values in every precision up to float16's."""
    random = np.random.Generator(np.random.Philox(zlib.crc32(seed.encode())))
    made = []
    for out in outputs:
        shape = tuple(out.shape)
        values = np.round(random.uniform(0.5, 1.5, shape) * random.choice((-1, 1), shape) * 64) / 64
        if out.is_complex():
            values = values + 1j * np.round(random.uniform(-1.5, 1.5, shape) * 64) / 64
        made.append(to_device(np.asarray(values).astype(host_dtype(out.dtype)), instance))
    return made


def first_derivatives(op: Record, found: Sample, layout: str, instance: Instance) -> tuple[Array, ...]:
    """The gradients of the leaves; zeros where an output does not depend on one."""
    outputs, leaves = _outputs(op, found, layout, instance)
    if not outputs:
        return ()
    grads = autograd.grad(outputs, leaves, cotangents(outputs, op.name, instance), allow_unused=True)
    return tuple(_on_host(g, leaf) for g, leaf in zip(grads, leaves, strict=True))


def second_derivatives(op: Record, found: Sample, layout: str, instance: Instance) -> tuple[Array, ...]:
    """The gradients of the gradients, by the leaves and by the cotangents."""
    outputs, leaves = _outputs(op, found, layout, instance)
    if not outputs:
        return ()
    given = [c.requires_grad_() for c in cotangents(outputs, op.name, instance)]
    grads = autograd.grad(outputs, leaves, given, create_graph=True, allow_unused=True)
    again = [g for g in grads if g is not None and g.requires_grad]
    if not again:
        return ()
    by = [*leaves, *given]
    twice = autograd.grad(again, by, cotangents(again, op.name + " twice", instance), allow_unused=True)
    return tuple(_on_host(g, leaf) for g, leaf in zip(twice, by, strict=True))


def _on_host(gradient: Tensor | None, leaf: Tensor) -> Array:
    if gradient is None:
        return np.zeros(tuple(leaf.shape), to_host(leaf).dtype)
    if gradient.dtype is not leaf.dtype or gradient.device != leaf.device:
        raise Failure(
            f"a gradient is {gradient.dtype.name} on {gradient.device}, its leaf {leaf.dtype.name} on {leaf.device}"
        )
    return to_host(gradient)


def _against_differences(op: Record, found: Sample, layout: str, instance: Instance, *, twice: bool) -> None:
    """Finite differences along a random direction (Griewank and Walther, Evaluating Derivatives, 2008, ch. 1)."""
    args, kwargs, leaves = leaves_of(op, found, layout, instance)
    if not 0 < sum(leaf.numel() for leaf in leaves) <= DIFFERENCED:
        return

    def rebuilt(value: Any, given: dict[int, Tensor]) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(rebuilt(v, given) for v in value)
        return given.get(id(value), value)

    def call(*values: Tensor) -> Any:
        given = {id(leaf): value for leaf, value in zip(leaves, values, strict=True)}
        made = _computed(op, found, rebuilt(args, given), {k: rebuilt(v, given) for k, v in kwargs.items()}, instance)
        return tuple(t for t in tensors_in(made) if t.requires_grad)

    if not call(*leaves):
        return
    check = autograd.gradgradcheck if twice else autograd.gradcheck
    try:
        check(call, leaves, fast_mode=True)
    except Exception as error:
        raise Failure(f"finite differences disagree: {error}", found, layout) from error
