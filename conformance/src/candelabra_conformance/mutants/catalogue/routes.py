"""Faults of routes: work that should run on the device runs elsewhere."""

from __future__ import annotations

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import breaks_backend


@breaks_backend("sort", "cumsum", caught_by="sort/value/* cumsum/value/*", forbid_fallback=True)
class KernelsAreMissing(Mirror):
    """Two operators fall back to the reference device, whose correct numbers hide the missing kernel."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        del self.table["sort"], self.table["cumsum"]


@breaks_backend("conv", caught_by="conv/gradient/* conv/gradient2/*", forbid_fallback=True)
class OnlyTheWayForthIsServed(Mirror):
    """The kernel of a derivative is missing, so that training falls back and inference does not."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        del self.table["conv_weight"]
