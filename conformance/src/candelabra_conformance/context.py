"""The context of a check: the device, the oracle, and the samples of the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Final

import candelabra as cd
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra.errors import BackendError
from candelabra.library import Instance, Operator, open_device, own_kernels, plugins, serve_every_size

from candelabra_conformance.layouts import MEMORY, fitted
from candelabra_conformance.model import LEVELS
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.oracle import Oracle, as_given
from candelabra_conformance.perturbation import floating_of, with_arrays, without_subnormals
from candelabra_conformance.records import Record
from candelabra_conformance.samples.gather import gathered, outlined
from candelabra_conformance.samples.registry import defined
from candelabra_conformance.samples.sample import KINDS, ORDINARY, HostArray, Sample, arrays
from candelabra_conformance.taking import refused

MAIN: Final = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "complex64", "bool")
"""The dtypes in order of preference, for checks that use one dtype: the first that device and operator support."""


ON, OFF = "on", "off"
"""Whether the kernels that other distributions contribute to the device serve, or those of its owner."""


class Failure(Exception):
    """A check that failed. The reproducer is written from ``sample`` and ``layout``."""

    def __init__(self, message: str, sample: Sample | None = None, layout: str = "", **details: Any) -> None:
        super().__init__(message)
        self.sample = sample
        self.layout = layout
        self.details = details


class NotApplicable(Exception):
    """A check does not apply; the text contains the reason."""


class Context:
    """One device under test. It is not thread-safe: each worker has its own.

    ``contributions``: with ``"on"``, the kernels that other distributions contribute to the device serve, also calls
    that they would leave to the owner's for their size; if the device is the reference, its owner's kernels give the
    answers. With ``"off"``, its owner's kernels serve. By default ``"on"`` if there are such kernels. Raises
    ``BackendError`` for ``"on"`` if there are none.
    """

    def __init__(self, device: str, contributions: str | None = None) -> None:
        self.instance: Final[Instance] = open_device(device)
        self.reference: Final[Instance] = open_device(plugins.reference_device())
        contributing = plugins.contributing(self.instance.device.type)
        if contributions == ON and not contributing:
            raise BackendError(
                f"no distribution contributes kernels to device type {self.instance.device.type!r}: install one, or "
                "leave out --contributions (`candelabra doctor` shows failed ones)"
            )
        self.contributions: Final = contributions or (ON if contributing else OFF)
        answers_itself = self.instance is self.reference and self.contributions == OFF
        self.oracle: Final = Oracle(self.reference, answers_itself)
        self.planning = False
        """If set, inputs have shapes and dtypes but no values."""
        self.highest = max(LEVELS)
        """The highest level that is planned: axes leave out combinations of higher levels, whose samples take time."""
        self.current: tuple[Sample | None, str] = (None, "")
        """The sample and the layout that a check currently uses, for errors."""
        self.watch: Callable[[Sample, str], None] | None = None
        """Called with each sample and layout before a check uses it."""
        self.routes: Final[dict[tuple[Record, str, bool], str]] = {}
        """What serves an operator in a dtype, without and with a derivative."""
        self._dtypes: dict[Record, list[dtype]] = {}
        self._samples: dict[Any, list[Sample]] = {}
        self._main_dtypes: dict[str, tuple[list[dtype], Iterator[dtype]]] = {}
        self._operator: object = None

    @property
    def is_reference(self) -> bool:
        return self.instance.backend is self.reference.backend

    def mode(self) -> AbstractContextManager[None]:
        """Return the mode in which cases run: it decides which kernels serve the device."""
        if self.contributions == ON:
            return serve_every_size()
        return own_kernels() if plugins.contributing(self.device.type) else nullcontext()

    @property
    def device(self) -> cd.device:
        return self.instance.device

    # -- dtypes -------------------------------------------------------------------------------------------------------
    def computes(self, d: dtype) -> bool:
        """Return whether the backend declares to compute in a dtype; for integers and bools, to store it."""
        can = self.instance.capabilities
        return d in can.arithmetic or (d in can.storage and not d.is_floating_point and not d.is_complex)

    def dtypes(self, op: Record) -> list[dtype]:
        """Return the dtypes that the operator accepts and the device supports, including the dtypes of results.

        For a public callable, return those of its samples.
        """
        if op in self._dtypes:
            return self._dtypes[op]
        able = [d for d in ALL if self.accepts(op, d)]
        if not isinstance(op, Operator):
            return [d for d in able if self.samples(op, d)]
        self._dtypes[op] = able
        return able

    def accepts(self, op: Record, d: dtype) -> bool:
        """Return whether the operator accepts a dtype, and the device supports it and that of every result."""
        if not self.computes(d) or refused(op, d) is not None or not defined(op.name, d):
            return False
        storage = self.instance.capabilities.storage
        return not isinstance(op, Operator) or all(rule(op.promote(d)) in storage for rule in op.results)

    def main_dtypes(self, op: Record, *, count: int = 1) -> list[dtype]:
        """Return the first dtypes of :data:`MAIN` that the operator accepts and has samples for."""
        return list(islice(self.each_main_dtype(op), count))

    def each_main_dtype(self, op: Record) -> Iterator[dtype]:
        """Yield the dtypes of :meth:`main_dtypes`, and make the samples of no dtype that the caller does not reach."""
        self._only(op)
        if op.name not in self._main_dtypes:
            named = (BY_NAME[name] for name in MAIN)
            self._main_dtypes[op.name] = [], (d for d in named if self.accepts(op, d) and self.samples(op, d))
        found, rest = self._main_dtypes[op.name]
        for place in range(len(MAIN)):
            if place == len(found):
                another = next(rest, None)
                if another is None:
                    return
                found.append(another)
            yield found[place]

    # -- samples ------------------------------------------------------------------------------------------------------
    def samples(self, op: Record, d: dtype, kind: str = "inputs") -> list[Sample]:
        """Return all samples of the operator in a dtype, of a kind: a key of the tables of generators."""
        self._only(op)
        key = (kind, d.name)
        if key not in self._samples:
            outlines = self.planning and kind == "inputs"
            every = outlined(op, d) if outlines else list(gathered(op, d, kind))
            if kind == "special" and not self.instance.capabilities.subnormals:
                every = [with_arrays(found, without_subnormals) for found in every]
            self._samples[key] = [found for found in every if self._holds(found)]
        return self._samples[key]

    def _holds(self, sample: Sample) -> bool:
        """Return whether the device stores every dtype in a sample, also of invalid indices and ``dtype`` arguments."""
        storage = self.instance.capabilities.storage
        given = (*sample.args, *sample.kwargs.values())
        asked = {value for value in given if isinstance(value, dtype)} | set(sample.held)
        asked |= {device_dtype(value.array.dtype) for value in given if isinstance(value, HostArray)}
        return storage.issuperset(asked) and all(
            device_dtype(a.dtype) in storage for a in arrays([sample.args, sample.kwargs])
        )

    def laid_out(self, op: Record, d: dtype, layout: str) -> list[Sample]:
        """Return the samples for a layout: ordinary ones that fit it, or those of the kind with that name."""
        self._only(op)
        key = ("layout", d.name, layout)
        if key not in self._samples:
            every = self.samples(op, d)
            if layout in MEMORY:
                ordinary = (s for s in every if s.kind == ORDINARY)
                fitting = (f for s in ordinary if (f := fitted(op, s, layout)) is not None)
                # Planning asks whether there is a sample; only on contiguous memory it reads all of them.
                first = self.planning and layout != MEMORY[0] and isinstance(op, Operator)
                self._samples[key] = list(islice(fitting, 1)) if first else list(fitting)
            else:
                self._samples[key] = [s for s in every if s.kind == layout]
        return self._samples[key]

    def each(self, op: Record, d: dtype, layout: str) -> Iterator[Sample]:
        """Yield the samples of :meth:`laid_out`, and set :attr:`current` to each."""
        yield from self._one_by_one(self.laid_out(op, d, layout), layout)

    def each_of(self, op: Record, d: dtype, kind: str) -> Iterator[Sample]:
        """Yield the samples of :meth:`samples` on contiguous memory, and set :attr:`current` to each."""
        yield from self._one_by_one(self.samples(op, d, kind), MEMORY[0])

    def _one_by_one(self, samples: list[Sample], layout: str) -> Iterator[Sample]:
        for found in samples:
            self.current = (found, layout)
            if self.watch is not None:
                self.watch(found, layout)
            yield found
        self.current = (None, "")

    def layouts(self, op: Record, d: dtype) -> Iterator[str]:
        """Yield the layouts and kinds that the operator has samples for."""
        for layout in (*MEMORY, *KINDS[1:]):
            if self.laid_out(op, d, layout):
                yield layout

    def exact(self, op: Record, sample: Sample, output: int) -> bool:
        """Return whether an output of the operator is exact, judged by its samples in single precision.

        Double precision is that of the oracle, and integers have no rounding. If there is no wider answer, because the
        result of a public callable depends on the dtype or it has no floating arguments, the sample declares it.
        """
        d = floating_of(sample)
        if as_given(op) or (d is None and not isinstance(op, Operator)):
            return sample.exact
        judge = BY_NAME["complex64" if d is not None and d.is_complex else "float32"]
        if refused(op, judge) is not None:
            return False
        alike = [s for s in self.samples(op, judge) if s.kind == ORDINARY and s.of is sample.of]
        return self.oracle.exact(op, output, alike)

    def _only(self, op: Record) -> None:
        if (op.name, self.planning) != self._operator:
            self._samples.clear()
            self._main_dtypes.clear()
            self._operator = (op.name, self.planning)
