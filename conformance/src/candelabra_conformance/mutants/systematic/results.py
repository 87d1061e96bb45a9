"""Faults of the result: single elements, signs, digits, results without dims or elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import float32
from candelabra.library import Operator

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of
from candelabra_conformance.mutants.systematic.switch import (
    Change,
    CorrectCall,
    Fault,
    Reached,
    Refused,
    Switch,
    Wrong,
    another,
    of_result,
    written_with,
)


def _element(position: int, least: int) -> Change:
    def change(array: Array) -> Array:
        if array.size >= least:
            flat = array.reshape(-1)
            flat[position] = another(flat[position : position + 1 or None])[0]
        return array

    return change


def _negated(array: Array) -> Array:
    if array.dtype.kind == "b":
        return np.asarray(~array)
    return np.asarray(0 - array).astype(array.dtype) if array.dtype.kind in "iu" else -array


def _half_the_digits(name: str, digits: int) -> Change:
    def change(array: Array) -> Array:
        if array.dtype.name != name:
            return array
        mantissa, exponent = np.frexp(array)
        halved = np.ldexp(np.rint(mantissa * 2.0**digits) / 2.0**digits, exponent)
        return np.where(np.isfinite(array), halved, array).astype(array.dtype)

    return change


def _no_dims(array: Array) -> Array:
    return array if array.ndim else another(array)


def _one_element(array: Array) -> Array:
    return another(array) if array.size == 1 and array.ndim else array


def _of_size(least: int) -> Reached:
    return lambda call: any(elements(out.shape) >= least for out in call.results)


def _of_dtype(name: str) -> Reached:
    return lambda call: any(call.mirror.dtype_of(out).name == name for out in call.results)


def elements(shape: tuple[int, ...]) -> int:
    """Return the number of elements."""
    size = 1
    for n in shape:
        size *= n
    return size


def _without_dims(call: CorrectCall) -> bool:
    return any(not out.shape for out in call.results)


def _of_one(call: CorrectCall) -> bool:
    return any(out.shape and elements(out.shape) == 1 for out in call.results)


RESULTS: Final[dict[str, tuple[Change, Reached]]] = {
    "last element": (_element(-1, 1), _of_size(1)),
    "first element of several": (_element(0, 2), _of_size(2)),
    "last element beyond 16": (_element(-1, 17), _of_size(17)),
    "negated": (_negated, _of_size(1)),
    "float64 with half its digits": (_half_the_digits("float64", 26), _of_dtype("float64")),
    "float32 with half its digits": (_half_the_digits("float32", 12), _of_dtype("float32")),
    "no dims": (_no_dims, _without_dims),
    "one element": (_one_element, _of_one),
}
"""Faults of the result: the function that changes each of its arrays, and the calls that it can change."""
DIGITS: Final = ("float64 with half its digits", "float32 with half its digits")
"""Those that do not apply to integers and bools."""


def of_results(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield the faults of a kernel's results."""
    if not record.view:
        for words, (change, reached) in RESULTS.items():
            if words not in DIGITS or any(result(float32).is_floating_point for result in record.results):
                rare = words in (*DIGITS, "no dims")
                yield Fault(name, words, of_result(switch, change), reached, only_if_reached=rare)
    yield Fault(name, "no elements refused", _no_elements(switch), _empty)


def _empty(call: CorrectCall) -> bool:
    return any(0 in out.shape for out in call.results)


def _no_elements(switch: Switch) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        out = right(*args)
        if any(0 in o.shape for o in (out if isinstance(out, tuple) else (out,))):
            switch.differs()
            raise Refused("a launch over no elements")
        return out

    return wrong


# -- in place ---------------------------------------------------------------------------------------------------------
def of_targets(name: str, switch: Switch) -> Iterator[Fault]:
    """Yield the faults of what an in-place kernel writes."""
    yield Fault(name, "not written", _not_written(switch))
    yield Fault(name, "last element", written_with(switch, RESULTS["last element"][0]), _of_size(1))


def _not_written(switch: Switch) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        target = args[0]
        before = array_of(mirror, target)
        copy = payload_of(mirror, before, target.index)
        right(copy, *args[1:])
        if array_of(mirror, copy).tobytes() != before.tobytes():
            switch.differs()
        return target

    return wrong
