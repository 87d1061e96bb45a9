"""What a check is given: the device, the oracle, and the samples of the operator that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import candelabra as cd
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra.library import Instance, Operator, open_device, plugins

from candelabra_conformance.layouts import MEMORY, fitted
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.oracle import Oracle, as_given
from candelabra_conformance.perturbation import floating_of
from candelabra_conformance.records import Record
from candelabra_conformance.samples.gather import gathered, outlined
from candelabra_conformance.samples.registry import defined
from candelabra_conformance.samples.sample import KINDS, ORDINARY, HostArray, Sample, arrays
from candelabra_conformance.taking import refused

MAIN: Final = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "complex64", "bool")
"""The dtypes of which the first that a device computes in and an operator takes stands for all, where one must."""


class Failure(Exception):
    """A check that did not hold. ``sample`` and ``layout`` say on what; the reproducer is made of them."""

    def __init__(self, message: str, sample: Sample | None = None, layout: str = "", **details: Any) -> None:
        super().__init__(message)
        self.sample = sample
        self.layout = layout
        self.details = details


class NotApplicable(Exception):
    """There is nothing to check; the text says why."""


class Context:
    """One device under test. Not shared by threads: each worker has its own."""

    def __init__(self, device: str) -> None:
        self.instance: Final[Instance] = open_device(device)
        self.reference: Final[Instance] = open_device(plugins.reference_device())
        self.oracle: Final = Oracle(self.reference, self.instance)
        self.planning = False
        """While it is set, inputs are outlines: shapes and dtypes without values."""
        self.current: tuple[Sample | None, str] = (None, "")
        """The sample and the layout that a check is at: what an exception is about."""
        self._samples: dict[Any, list[Sample]] = {}
        self._operator: object = None

    @property
    def is_reference(self) -> bool:
        return self.instance.backend is self.reference.backend

    @property
    def device(self) -> cd.device:
        return self.instance.device

    # -- dtypes -------------------------------------------------------------------------------------------------------
    def computes(self, d: dtype) -> bool:
        """Whether the backend claims to compute in a dtype (integers and bools: to hold it is to compute in it)."""
        can = self.instance.capabilities
        return d in can.arithmetic or (d in can.storage and not d.is_floating_point and not d.is_complex)

    def dtypes(self, op: Record) -> list[dtype]:
        """The dtypes that an operator takes and the device claims, results included.

        Of a public callable, those that it has samples in.
        """
        able = [d for d in ALL if self.computes(d) and refused(op, d) is None and defined(op.name, d)]
        if not isinstance(op, Operator):
            return [d for d in able if self.samples(op, d)]
        storage = self.instance.capabilities.storage
        return [d for d in able if all(rule(op.promote(d)) in storage for rule in op.results)]

    def main_dtypes(self, op: Record, *, count: int = 1) -> list[dtype]:
        """The first of the usual dtypes that the operator takes and has samples for."""
        able = {d.name: d for d in self.dtypes(op)}
        found = [able[name] for name in MAIN if name in able and self.samples(op, able[name])]
        return found[:count]

    # -- samples ------------------------------------------------------------------------------------------------------
    def samples(self, op: Record, d: dtype, what: str = "inputs") -> list[Sample]:
        """The operator's samples in a dtype, all made at once: ``"inputs"``, ``"special"`` ones or ``"mistakes"``."""
        self._only(op)
        key = (what, d.name)
        if key not in self._samples:
            outlines = self.planning and what == "inputs"
            every = outlined(op, d) if outlines else list(gathered(op, d, what))
            self._samples[key] = [found for found in every if self._holds(found)]
        return self._samples[key]

    def _holds(self, found: Sample) -> bool:
        """Whether the device stores every dtype in a sample: of a wrong index, and one that is asked for, too."""
        storage = self.instance.capabilities.storage
        given = (*found.args, *found.kwargs.values())
        asked = {value for value in given if isinstance(value, dtype)} | set(found.held)
        asked |= {device_dtype(value.array.dtype) for value in given if isinstance(value, HostArray)}
        return storage.issuperset(asked) and all(
            device_dtype(a.dtype) in storage for a in arrays([found.args, found.kwargs])
        )

    def laid_out(self, op: Record, d: dtype, layout: str) -> list[Sample]:
        """The samples that a layout is about: ordinary ones fitted to it, or those of the kind of that name."""
        self._only(op)
        key = ("layout", d.name, layout)
        if key not in self._samples:
            every = self.samples(op, d)
            if layout in MEMORY:
                ordinary = (s for s in every if s.kind == ORDINARY)
                self._samples[key] = [f for s in ordinary if (f := fitted(op, s, layout)) is not None]
            else:
                self._samples[key] = [s for s in every if s.kind == layout]
        return self._samples[key]

    def each(self, op: Record, d: dtype, layout: str) -> Iterator[Sample]:
        """As :meth:`laid_out`, one after the other; :attr:`current` is the one that is being tried."""
        yield from self._one_by_one(self.laid_out(op, d, layout), layout)

    def each_of(self, op: Record, d: dtype, what: str) -> Iterator[Sample]:
        """As :meth:`samples`, in the same way, on contiguous memory."""
        yield from self._one_by_one(self.samples(op, d, what), MEMORY[0])

    def _one_by_one(self, samples: list[Sample], layout: str) -> Iterator[Sample]:
        for found in samples:
            self.current = (found, layout)
            yield found
        self.current = (None, "")

    def layouts(self, op: Record, d: dtype) -> Iterator[str]:
        """The layouts and kinds that the operator has samples for."""
        for layout in (*MEMORY, *KINDS[1:]):
            if self.laid_out(op, d, layout):
                yield layout

    def exact(self, op: Record, found: Sample, output: int) -> bool:
        """Whether an output of the operator is exact, judged by its samples in single precision.

        In double precision the oracle could not tell, and integers have no precision to tell by. Where there is no
        wider answer, for a public callable whose result hangs on the dtype or that is given no floating tensors, the
        sample says so.
        """
        d = floating_of(found)
        if as_given(op) or (d is None and not isinstance(op, Operator)):
            return found.exact
        judge = BY_NAME["complex64" if d is not None and d.is_complex else "float32"]
        if refused(op, judge) is not None:
            return False
        alike = [s for s in self.samples(op, judge) if s.kind == ORDINARY and s.of is found.of]
        return self.oracle.exact(op, output, alike)

    def _only(self, op: Record) -> None:
        if (op.name, self.planning) != self._operator:
            self._samples.clear()
            self._operator = (op.name, self.planning)
