"""The tests of ``opcheck`` by name. Each takes the subject and raises an exception if it fails or does not apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.autograd import no_grad

from candelabra_conformance.closeness import assert_close
from candelabra_conformance.context import NotApplicable
from candelabra_conformance.layouts import ALIASED, MEMORY, PLACEMENTS, REPEATING, fitted, repeated
from candelabra_conformance.opchecking.derivatives import body, gradient, gradient2
from candelabra_conformance.opchecking.subject import CheckedCall, given_tensors
from candelabra_conformance.opchecking.verdicts import Broken
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.samples.sample import Sample, arrays
from candelabra_conformance.shadowing.answer import answer
from candelabra_conformance.transport import Array, to_device, to_host

RUNS: Final = 3


def inputs(subject: CheckedCall) -> None:
    """Check that no argument changes unless the function returns it, as an in-place form does."""
    args, kwargs = subject.built()
    given = given_tensors([args, kwargs])
    before = [(to_host(t), t._version) for t in given]
    made = subject.run(args, kwargs)
    returned = [t for t in given if any(t is m for m in made)]
    for place, (tensor, (values, version)) in enumerate(zip(given, before, strict=True)):
        after = to_host(tensor)
        changed = values.tobytes() != after.tobytes()
        if any(tensor is r for r in returned) and not changed:
            continue
        if changed and not any(tensor is r for r in returned):
            raise Broken(f"tensor {place} of the arguments was written to, but is not the result")
        if changed and tensor._version == version:
            raise Broken(f"tensor {place} of the arguments was written to, but its version counter did not change")


def result(subject: CheckedCall) -> None:
    """Check that the results are tensors on the device, with the shapes and dtypes of the record's rules."""
    args, kwargs = subject.built()
    made = subject.run(args, kwargs)
    if not made:
        raise Broken("the result contains no tensor")
    for place, tensor in enumerate(made):
        held = tensor._instance.backend.dtype_of(tensor._payload)
        if held is not tensor.dtype:
            raise Broken(f"result {place}: the payload's dtype is {held.name}, the tensor's {tensor.dtype.name}")
        if tensor._instance is not subject.instance:
            raise Broken(f"result {place} is on {tensor.device}, not on {subject.instance.device}")
    if subject.record is not None:
        _by_the_rules(subject, args, kwargs, made)


def _by_the_rules(subject: CheckedCall, args: Any, kwargs: Any, results: tuple[Tensor, ...]) -> None:
    from candelabra.dtypes import ALL
    from candelabra.library import canonical, common_dtype

    record = subject.record
    assert record is not None
    given = canonical(record.form("function"), args, kwargs)
    due = record.rule(record, given)
    shapes = due if record.schema.result is not None else (due,)
    named = record.schema.named("dtype")
    compute = common_dtype(record, given) if given_tensors([args, kwargs]) else ALL[0]
    for place, (tensor, rule) in enumerate(zip(results, record.results, strict=True)):
        if due is not None and shapes[place] is not None and tuple(tensor.shape) != tuple(shapes[place]):
            raise Broken(
                f"result {place} has shape {list(tensor.shape)}, the rule {record.rule.__name__!r} says "
                f"{list(shapes[place])}"
            )
        if named is None and tensor.dtype is not rule(compute):
            raise Broken(
                f"result {place} is {tensor.dtype.name}; computed in {compute.name}, the record says "
                f"{rule(compute).name}"
            )


def aliasing(subject: CheckedCall) -> None:
    """Check that a result which shares memory with an argument is a view of it, and that a record's view is one."""
    args, kwargs = subject.built()
    given = given_tensors([args, kwargs])
    made = [t for t in subject.run(args, kwargs) if not any(t is g for g in given)]
    if not made or not any(t.numel() for t in made):
        raise NotApplicable("all results are arguments, or have no elements")
    if subject.instance.immutable:
        raise NotApplicable(f"arrays of {subject.instance.device} never change")
    for place, tensor in enumerate(made):
        cells = [g for g in given if g._counter is tensor._counter]
        if subject.record is not None and subject.record.view and not cells:
            raise Broken(f"result {place}: the record declares a view, but the result has its own version counter")
        if _shares_memory(tensor, given) and not cells:
            raise Broken(
                f"result {place} shares memory with an argument, but is not a view of it: autograd cannot detect writes"
            )


def _shares_memory(tensor: Tensor, arguments: list[Tensor]) -> bool:
    """Return whether a write into the tensor changes one of the others."""
    if not tensor.numel() or any(
        step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    ):
        return False
    before = [to_host(g) for g in arguments]
    kept = to_host(tensor)
    with no_grad():
        tensor.detach().copy_(to_device(_other(kept), tensor._instance))
    changed = any(to_host(g).tobytes() != b.tobytes() for g, b in zip(arguments, before, strict=True))
    with no_grad():
        tensor.detach().copy_(to_device(kept, tensor._instance))
    return changed


def _other(values: Array) -> Array:
    """Return an array of the same dtype in which every value is different."""
    if values.dtype.kind == "b":
        return ~values
    three, five = values.dtype.type(3), values.dtype.type(5)
    return np.asarray(np.where(np.asarray(values == three), five, three), values.dtype)


def inplace(subject: CheckedCall) -> None:
    """Check that a record's in-place form writes the function's result into the first argument and returns it."""
    record = subject.record
    if record is None or not record.inplace:
        raise NotApplicable("the operator has no record with an in-place form")
    args, kwargs = subject.built()
    want = subject.run(*subject.built())[0]
    target = args[0]
    if not isinstance(target, Tensor) or target.shape != want.shape or target.dtype is not want.dtype:
        raise NotApplicable("the result does not fit into the first argument")
    version = target._version
    back = record.form("inplace")(*args, **kwargs)
    if back is not target:
        raise Broken("the in-place form does not return its first argument")
    if target._version == version:
        raise Broken("the in-place form did not change the version counter")
    _agree(to_host(target), to_host(want), "the in-place form leaves other values")


def determinism(subject: CheckedCall) -> None:
    """Check that the same call returns the same bits."""
    if subject.name in subject.instance.capabilities.nondeterministic:
        raise NotApplicable(f"{subject.instance.device} declares the operator non-deterministic")
    first = [v.tobytes() for v in subject.values()]
    for _ in range(RUNS):
        if [v.tobytes() for v in subject.values()] != first:
            raise Broken("the second call with the same arguments returned different bits")


def layouts(subject: CheckedCall) -> None:
    """Check that the result does not depend on the memory layout of the arguments."""
    tried = 0
    for layout in MEMORY[1:]:
        call = _fitted(subject, layout)
        if call is None:
            continue
        try:
            plain = [to_host(t) for t in subject.run(*subject.built(call=call))]
        except Exception:  # equal rows may be an invalid argument: a matrix of them has no inverse
            continue
        tried += 1
        args, kwargs = subject.built(layout=layout, call=call)
        for got, want in zip([to_host(t) for t in subject.run(args, kwargs)], plain, strict=True):
            _agree(got, want, f"arguments laid out as {layout!r} give other values")
    if not tried:
        raise NotApplicable("no argument has enough dims for another memory layout")


def _fitted(subject: CheckedCall, layout: str) -> Sample | None:
    """Return the call with values that fit a layout, or None if no argument can have the layout."""
    if subject.record is not None:
        return fitted(subject.record, subject.call, layout)
    found = list(arrays((subject.call.args, dict(subject.call.kwargs))))
    least = PLACEMENTS[layout].dims if layout in PLACEMENTS else 1
    if layout == ALIASED or not any(a.ndim >= least for a in found):
        return None
    if layout not in REPEATING:
        return subject.call

    def fit(array: Array) -> Array:
        whole = array.ndim < least or not array.size or array.dtype.kind not in "fcV"
        return array if whole else repeated(array, layout)

    return with_arrays(subject.call, fit)


def devices(subject: CheckedCall) -> None:
    """Check that the values equal those of the reference, within the derived bounds of a record or the dtype's
    tolerances."""
    if subject.instance.backend is subject.reference.backend:
        raise NotApplicable(f"{subject.instance.device} is the reference; name another device")
    got = subject.values()
    if subject.record is None:
        for values, want in zip(got, subject.reference_values(), strict=True):
            _agree(values, want, f"{subject.instance.device} gives other values than the reference")
        return
    args, kwargs = subject.call.args, dict(subject.call.kwargs)
    expected = answer(subject.record, args, kwargs)
    for place, (values, d) in enumerate(zip(got, expected.dtypes, strict=True)):
        if values.shape != expected.own[place].shape:
            raise Broken(f"shape {list(values.shape)}, on the reference {list(expected.own[place].shape)}")
        bad = expected.wrong(place, values, d)
        if bad.any():
            _agree(values, expected.own[place], f"{subject.instance.device} gives other values than the reference")
            raise Broken(f"{int(bad.sum())} of {bad.size} values are further from the reference than the bound")


def _agree(got: Array, want: Array, words: str) -> None:
    try:
        assert_close(got, want)
    except AssertionError as error:
        raise Broken(f"{words}: {error}") from None


TESTS: Final[dict[str, Callable[[CheckedCall], None]]] = {
    "inputs": inputs, "result": result, "aliasing": aliasing, "inplace": inplace, "determinism": determinism,
    "layouts": layouts, "devices": devices, "gradient": gradient, "gradient2": gradient2, "body": body,
}  # fmt: skip
"""The tests in the order in which they run: the failure of an earlier test may explain that of a later one."""
