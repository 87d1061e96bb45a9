"""A kernel whose fault can be changed, and what the faults know of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import dtype

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of
from candelabra_conformance.mutants.storage import Steps, each_image, overwrite

Wrong = Callable[[Mirror, Kernel, tuple[Any, ...]], Any]
"""Returns the result of the broken kernel, given the correct kernel and the arguments."""


class CorrectCall:
    """A call of a correct kernel: the payloads among its arguments, and its results."""

    def __init__(self, mirror: Mirror, args: tuple[Any, ...], results: Sequence[Image]) -> None:
        self.mirror: Final = mirror
        self.args: Final = args
        self.results: Final = results

    @cached_property
    def images(self) -> tuple[Image, ...]:
        """The payloads among the arguments, also inside lists, in order."""
        return images_of(self.args)

    @cached_property
    def layouts(self) -> tuple[tuple[Steps, Steps, int], ...]:
        """Shape, strides and offset of each payload among the arguments."""
        return tuple((image.shape, *self.mirror.reference.layout(image.inner)) for image in self.images)

    @cached_property
    def dtypes(self) -> frozenset[dtype]:
        """The dtypes of arguments and results."""
        return frozenset(self.mirror.dtype_of(image) for image in (*self.images, *self.results))


def images_of(value: Any) -> tuple[Image, ...]:
    """Return the payloads in an argument, also inside lists, in order."""
    found: list[Image] = []
    each_image(value, found.append)
    return tuple(found)


Reached = Callable[[CorrectCall], bool]
"""Returns whether a fault can make a difference to a call. It may be true without a difference, never the reverse."""


def always(call: CorrectCall) -> bool:
    """Every call can show the fault."""
    return True


@dataclass(frozen=True)
class Fault:
    """One systematic fault of one kernel."""

    kernel: str
    name: str
    wrong: Wrong
    reached: Reached = always
    only_if_reached: bool = False
    """Whether there is no such mutant of a kernel whose own cases never reach it: the kernel does not have the dtype,
    its results always have dims, or its operands never have different strides."""
    matters: Wrong | None = None
    """What the fault does to the calls of a kernel that it never changed, with other numbers than the samples': if that
    changes no result either, the kernel does not depend on what the fault ignores, and there is no such mutant."""
    parameter: int | None = None
    """The position of the parameter that is ignored. There is no such mutant of a kernel that serves one value of the
    parameter and declines the calls with others."""
    of_family: bool = False
    """Whether the mutant has the fault in all kernels of the operator's family, any of which may be caught. It is so
    for limits beyond 65,000, which one operator of each family exceeds, since such samples take time."""

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
        self.watched: list[Fault] = []
        """While there is no fault, those whose conditions every call is compared with."""
        self.reached: set[str] = set()
        """The ids of the watched faults to which a call could make a difference."""
        self.served: dict[int, set[str]] = {}
        """The values of each argument that is no payload, in the calls that the kernel served while watched."""
        self.declined: dict[int, set[str]] = {}
        """The same of the calls that it declined."""

    def __call__(self, *args: Any) -> Any:
        if self.fault is None:
            out = self.right(*args)
            if self.watched:
                self._note(args, self.declined if out is NotImplemented else self.served)
                if out is not NotImplemented:
                    self._watch(args, out)
            return out
        try:
            return self.fault.wrong(self.mirror, self._served, args)
        except Refused:
            self.differed = True
            raise
        except KernelDeclined:
            return NotImplemented

    def _served(self, *args: Any) -> Any:
        """Call the correct kernel for a fault. Raises :class:`KernelDeclined` if it declines."""
        out = self.right(*args)
        if out is NotImplemented:
            raise KernelDeclined
        return out

    def _watch(self, args: tuple[Any, ...], out: Any) -> None:
        call = CorrectCall(self.mirror, args, images_of(out))
        self.reached |= {f.id for f in self.watched if f.id not in self.reached and f.reached(call)}

    def _note(self, args: tuple[Any, ...], values: dict[int, set[str]]) -> None:
        for position, value in enumerate(args):
            if not images_of(value):
                values.setdefault(position, set()).add(repr(value))

    def serves_one(self, position: int) -> bool:
        """Return whether the kernel declines every call in which an argument has another value than one."""
        served = self.served.get(position, set())
        return len(served) == 1 and bool(self.declined.get(position, set()) - served)

    def differs(self) -> None:
        """Record that a fault gave another result than the correct one."""
        self.differed = True


class KernelDeclined(Exception):
    """Raised in a fault by a correct kernel that declines the call, so that the fault has no result to change."""


class Refused(RuntimeError):
    """Raised by a fault where the correct kernel would not raise."""


Change = Callable[[Array], Array]
"""Changes a copy of a result, also in place."""


def of_result(switch: Switch, change: Change) -> Wrong:
    """Return a fault that changes each array of the result."""

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


def of_arguments(switch: Switch, *changes: Callable[[Mirror, Image], Image]) -> Wrong:
    """Return a fault that calls the correct kernel with other payloads, by the first change that makes a difference:
    what one reads may be no index, or no probability."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due = right(*args)
        for change in changes:
            changed = each_image(args, partial(change, mirror))
            if any(a is not b for a, b in zip(images_of(changed), images_of(args), strict=True)):
                out = instead(switch, mirror, right, due, changed)
                if out is not due:
                    return out
        return due

    return wrong


def instead(switch: Switch, mirror: Mirror, right: Kernel, due: Any, changed: tuple[Any, ...]) -> Any:
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


def written_with(switch: Switch, change: Change) -> Wrong:
    """Return a fault of an in-place kernel that changes what it has written."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        right(*args)
        array = array_of(mirror, args[0])
        changed = np.asarray(change(array.copy()))
        if changed.tobytes() != array.tobytes():
            switch.differs()
            overwrite(mirror, args[0], changed)
        return args[0]

    return wrong


def another(value: Array) -> Array:
    """Return another value of the same dtype for each element: finite if it was not."""
    if value.dtype.kind == "b":
        return ~value
    if value.dtype.kind in "iu":
        return np.asarray(value + value.dtype.type(1))
    finite = np.isfinite(value)
    changed = np.where(finite, value + np.abs(value) + value.dtype.type(1), np.zeros_like(value))
    return np.asarray(changed.astype(value.dtype))
