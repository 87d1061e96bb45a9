"""Faults of kernels that another distribution contributes to the device. The owner's kernels are right."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from candelabra.backend import Kernel, hookimpl
from candelabra.library import OPERATORS

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import HostKernel, breaks_backend, on_host

SMALL = 1 << 12
"""Calls with fewer elements stay with the owner's kernel, so that only the mode for every size shows the fault."""


class _Contribution:
    """One kernel for calls with many elements: a function of the kernel that served before and of host arrays."""

    def __init__(self, mirror: Mirror, operator: str, function: HostKernel) -> None:
        self.mirror, self.operator, self.function = mirror, operator, function

    @hookimpl
    def candelabra_kernels(self, kernels: Mapping[str, Kernel], every_size: bool) -> dict[str, Kernel]:
        owner = kernels[self.operator]
        large = on_host(self.mirror, OPERATORS[self.operator], owner, self.function)

        def kernel(x: Any, *rest: Any) -> Any:
            return (large if every_size or prod(x.shape) >= SMALL else owner)(x, *rest)

        return {self.operator: kernel}


@breaks_backend("exp", caught_by="exp/value/*")
class ContributedExpLeavesOutTheTail(Mirror):
    """A contributed kernel computes whole groups of eight elements and leaves the others as they are."""

    def __init__(self, name: str) -> None:
        super().__init__(name)

        def kernel(right: Any, x: Any) -> Any:
            out = right(x).reshape(-1)
            tail = x.size - x.size % 8
            out[tail:] = x.reshape(-1)[tail:]
            return out.reshape(x.shape)

        self.contribution = _Contribution(self, "exp", kernel)


@breaks_backend("sum", caught_by="sum/value/*")
class ContributedSumIgnoresItsDims(Mirror):
    """A contributed kernel reduces all dims, whichever are asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)

        def kernel(right: Any, x: Any, dim: Any, *rest: Any) -> Any:
            due = right(x, dim, *rest)
            return np.full_like(due, right(x, tuple(range(x.ndim)), False, *rest[1:]))

        self.contribution = _Contribution(self, "sum", kernel)
