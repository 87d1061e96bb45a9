"""How users call a public name: as a function, as a method or property of Tensor, with NumPy's names of arguments, with
the keywords of factories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import Operator, entry_named

from candelabra_conformance.calling import called, split, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.program import Program, argument_texts, method_text, spelled
from candelabra_conformance.properties.axes import of_callable, some
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.forms import targets
from candelabra_conformance.properties.registry import callable_property, operator_property
from candelabra_conformance.properties.value import agree, made
from candelabra_conformance.records import CallableRecord, Record, arguments_of
from candelabra_conformance.samples.sample import HERE, Sample, arrays
from candelabra_conformance.transport import Array

NUMPY_NAMES: Final = {"dim": "axis", "keepdim": "keepdims"}
"""What NumPy calls a parameter; the grammar accepts both."""
SEED: Final = 20
"""Of the devices' generators before each call: ``svd_lowrank`` starts from random numbers."""
FEW: Final = 3
"""So many samples of an operator are called in every form."""
Results = tuple[tuple[Array, ...], tuple[Any, ...]]


@operator_property("forms", some(1), of_callable(1, (CONTIGUOUS,)))
def forms(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every function and every method of a public name gives the same bits, and so does a call with NumPy's names.

    A method whose name ends in ``_`` returns the tensor that it wrote to.
    """
    samples = list(context.each(op, d, layout))
    for found in samples[:FEW] if isinstance(op, Operator) else samples:
        context.current = (found, layout)
        cd.manual_seed(SEED)
        want = split(found, made(context, op, found, layout), context.reference)
        for way in ways(op, found):
            args, kwargs = placed([way.call.args, dict(way.call.kwargs)], layout, context.instance)
            cd.manual_seed(SEED)
            result = called(op, args, kwargs, context.instance, way.function)
            if isinstance(op, CallableRecord) and op.writes and result is not args[0]:
                raise Failure(f"{way.words}: the result is not the tensor that was given", found, layout)
            got = split(found, result, context.reference)
            if not alike(got, want) and not _by_chance(context, op, d, found, layout, got):
                raise Failure(f"{way.words} gives something else than the function", found, layout, form=way.text)
    return None


def alike(a: Results, b: Results) -> bool:
    """Whether two results are equal to the bit, in the same dtypes."""
    if len(a[0]) != len(b[0]) or not _equal(a[1], b[1]):
        return False
    return all(x.dtype == y.dtype and same(x, y) for x, y in zip(a[0], b[0], strict=True))


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))


def _by_chance(context: Context, op: Record, d: dtype, found: Sample, layout: str, got: Results) -> bool:
    """Whether operators of the device may give other bits from call to call; then the values have to be right."""
    if not context.instance.capabilities.nondeterministic:
        return False
    agree(context, op, d, found, layout, got[0])
    return True


# -- the ways to call a name ------------------------------------------------------------------------------------------
class Way(NamedTuple):
    """One way to call something: in words, the call, the function, and the text of the call in a program."""

    words: str
    call: Sample
    function: Callable[..., Any]
    text: Callable[[Program, list[str]], str]


def ways(op: Record, found: Sample) -> Iterator[Way]:
    """Each way to call a sample other than the record's own function."""
    entry: Any = op.entry if isinstance(op, CallableRecord) else op
    public: Any = entry_named(entry.public_name)
    if public is entry and entry.is_function:
        for name in (entry.public_name, *entry.aliases):
            yield function_way(name, found)
    if found.args and isinstance(found.args[0], np.ndarray):
        for name, form in entry.methods().items():
            held: Any = entry_named(f"Tensor.{name}")
            if form == "function" and held is entry:
                yield method_way(name, entry.is_property, found)
    for call in with_numpy_names(op, found):
        yield numpy_way(op, call)


def numpy_way(op: Record, call: Sample) -> Way:
    """A call with NumPy's names of arguments."""
    names = ", ".join(f"{name}=" for name in sorted(set(call.kwargs) & set(NUMPY_NAMES.values())))
    return Way(names, call, op.function, lambda p, _: spelled(op, argument_texts(p, op, call.args, call.kwargs)))


def function_way(name: str, found: Sample) -> Way:
    """A call of a public function."""
    return Way(
        f"candelabra.{name}", found, attribute(cd, name), lambda _, arguments: f"cd.{name}({', '.join(arguments)})"
    )


def method_way(name: str, is_property: bool, found: Sample) -> Way:
    """A call of a method, or its property."""
    function = method(name, is_property)
    return Way(f"Tensor.{name}", found, function, lambda _, arguments: method_text(name, is_property, arguments))


def attribute(module: Any, name: str) -> Any:
    """What stands under a dotted name in a module."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


def method(name: str, is_property: bool) -> Callable[..., Any]:
    """A function that calls the method of its first argument, or reads its property."""
    if is_property:
        return lambda tensor: getattr(tensor, name)
    return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)


def with_numpy_names(op: Record, found: Sample) -> Iterator[Sample]:
    """The call with ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``, where it gives them.

    The grammar adds them where ``dim`` may be left out for it: where no other required parameter follows.
    """
    names = [p.name for p in op.schema.parameters]
    given = arguments_of(op, found)
    told = [name for name, other in NUMPY_NAMES.items() if name in given and name in names and other not in names]
    told = [name for name in told if may_be_left_out(op.function, name)]
    if not told or any(p.variadic for p in op.schema.parameters):
        return
    first = min(names.index(name) for name in told)
    renamed = {NUMPY_NAMES[name] if name in told else name: value for name, value in given.items()
               if names.index(name) >= first or name in found.kwargs}  # fmt: skip
    yield replace(found, args=found.args[:first], kwargs=renamed)


def may_be_left_out(function: Callable[..., Any], name: str) -> bool:
    """Whether a compiled function has a default for a parameter."""
    code = function.__code__
    optional = code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) : code.co_argcount]
    return name in optional or name in (function.__kwdefaults__ or {})


# -- factories --------------------------------------------------------------------------------------------------------
OTHER: Final = {"float32": "float64", "float64": "float32", "int64": "int32", "int32": "int64",
                "complex64": "complex128", "complex128": "complex64"}  # fmt: skip
"""Another dtype of the same kind, which every factory that makes the one makes too."""


@callable_property("factory", of_callable(1, (CONTIGUOUS,), when=lambda op: op.entry.factory))
def factory(context: Context, op: CallableRecord, d: dtype, layout: str) -> float | None:
    """``dtype``, ``device``, ``requires_grad``, ``layout``, ``pin_memory`` and ``out`` are served as of any factory."""
    for found in context.each(op, d, layout):
        result = made(context, op, found, layout)
        want = split(found, result, context.reference)
        _keywords(context, op, found, layout, result, want)
        for target in targets(tuple(result.shape), result.dtype, context.instance):
            back = _call(context, op, found, layout, {"out": target})
            if back is not target:
                raise Failure("out=: the result is not the tensor that was given", found, layout)
            if not alike(split(found, back, context.reference), want):
                raise Failure("out=: the tensor holds something else than the function returns", found, layout)
    return None


def _keywords(context: Context, op: CallableRecord, found: Sample, layout: str, result: Tensor, want: Results) -> None:
    given = arguments_of(op, found)
    changes: list[dict[str, Any]] = [{"layout": cd.strided, "pin_memory": False}]
    if result.is_floating_point() or result.is_complex():
        changes.append({"requires_grad": True})
    if "dtype" not in given:
        changes.append({"dtype": result.dtype})
        other = BY_NAME.get(OTHER.get(result.dtype.name, ""))
        if other is not None and context.computes(other):
            changes.append({"dtype": other})
    if "device" not in given:
        changes += [{"device": HERE}, {"device": context.reference.device}]
    for keywords in changes:
        words = ", ".join(f"{name}={value}" for name, value in keywords.items())
        try:
            (tensor,) = tensors_in(_call(context, op, found, layout, keywords))
        except TypeError:
            if tuple(arrays([found.args, dict(found.kwargs)])) and {"dtype", "device"} & set(keywords):
                continue  # the tensors that are given decide, and a keyword beside them is refused
            raise
        if tensor.requires_grad is not keywords.get("requires_grad", False) or not tensor.is_leaf:
            raise Failure(f"{words}: requires_grad is {tensor.requires_grad}", found, layout)
        where = context.device if keywords.get("device", HERE) is HERE else keywords["device"]
        if tensor.device != where or tensor.dtype is not keywords.get("dtype", result.dtype):
            raise Failure(f"{words}: the result is {tensor.dtype.name} on {tensor.device}", found, layout)
        same = tensor.dtype is result.dtype and where == context.device  # elsewhere other bits may come out
        if same and not alike(split(found, tensor.detach(), context.reference), want):
            raise Failure(f"{words}: other values come out", found, layout)


def _call(context: Context, op: CallableRecord, found: Sample, layout: str, keywords: dict[str, Any]) -> Any:
    args, kwargs = placed([found.args, dict(found.kwargs)], layout, context.instance)
    return called(op, args, {**kwargs, **keywords}, context.instance)
