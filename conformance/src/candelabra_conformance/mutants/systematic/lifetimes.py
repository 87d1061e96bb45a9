"""Faults of time: a kernel that computes when its result is read, from what its inputs are then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from candelabra.backend import Kernel
from candelabra.library import Operator

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of
from candelabra_conformance.mutants.systematic.parameters import operands_of
from candelabra_conformance.mutants.systematic.switch import Fault, Switch, Wrong


class Late(Image):
    """A result that is computed at its first use."""

    __slots__ = ("_compute", "_computed")

    def __init__(self, due: Image, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._computed: Any = None
        self.index, self.memory, self.shape = due.index, due.memory, due.shape

    @property
    def inner(self) -> Any:
        """The reference's payload."""
        if self._compute is not None:
            self._computed, self._compute = self._compute(), None
        return self._computed


def of_lifetimes(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield the fault of a kernel that reads its inputs too late."""
    if operands_of(record):
        yield Fault(name, "computed when it is read", _late(switch))


def _late(switch: Switch) -> Wrong:
    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due = right(*args)
        images = due if isinstance(due, tuple) else (due,)
        late = tuple(Late(image, _again(switch, mirror, right, args, image, i)) for i, image in enumerate(images))
        return late if isinstance(due, tuple) else late[0]

    return wrong


def _again(
    switch: Switch, mirror: Mirror, right: Kernel, args: tuple[Any, ...], due: Image, position: int
) -> Callable[[], Any]:
    """Return a function that computes one result. If the call raises by now, it returns the correct one."""

    def compute() -> Any:
        try:
            out = right(*args)
        except Exception:
            return due.inner
        image = out[position] if isinstance(out, tuple) else out
        if image.shape != due.shape or array_of(mirror, image).tobytes() == array_of(mirror, due).tobytes():
            return due.inner
        switch.differs()
        return image.inner

    return compute
