"""Faults that a single call may not show: state between calls, threads, and a varying order."""

from __future__ import annotations

import threading
from abc import abstractmethod
from itertools import count
from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, breaks_backend, payload_of

MEETING = 0.002
"""The time in seconds for which a call with a shared buffer waits for another thread to overwrite it."""


class _ChangingCalls(Mirror):
    """Kernels that know how often they were called."""

    operators: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls = count()
        for operator in self.operators:
            self.table[operator] = self._changed(self.table[operator])

    def _changed(self, right: Kernel) -> Kernel:
        return lambda *args: self.change(next(self.calls), right, *args)

    @abstractmethod
    def change(self, number: int, right: Kernel, *args: Any) -> Any:
        """Return the result of call ``number``."""


@breaks_backend("sum", "mean", caught_by="*/determinism/*")
class SumsInAnyOrder(_ChangingCalls):
    """Sums are added in the order of arrival, so their last bits differ from call to call."""

    operators = ("sum", "mean")

    def change(self, number: int, right: Kernel, *args: Any) -> Any:
        """Increase the result of every other call by one unit in the last place."""
        return _nudged(self, right(*args)) if number % 2 else right(*args)


@breaks_backend("matmul", caught_by="matmul/determinism/*")
class TheFirstCallsAreTrials(_ChangingCalls):
    """The first call of each shape uses another algorithm, as an autotuner does."""

    operators = ("matmul",)

    def __init__(self, name: str) -> None:
        self.known: set[Any] = set()
        super().__init__(name)

    def change(self, number: int, right: Kernel, *args: Any) -> Any:
        """Round the result of the first call differently."""
        key = tuple((a.shape, self.dtype_of(a)) for a in args)
        if key in self.known:
            return right(*args)
        self.known.add(key)
        return _nudged(self, right(*args))


@breaks_backend("softmax", "exp", caught_by="*/determinism/* */value/*")
class ResultsAreRemembered(_ChangingCalls):
    """A cache of results is keyed by shape and dtype, not by content."""

    operators = ("softmax", "exp")

    def __init__(self, name: str) -> None:
        self.kept: dict[Any, Any] = {}
        super().__init__(name)

    def change(self, number: int, right: Kernel, *args: Any) -> Any:
        """Return the first result for this key."""
        key = (right, args[0].shape, self.dtype_of(args[0]), args[1:])
        if key not in self.kept:
            self.kept[key] = array_of(self, right(*args))
        return payload_of(self, self.kept[key], args[0].index)


@breaks_backend("cumsum", "sort", caught_by="*/determinism/*")
class EveryTenthCallIsWrong(_ChangingCalls):
    """Every tenth call loses the first element."""

    operators = ("cumsum", "sort")

    def change(self, number: int, right: Kernel, *args: Any) -> Any:
        """Change the result of every tenth call."""
        out = right(*args)
        first = out[0] if isinstance(out, tuple) else out
        if number % 10 == 9 and first.shape and 0 not in first.shape:
            array = array_of(self, first)
            array.reshape(-1)[0] = 0
            first = payload_of(self, array, first.index)
        return (first, *out[1:]) if isinstance(out, tuple) else first


def _nudged(mirror: Mirror, out: Image) -> Image:
    array = array_of(mirror, out)
    if array.dtype.kind != "f":
        return out
    return payload_of(mirror, np.nextafter(array, np.asarray(np.inf, array.dtype)), out.index)


class _Meeting(Mirror):
    """Kernels whose input passes through a buffer that all threads share."""

    operators: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.buffer: dict[Any, Any] = {}
        self.inside = 0
        self.met = threading.Condition()
        for operator in self.operators:
            self.table[operator] = self._through_buffer(operator, self.table[operator])

    def _through_buffer(self, operator: str, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            self.buffer[operator] = args
            with self.met:
                self.inside += 1
                self.met.notify_all()
                if threading.active_count() > 1:  # with two threads, both read the later thread's input
                    self.met.wait_for(lambda: self.inside > 1, MEETING)
            result = right(*self.buffer[operator])
            with self.met:
                self.inside -= 1
            return result

        return run


@breaks_backend("matmul", "sum", "exp", caught_by="*/threads/*")
class ThreadsShareABuffer(_Meeting):
    """Arguments pass through a buffer that every thread writes."""

    operators = ("matmul", "sum", "exp")
