"""Faults behind a declaration: what a backend declares excuses other bits, and nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import breaks_backend


@breaks_backend("sum", caught_by="sum/threads/*")
class DeclaredSumsAreWrongInThreads(Mirror):
    """Sums are declared non-deterministic, and in threads they count the first element twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.capabilities = replace(self.capabilities, nondeterministic=frozenset({"sum"}))
        self.table["sum"] = self._twice_in_threads(self.table["sum"])

    def _twice_in_threads(self, right: Kernel) -> Kernel:
        def kernel(x: Any, *args: Any) -> Any:
            result = right(x, *args)
            if threading.current_thread() is not threading.main_thread() and x.inner.size:
                result.inner = result.inner + x.inner.reshape(-1)[0].astype(result.inner.dtype)
            return result

        return kernel


@breaks_backend("cumsum", caught_by="cumsum/determinism/* cumsum/threads/*")
class AnotherOperatorIsDeclared(Mirror):
    """Scans differ in their last bits from call to call, and only sums are declared non-deterministic."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls = 0
        self.capabilities = replace(self.capabilities, nondeterministic=frozenset({"sum"}))
        right = self.table["cumsum"]

        def kernel(*args: Any) -> Any:
            self.calls += 1
            result = right(*args)
            if result.inner.dtype.kind == "f" and self.calls % 2:
                result.inner = result.inner * result.inner.dtype.type(1.0000002)
            return result

        self.table["cumsum"] = kernel
