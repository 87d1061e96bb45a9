"""The forms of a public name: a function, a method or property of Tensor, NumPy's names of arguments, and the keywords
of factories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import Operator, entry_named, factory_keywords

from candelabra_conformance.calling import called, split, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED, placed
from candelabra_conformance.program import ReproducerProgram, argument_texts, method_text, spelled
from candelabra_conformance.properties.axes import of_callable, some
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.forms import targets
from candelabra_conformance.properties.registry import callable_property, operator_property
from candelabra_conformance.properties.value import agree, computed
from candelabra_conformance.records import CallableRecord, Record, arguments_of
from candelabra_conformance.samples.sample import HERE, Sample, arrays
from candelabra_conformance.transport import Array

NUMPY_NAMES: Final = {"dim": "axis", "keepdim": "keepdims"}
"""NumPy's names of parameters, which the grammar accepts too."""
SEED: Final = 20
"""The seed of the devices' generators before each call: ``svd_lowrank`` starts from random numbers."""
FEW: Final = 3
"""The number of samples of an operator that are called in every form."""
Results = tuple[tuple[Array, ...], tuple[Any, ...]]


@operator_property("forms", some(1), of_callable(1, (CONTIGUOUS,)))
def forms(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """All functions and methods of a public name, and calls with NumPy's names, have the same bits.

    A method whose name ends in ``_`` returns the tensor that it modified.
    """
    samples = list(context.each(op, d, layout))
    for found in samples[:FEW] if isinstance(op, Operator) else samples:
        context.current = (found, layout)
        cd.manual_seed(SEED)
        want = split(found, computed(context, op, found, layout), context.reference)
        for form in call_forms(op, found):
            args, kwargs = placed([form.call.args, dict(form.call.kwargs)], layout, context.instance)
            cd.manual_seed(SEED)
            result = called(op, args, kwargs, context.instance, form.function)
            if isinstance(op, CallableRecord) and op.writes and result is not args[0]:
                raise Failure(f"{form.words}: the result is not the tensor that was given", found, layout)
            got = split(found, result, context.reference)
            if not equal_results(got, want) and not _by_chance(context, op, d, found, layout, got):
                raise Failure(f"{form.words} gives something else than the function", found, layout, form=form.text)
    return None


def equal_results(a: Results, b: Results) -> bool:
    """Return whether two results have the same bits and dtypes."""
    if len(a[0]) != len(b[0]) or not _equal(a[1], b[1]):
        return False
    return all(x.dtype == y.dtype and same(x, y) for x, y in zip(a[0], b[0], strict=True))


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))


def _by_chance(context: Context, op: Record, d: dtype, sample: Sample, layout: str, got: Results) -> bool:
    """Return whether the device's operators may differ between calls; then only the values are checked."""
    if not context.instance.capabilities.nondeterministic:
        return False
    agree(context, op, d, sample, layout, got[0])
    return True


# -- the forms of a name ----------------------------------------------------------------------------------------------
class CallForm(NamedTuple):
    """One form of a call: its description, the sample, the function, and the text of the call in a program."""

    words: str
    call: Sample
    function: Callable[..., Any]
    text: Callable[[ReproducerProgram, list[str]], str]


def call_forms(op: Record, sample: Sample) -> Iterator[CallForm]:
    """Yield each form of a call other than the record's own function."""
    entry: Any = op.entry if isinstance(op, CallableRecord) else op
    public: Any = entry_named(entry.public_name)
    if public is entry and entry.is_function:
        for name in (entry.public_name, *entry.aliases):
            yield function_form(name, sample)
    if sample.args and isinstance(sample.args[0], np.ndarray):
        for name, form in entry.methods().items():
            held: Any = entry_named(f"Tensor.{name}")
            if form == "function" and held is entry and not (isinstance(op, CallableRecord) and op.assigns):
                yield method_form(name, entry.is_property, sample)
    for call in with_numpy_names(op, sample):
        yield numpy_form(op, call)


def numpy_form(op: Record, call: Sample) -> CallForm:
    """Return a call with NumPy's names of arguments."""
    names = ", ".join(f"{name}=" for name in sorted(set(call.kwargs) & set(NUMPY_NAMES.values())))
    return CallForm(names, call, op.function, lambda p, _: spelled(op, argument_texts(p, op, call.args, call.kwargs)))


def function_form(name: str, sample: Sample) -> CallForm:
    """Return a call of a public function."""
    return CallForm(
        f"candelabra.{name}", sample, attribute(cd, name), lambda _, arguments: f"cd.{name}({', '.join(arguments)})"
    )


def method_form(name: str, is_property: bool, sample: Sample) -> CallForm:
    """Return a call of a method, or its property."""
    function = method(name, is_property)
    return CallForm(f"Tensor.{name}", sample, function, lambda _, arguments: method_text(name, is_property, arguments))


def attribute(module: Any, name: str) -> Any:
    """Return the attribute with a dotted name in a module."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


def method(name: str, is_property: bool) -> Callable[..., Any]:
    """Return a function that calls the method of its first argument, or reads its property."""
    if is_property:
        return lambda tensor: getattr(tensor, name)
    return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)


def with_numpy_names(op: Record, sample: Sample) -> Iterator[Sample]:
    """Return the call with ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``.

    The grammar accepts them if ``dim`` can be omitted, that is, if no other required parameter follows.
    """
    names = [p.name for p in op.schema.parameters]
    given = arguments_of(op, sample)
    told = [name for name, other in NUMPY_NAMES.items() if name in given and name in names and other not in names]
    told = [name for name in told if may_be_left_out(op.function, name)]
    if not told or any(p.variadic for p in op.schema.parameters):
        return
    first = min(names.index(name) for name in told)
    renamed = {NUMPY_NAMES[name] if name in told else name: value for name, value in given.items()
               if names.index(name) >= first or name in sample.kwargs}  # fmt: skip
    yield replace(sample, args=sample.args[:first], kwargs=renamed)


def may_be_left_out(function: Callable[..., Any], name: str) -> bool:
    """Return whether a compiled function has a default for a parameter."""
    code = function.__code__
    optional = code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) : code.co_argcount]
    return name in optional or name in (function.__kwdefaults__ or {})


# -- factories --------------------------------------------------------------------------------------------------------
OTHER: Final = {"float32": "float64", "float64": "float32", "int64": "int32", "int32": "int64",
                "complex64": "complex128", "complex128": "complex64"}  # fmt: skip
"""Another dtype of the same category, which factories support too."""


@callable_property("factory", of_callable(1, (CONTIGUOUS,), when=lambda op: bool(op.entry.factory)))
def factory(context: Context, op: CallableRecord, d: dtype, layout: str) -> float | None:
    """``dtype``, ``device`` and the keywords of factories work as for any factory, if this one has them."""
    served = {keyword.partition("=")[0] for keyword in factory_keywords(op.entry)}
    served |= {p.name for p in op.schema.parameters}
    for sample in context.each(op, d, layout):
        result = computed(context, op, sample, layout)
        want = split(sample, result, context.reference)
        _keywords(context, op, sample, layout, result, want, served)
        for target in (
            targets(tuple(result.shape), result.dtype, TRANSPOSED, context.instance) if "out" in served else ()
        ):
            back = _call(context, op, sample, layout, {"out": target})
            if back is not target:
                raise Failure("out=: the result is not the tensor that was given", sample, layout)
            if not equal_results(split(sample, back, context.reference), want):
                raise Failure("out=: the tensor holds something else than the function returns", sample, layout)
    return None


def _keywords(
    context: Context, op: CallableRecord, sample: Sample, layout: str, result: Tensor, want: Results, served: set[str]
) -> None:
    given = arguments_of(op, sample)
    plain: dict[str, Any] = {"layout": cd.strided, "pin_memory": False}
    changes: list[dict[str, Any]] = [{name: value for name, value in plain.items() if name in served}]
    if result.is_floating_point() or result.is_complex():
        changes.append({"requires_grad": True})
    if "dtype" in served - set(given):
        changes.append({"dtype": result.dtype})
        other = BY_NAME.get(OTHER.get(result.dtype.name, ""))
        if other is not None and context.computes(other):
            changes.append({"dtype": other})
    if "device" in served - set(given):
        changes += [{"device": HERE}, {"device": context.reference.device}]
    for keywords in changes:
        words = ", ".join(f"{name}={value}" for name, value in keywords.items())
        try:
            (tensor,) = tensors_in(_call(context, op, sample, layout, keywords))
        except TypeError:
            if tuple(arrays([sample.args, dict(sample.kwargs)])) and {"dtype", "device"} & set(keywords):
                continue  # the tensor arguments decide, and the keyword is refused
            raise
        if tensor.requires_grad is not keywords.get("requires_grad", False) or not tensor.is_leaf:
            raise Failure(f"{words}: requires_grad is {tensor.requires_grad}", sample, layout)
        # Without the keyword, the device of the plain call: frombuffer shares the host's memory on every device.
        where = keywords.get("device", result.device)
        where = context.device if where is HERE else where
        if tensor.device != where or tensor.dtype is not keywords.get("dtype", result.dtype):
            raise Failure(f"{words}: the result is {tensor.dtype.name} on {tensor.device}", sample, layout)
        same = tensor.dtype is result.dtype and where == result.device  # elsewhere other bits may come out
        if same and not equal_results(split(sample, tensor.detach(), context.reference), want):
            raise Failure(f"{words}: other values come out", sample, layout)


def _call(context: Context, op: CallableRecord, sample: Sample, layout: str, keywords: dict[str, Any]) -> Any:
    args, kwargs = placed([sample.args, dict(sample.kwargs)], layout, context.instance)
    return called(op, args, {**kwargs, **keywords}, context.instance)
