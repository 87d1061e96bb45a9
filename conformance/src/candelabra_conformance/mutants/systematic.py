"""Systematic mutants: the same few faults in every kernel, and every parameter ignored, one at a time.

They are computed from the kernel table. If one survives, either the samples of its operator or a check is insufficient;
it is the samples if the mutant never gave other bits than the correct kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import float32
from candelabra.library import (
    DEVICE,
    DIM,
    DIMS,
    DTYPE,
    OPERATORS,
    OPTIONAL,
    PLAIN,
    REQUIRED,
    SHAPE,
    Operator,
    Parameter,
)

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, payload_of
from candelabra_conformance.mutants.storage import as_if_contiguous, each_image, is_contiguous

Wrong = Callable[[Mirror, Kernel, tuple[Any, ...]], Any]
"""Returns the result of the broken kernel, given the correct kernel and the arguments."""
FIXED: Final = (PLAIN, DIM, DIMS, SHAPE, DTYPE, OPTIONAL)
"""Kinds of parameters that can be ignored: all those that are not tensors."""


@dataclass(frozen=True)
class Fault:
    """One systematic fault of one kernel."""

    kernel: str
    name: str
    wrong: Wrong

    @property
    def id(self) -> str:
        """Return the id, such as ``softmax: last element``."""
        return f"{self.kernel}: {self.name}"


class Switch:
    """A kernel whose fault can be changed, and which records whether the fault made a difference."""

    def __init__(self, mirror: Mirror, right: Kernel) -> None:
        self.mirror, self.right = mirror, right
        self.fault: Fault | None = None
        self.differed = False

    def __call__(self, *args: Any) -> Any:
        if self.fault is None:
            return self.right(*args)
        try:
            out = self.fault.wrong(self.mirror, self.right, args)
        except _Refused:
            self.differed = True
            raise
        return out

    def differs(self) -> None:
        """Record that a fault gave another result than the correct one."""
        self.differed = True


class _Refused(RuntimeError):
    """Raised by a fault where the correct kernel would not raise."""


# -- results ----------------------------------------------------------------------------------------------------------
def _other(value: Any) -> Any:
    """Return another value of the same dtype for each element: finite if it was not."""
    if value.dtype.kind == "b":
        return ~value
    if value.dtype.kind in "iu":
        return value + value.dtype.type(1)
    finite = np.isfinite(value)
    return np.where(finite, value + np.abs(value) + value.dtype.type(1), np.zeros_like(value)).astype(value.dtype)


def _element(position: int, least: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        if array.size >= least:
            flat = array.reshape(-1)
            flat[position] = _other(flat[position : position + 1 or None])[0]
        return array

    return change


def _negated(array: Any) -> Any:
    return (
        ~array
        if array.dtype.kind == "b"
        else np.asarray(0 - array).astype(array.dtype)
        if array.dtype.kind in "iu"
        else -array
    )


def _half_the_digits(name: str, digits: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        if array.dtype.name != name:
            return array
        mantissa, exponent = np.frexp(array)
        return np.where(
            np.isfinite(array), np.ldexp(np.rint(mantissa * 2.0**digits) / 2.0**digits, exponent), array
        ).astype(array.dtype)

    return change


RESULTS: Final[dict[str, Callable[[Any], Any]]] = {
    "last element": _element(-1, 1),
    "first element of several": _element(0, 2),
    "last element beyond 16": _element(-1, 17),
    "negated": _negated,
    "float64 with half its digits": _half_the_digits("float64", 26),
    "float32 with half its digits": _half_the_digits("float32", 12),
    "no dims": lambda array: array if array.ndim else _other(array),
    "one element": lambda array: _other(array) if array.size == 1 and array.ndim else array,
}
"""Faults of the result: the function that changes each of its arrays."""
NO_FAULT: Final = {"linalg_qr: negated": "(-Q)(-R) is a decomposition as well"}
"""Those that break nothing, and the reason."""
DIGITS: Final = tuple(change for words, change in RESULTS.items() if words.endswith("digits"))
"""Those that do not apply to integers and bools."""


def _of_result(switch: Switch, change: Callable[[Any], Any]) -> Wrong:
    def one(mirror: Mirror, out: Image) -> Image:
        array = array_of(mirror, out)
        with np.errstate(all="ignore"):
            changed = np.asarray(change(array.copy()))
        if changed.tobytes() == array.tobytes():
            return out
        switch.differs()
        return payload_of(mirror, changed, out.index)

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        out = right(*args)
        return tuple(one(mirror, o) for o in out) if isinstance(out, tuple) else one(mirror, out)

    return wrong


def _no_elements(switch: Switch) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        out = right(*args)
        if any(0 in o.shape for o in (out if isinstance(out, tuple) else (out,))):
            switch.differs()
            raise _Refused("a launch over no elements")
        return out

    return wrong


# -- arguments --------------------------------------------------------------------------------------------------------
def _strides_ignored(switch: Switch) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        def without_strides(image: Image) -> Image:
            return image if is_contiguous(mirror, image) else as_if_contiguous(mirror, image)

        return _instead(switch, mirror, right, right(*args), each_image(args, without_strides))

    return wrong


def _parameter_ignored(switch: Switch, position: int, p: Parameter) -> Wrong:
    """Return a fault that replaces the parameter's value by the default, by that of the first call, or by that of the
    first call with tensors of these shapes (as a cache of compiled kernels does whose key lacks the parameter)."""
    pinned: dict[Any, Any] = {} if p.default is REQUIRED else {None: p.default}
    if p.kind == OPTIONAL:
        pinned = {None: None}

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        shapes: list[Any] = []
        each_image(args, lambda image: shapes.append((image.shape, mirror.dtype_of(image))))
        due = right(*args)
        for key in (None, tuple(shapes)):
            value = pinned.setdefault(key, args[position])
            out = _instead(switch, mirror, right, due, (*args[:position], value, *args[position + 1 :]))
            if out is not due:
                return out
        return due

    return wrong


def _instead(switch: Switch, mirror: Mirror, right: Kernel, due: Any, changed: tuple[Any, ...]) -> Any:
    """Return the result of the call with changed arguments. If that raises, so that no error reveals the fault, or
    gives the same result, return the correct result."""
    try:
        out = right(*changed)
    except Exception:
        return due
    pairs = zip(out, due, strict=True) if isinstance(due, tuple) else [(out, due)]
    if all(a.shape == b.shape and array_of(mirror, a).tobytes() == array_of(mirror, b).tobytes() for a, b in pairs):
        return due
    switch.differs()
    return out


# -- in place ---------------------------------------------------------------------------------------------------------
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


def _written_with(switch: Switch, change: Callable[[Any], Any]) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        right(*args)
        array = array_of(mirror, args[0])
        changed = np.asarray(change(array.copy()))
        if changed.tobytes() != array.tobytes():
            switch.differs()
            mirror.reference.copy_(args[0].inner, payload_of(mirror, changed, args[0].index).inner)
        return args[0]

    return wrong


def faults(name: str, switch: Switch) -> Iterator[Fault]:
    """Yield the faults of a kernel; ``name`` is that of a kernel table."""
    if name not in OPERATORS:
        yield Fault(name, "not written", _not_written(switch))
        yield Fault(name, "last element", _written_with(switch, RESULTS["last element"]))
        return
    record: Operator[..., Any] = OPERATORS[name]
    if not record.view:
        for words, change in RESULTS.items():
            if f"{name}: {words}" in NO_FAULT:
                continue
            if change not in DIGITS or any(result(float32).is_floating_point for result in record.results):
                yield Fault(name, words, _of_result(switch, change))
    yield Fault(name, "no elements refused", _no_elements(switch))
    if any(p.kind not in (*FIXED, DEVICE) for p in record.schema.parameters):
        yield Fault(name, "strides ignored", _strides_ignored(switch))
    for position, p in enumerate(record.schema.parameters):
        if p.kind in FIXED:
            yield Fault(name, f"{p.name} ignored", _parameter_ignored(switch, position, p))


def kernels_of(operator: str, mirror: Mirror) -> list[str]:
    """Return the names in the table that serve an operator: its own and the in-place one."""
    return [name for name in (operator, operator + "_") if name in mirror.table]
